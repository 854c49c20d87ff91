//! The label and the batch column of obs.

use std::fmt;

use crate::error::Result;
use crate::h5ad::{Frame, Labels};
use crate::method::Profile;

use super::Role;
use super::facts::{ClassFacts, ColumnFacts};
use super::report::{Finding, Level};
use super::wording::{counted, listed, quoted};

/// Column looked for when no `--label-key` is given.
pub const DEFAULT_LABEL_KEY: &str = "cell_type";

/// Column looked for when no `--batch-key` is given.
pub const DEFAULT_BATCH_KEY: &str = "batch_id";

/// Class names that are, in all likelihood, missing values that became text.
const MISSING_WORDS: [&str; 7] = ["", "nan", "na", "n/a", "none", "null", "<na>"];

impl ColumnFacts {
    /// Cells of each class of `labels`, largest first, then by name.
    fn of(column: &str, labels: &Labels) -> ColumnFacts {
        let mut cells = vec![0; labels.classes.len()];
        let mut missing = 0;
        for code in &labels.codes {
            match code {
                Some(code) => cells[*code as usize] += 1,
                None => missing += 1,
            }
        }
        let mut classes: Vec<ClassFacts> = (labels.classes.iter().zip(cells))
            .map(|(name, cells)| ClassFacts { name: name.clone(), cells })
            .collect();
        classes.sort_by(|a, b| b.cells.cmp(&a.cells).then_with(|| a.name.cmp(&b.name)));
        ColumnFacts { column: column.to_owned(), class_count: classes.len(), classes, missing }
    }

    /// Drops what no reader of a report looks at: a column of measurements has a class for every cell.
    pub(super) fn shortened(mut self) -> ColumnFacts {
        self.classes.truncate(1000);
        self
    }

    /// `T cell 27, B cell 17 and 3 more`.
    fn sizes(&self, shown: usize) -> String {
        let sizes: Vec<String> = self.classes.iter().map(ClassFacts::to_string).collect();
        listed(&sizes, shown)
    }

    /// Names, quoted, of the classes that `keep` picks.
    fn names(&self, keep: impl Fn(&ClassFacts) -> bool) -> Vec<String> {
        self.classes.iter().filter(|class| keep(class)).map(|class| quoted(&class.name)).collect()
    }
}

/// `T cell 27`; a name that is a number is quoted: `"1" 20`.
impl fmt::Display for ClassFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.parse::<f64>().is_ok() {
            write!(f, "{} {}", quoted(&self.name), self.cells)
        } else {
            write!(f, "{} {}", self.name, self.cells)
        }
    }
}

/// Reads `key` of obs as classes; nothing if obs has no such column.
///
/// # Errors
/// The column is there and cannot be read.
pub(super) fn read(obs: &Frame, key: &str) -> Result<Option<ColumnFacts>> {
    if !obs.column_names().iter().any(|name| name == key) {
        return Ok(None);
    }
    Ok(Some(ColumnFacts::of(key, &obs.column(key)?.labels())))
}

/// The findings on the label column; `asked` is the key that the user gave.
pub(super) fn label_findings(
    columns: &[String],
    asked: Option<&str>,
    labels: Option<&ColumnFacts>,
    role: Option<Role>,
) -> Vec<Finding> {
    let Some(labels) = labels else {
        let level = match (role, asked) {
            (Some(Role::Reference), _) | (None, Some(_)) => Level::Fail,
            (Some(Role::Query), Some(_)) => Level::Warn,
            (_, None) => Level::Info,
        };
        let need = match role {
            Some(Role::Reference) => ": a reference needs labels",
            Some(Role::Query) => ": predictions for this query cannot be scored",
            None => "",
        };
        let key = asked.unwrap_or(DEFAULT_LABEL_KEY);
        return vec![absent("no-labels", level, columns, ("--label-key", key), need)];
    };
    let reference = role == Some(Role::Reference);
    let mut findings = vec![number_of_classes(labels, reference)];
    findings.extend(missing_labels(labels));
    findings.extend(single_cells(labels, reference));
    findings.extend(missing_words(labels));
    findings.extend(too_many_classes(labels));
    findings
}

fn number_of_classes(labels: &ColumnFacts, reference: bool) -> Finding {
    let needs_two = if reference { Level::Fail } else { Level::Warn };
    let column = quoted(&labels.column);
    match labels.classes.len() {
        0 => Finding::new(needs_two, "no-classes", format!("label column {column} has no value in any cell")),
        1 => Finding::new(
            needs_two,
            "one-class",
            format!(
                "label column {column} has 1 class ({}): classifiers and label metrics need two",
                labels.sizes(1)
            ),
        ),
        classes => {
            let sizes = labels.sizes(8);
            Finding::ok("labels", format!("label column {column} has {classes} classes: {sizes}"))
        }
    }
}

fn missing_labels(labels: &ColumnFacts) -> Option<Finding> {
    (labels.missing > 0 && !labels.classes.is_empty()).then(|| {
        let (cells, column) = (counted(labels.missing, "cell"), quoted(&labels.column));
        Finding::warn("missing-labels", format!("{cells} without a label in {column}; they are left out"))
    })
}

fn single_cells(labels: &ColumnFacts, reference: bool) -> Option<Finding> {
    let singles = labels.names(|class| class.cells == 1);
    let level = if reference { Level::Warn } else { Level::Info };
    (!singles.is_empty()).then(|| {
        let message =
            format!("{} of a single cell: {}", counted(singles.len(), "label class"), listed(&singles, 5));
        Finding::new(level, "single-cell-classes", message)
    })
}

fn missing_words(labels: &ColumnFacts) -> Option<Finding> {
    let words = labels.names(|class| MISSING_WORDS.contains(&class.name.trim().to_lowercase().as_str()));
    (!words.is_empty()).then(|| {
        let message = format!("label class {} looks like a missing value written as text", listed(&words, 5));
        let column = quoted(&labels.column);
        Finding::warn("labels-missing-as-text", message)
            .hint(format!("in Python: adata.obs[{column}] = adata.obs[{column}].replace({}, None)", words[0]))
    })
}

/// Classes that hold two cells each on average are identifiers or measurements, not labels.
fn too_many_classes(labels: &ColumnFacts) -> Option<Finding> {
    let cells: usize = labels.classes.iter().map(|class| class.cells).sum();
    (labels.classes.len() > 20 && labels.classes.len() * 2 > cells).then(|| {
        let (classes, column) = (labels.classes.len(), quoted(&labels.column));
        let message =
            format!("{classes} classes for {cells} cells: {column} looks like identifiers or a measurement");
        Finding::warn("labels-not-classes", message)
    })
}

/// The findings on the batch column; `asked` is the key that the user gave.
pub(super) fn batch_findings(
    columns: &[String],
    asked: Option<&str>,
    batches: Option<&ColumnFacts>,
    profile: Option<&Profile>,
) -> Vec<Finding> {
    let integration = profile.filter(|profile| profile.embed.as_ref().is_some_and(|embed| embed.batch_key));
    let Some(batches) = batches else {
        let level = if integration.is_some() || asked.is_some() { Level::Warn } else { Level::Info };
        let key = asked.unwrap_or(DEFAULT_BATCH_KEY);
        let consequence = ": all cells count as one batch";
        return vec![absent("no-batches", level, columns, ("--batch-key", key), consequence)];
    };
    let mut findings = vec![number_of_batches(batches, integration)];
    findings.extend(missing_batches(batches, integration));
    if let Some(minimum) = profile.and_then(|profile| profile.input.minimum_batch_cells) {
        findings.extend(small_batches(batches, minimum as usize));
    }
    findings
}

fn number_of_batches(batches: &ColumnFacts, integration: Option<&Profile>) -> Finding {
    let column = quoted(&batches.column);
    let count = counted(batches.classes.len(), "batch");
    let message = format!("batch column {column} has {count}: {}", batches.sizes(8));
    match (batches.classes.len(), integration) {
        (0, _) => Finding::warn("no-batches", format!("batch column {column} has no value in any cell")),
        (1, Some(profile)) => {
            Finding::warn("one-batch", format!("{message}; {} has nothing to integrate", profile.name))
        }
        _ => Finding::ok("batches", message),
    }
}

fn missing_batches(batches: &ColumnFacts, integration: Option<&Profile>) -> Option<Finding> {
    let level = if integration.is_some() { Level::Fail } else { Level::Warn };
    (batches.missing > 0 && !batches.classes.is_empty()).then(|| {
        let (cells, column) = (counted(batches.missing, "cell"), quoted(&batches.column));
        Finding::new(level, "missing-batches", format!("{cells} without a batch in {column}"))
    })
}

fn small_batches(batches: &ColumnFacts, minimum: usize) -> Option<Finding> {
    let small: Vec<String> =
        (batches.classes.iter().filter(|batch| batch.cells < minimum)).map(ClassFacts::to_string).collect();
    (!small.is_empty()).then(|| {
        let count = counted(small.len(), "batch");
        let message = format!("{count} of fewer than {minimum} cells: {}", listed(&small, 5));
        Finding::fail("small-batches", message).hint("leave these batches out, or merge them with others")
    })
}

/// A column that is not there, with those that are, nearest first.
fn absent(
    code: &'static str,
    level: Level,
    columns: &[String],
    (option, key): (&str, &str),
    consequence: &str,
) -> Finding {
    let mut nearest: Vec<(f64, &String)> = columns
        .iter()
        .map(|name| (strsim::jaro_winkler(&name.to_lowercase(), &key.to_lowercase()), name))
        .collect();
    nearest.sort_by(|a, b| b.0.total_cmp(&a.0));
    let names: Vec<String> = nearest.iter().map(|(_, name)| (*name).clone()).collect();
    let there = if names.is_empty() {
        "obs has no columns".to_owned()
    } else {
        format!("columns: {}", listed(&names, 6))
    };
    let finding =
        Finding::new(level, code, format!("obs has no column {}{consequence} ({there})", quoted(key)));
    match nearest.first() {
        Some((similarity, name)) if *similarity > 0.8 && level > Level::Info => {
            finding.hint(format!("use {option} {}", shell_word(name)))
        }
        _ => finding,
    }
}

/// `name` as one word of a shell command.
fn shell_word(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "._-/".contains(c);
    if !name.is_empty() && name.chars().all(plain) {
        name.to_owned()
    } else {
        format!("'{}'", name.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(classes: &[(&str, usize)], missing: usize) -> ColumnFacts {
        let names = classes.iter().map(|class| class.0.to_owned()).collect();
        let mut codes = vec![None; missing];
        for (code, class) in classes.iter().enumerate() {
            codes.extend(std::iter::repeat_n(Some(code as u32), class.1));
        }
        ColumnFacts::of("cell_type", &Labels { classes: names, codes })
    }

    fn labels(classes: &[(&str, usize)], missing: usize, role: Option<Role>) -> Vec<(&'static str, Level)> {
        let facts = facts(classes, missing);
        let findings = label_findings(&[], None, Some(&facts), role);
        findings.iter().map(|finding| (finding.code, finding.level)).collect()
    }

    #[test]
    fn a_number_as_class_is_quoted() {
        assert_eq!(facts(&[("1", 20), ("b1", 3)], 0).sizes(2), "\"1\" 20, b1 3");
    }

    #[test]
    fn classes_are_listed_largest_first() {
        let facts = facts(&[("B", 2), ("A", 2), ("T", 7)], 1);
        assert_eq!(facts.sizes(2), "T 7, A 2 and 1 more");
        assert_eq!(facts.missing, 1);
    }

    #[test]
    fn what_a_reference_needs_is_stricter() {
        let reference = Some(Role::Reference);
        assert_eq!(labels(&[("1", 20)], 0, None), [("one-class", Level::Warn)]);
        assert_eq!(labels(&[("1", 20)], 0, reference), [("one-class", Level::Fail)]);
        assert_eq!(labels(&[], 20, reference), [("no-classes", Level::Fail)]);
        let single = [("T", 9), ("B", 1)];
        assert_eq!(labels(&single, 0, None)[1], ("single-cell-classes", Level::Info));
        assert_eq!(labels(&single, 0, reference)[1], ("single-cell-classes", Level::Warn));
    }

    #[test]
    fn missing_labels_are_told_even_as_text() {
        let codes = labels(&[("T", 5), ("nan", 3), ("B", 4)], 2, None);
        assert_eq!(
            codes,
            [("labels", Level::Ok), ("missing-labels", Level::Warn), ("labels-missing-as-text", Level::Warn)]
        );
    }

    #[test]
    fn identifiers_are_no_labels() {
        let names: Vec<String> = (0..30).map(|cell| format!("cell{cell}")).collect();
        let classes: Vec<(&str, usize)> = names.iter().map(|name| (name.as_str(), 1)).collect();
        let codes = labels(&classes, 0, None);
        assert!(codes.contains(&("labels-not-classes", Level::Warn)), "{codes:?}");
    }

    #[test]
    fn an_absent_column_names_those_there_nearest_first() {
        let columns = ["n_counts".to_owned(), "CellType".to_owned()];
        let level = |asked, role| label_findings(&columns, asked, None, role).remove(0);
        let finding = level(Some("cell_type"), None);
        assert_eq!(finding.level, Level::Fail);
        assert_eq!(finding.message, "obs has no column \"cell_type\" (columns: CellType, n_counts)");
        assert_eq!(finding.hint.as_deref(), Some("use --label-key CellType"));
        assert_eq!(level(None, None).level, Level::Info);
        assert_eq!(level(None, Some(Role::Query)).level, Level::Info);
        assert_eq!(level(Some("cell_type"), Some(Role::Query)).level, Level::Warn);
        assert_eq!(level(None, Some(Role::Reference)).level, Level::Fail);
    }

    #[test]
    fn hints_survive_a_shell() {
        assert_eq!(shell_word("ann/level1"), "ann/level1");
        assert_eq!(shell_word("cell type's"), r"'cell type'\''s'");
    }

    #[test]
    fn small_batches_are_named() {
        let facts = facts(&[("b0", 40), ("b1", 12)], 0);
        assert_eq!(small_batches(&facts, 12), None);
        assert_eq!(small_batches(&facts, 31).unwrap().message, "1 batch of fewer than 31 cells: b1 12");
    }
}
