//! What the genes are called against what the method looks up.

use crate::h5ad::{Column, Frame};
use crate::method::{GENE_COLUMNS, GeneIds, Profile, Species};

use super::cells::Duplicates;
use super::facts::GeneNameFacts;
use super::identify::{GeneNames, NameKind};
use super::report::{Finding, Level};
use super::scan::Scan;
use super::wording::{counted, listed, quoted};

/// A column of var that could serve as the index.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NameColumn {
    column: String,
    kind: NameKind,
}

impl GeneNames {
    pub(super) fn facts(&self) -> GeneNameFacts {
        GeneNameFacts {
            kind: self.kind(),
            species: self.species(),
            human_symbols: self.human_symbols,
            mouse_symbols: self.mouse_symbols,
            ensembl: self.ensembl(),
            versioned: self.versioned,
            numbers: self.numbers,
        }
    }
}

/// The findings on the genes of `var`, and of `raw_var` where the file has raw; `scan` is of X, where there is one.
pub(super) fn findings(
    var: &Frame,
    raw_var: Option<&Frame>,
    names: &GeneNames,
    duplicates: &Duplicates<'_>,
    scan: Option<&Scan>,
    profile: Option<&Profile>,
) -> Vec<Finding> {
    if var.index().is_empty() {
        return vec![Finding::fail("no-genes", "the file has 0 genes")];
    }
    let mut findings = vec![identifiers(names, &name_columns(var), profile)];
    findings.extend(species(names, profile));
    findings.extend(versions(names, profile));
    findings.extend(number_of_genes(var.index().len(), profile));
    findings.extend(duplicate_names(duplicates));
    findings.extend(other_features(var));
    findings.extend(scan.and_then(empty_genes));
    findings.extend(raw_var.and_then(|raw| cut_to_fewer(var.index().len(), raw.index().len())));
    findings
}

/// The kind of the names against the kind that the method looks up.
fn identifiers(names: &GeneNames, columns: &[NameColumn], profile: Option<&Profile>) -> Finding {
    let wanted = profile.map(|profile| profile.genes.ids);
    let kind = names.kind();
    let fits = match wanted {
        Some(GeneIds::Symbols) => kind == NameKind::Symbols,
        Some(GeneIds::Ensembl) => kind == NameKind::Ensembl,
        Some(GeneIds::Any) | None => matches!(kind, NameKind::Symbols | NameKind::Ensembl),
    };
    if fits {
        return Finding::ok("gene-ids", described(names, kind));
    }
    let replacement = columns.iter().find(|column| match wanted {
        Some(GeneIds::Symbols) => column.kind == NameKind::Symbols,
        Some(GeneIds::Ensembl) => column.kind == NameKind::Ensembl,
        Some(GeneIds::Any) | None => true,
    });
    let mut message = described(names, kind);
    if let (Some(profile), Some(ids)) = (profile, wanted.and_then(ids_in_words)) {
        message.push_str(&format!("; {} looks up {ids}", profile.name));
    }
    let level = misfit_level(wanted, kind, replacement.is_some());
    if let Some(NameColumn { column, kind }) = replacement {
        let looks = if *kind == NameKind::Ensembl { "Ensembl ids" } else { "symbols" };
        let column = column.replace('\'', "\\'");
        message.push_str(&format!("; var['{column}'] looks like {looks}"));
    }
    let finding = Finding::new(level, code(kind), message);
    match replacement {
        Some(NameColumn { column, .. }) => finding.hint(format!(
            "in Python: adata.var_names = adata.var[{}].astype(str); adata.var_names_make_unique()",
            quoted(column)
        )),
        None if level > Level::Info => finding.hint(remedy(wanted, kind)),
        None => finding,
    }
}

/// Names that no model knows fail unless a method takes any; the other kind of real identifiers is a warning where the
/// right one stands beside it.
fn misfit_level(wanted: Option<GeneIds>, kind: NameKind, has_replacement: bool) -> Level {
    match (wanted, kind) {
        (Some(GeneIds::Any), NameKind::Numbers) => Level::Warn,
        (Some(GeneIds::Any), _) => Level::Info,
        (_, NameKind::Mixed) => Level::Warn,
        (_, NameKind::Numbers) => Level::Fail,
        (None, _) => Level::Warn,
        (Some(_), NameKind::Symbols | NameKind::Ensembl) if has_replacement => Level::Warn,
        (Some(_), _) => Level::Fail,
    }
}

fn code(kind: NameKind) -> &'static str {
    match kind {
        NameKind::Symbols | NameKind::Ensembl => "other-gene-ids",
        NameKind::Mixed => "mixed-gene-ids",
        NameKind::Numbers => "gene-index-is-numbers",
        NameKind::Placeholders => "placeholder-gene-names",
        NameKind::EnsemblOther | NameKind::GenomePrefixed | NameKind::Unknown => "unknown-gene-ids",
    }
}

fn ids_in_words(ids: GeneIds) -> Option<&'static str> {
    match ids {
        GeneIds::Symbols => Some("symbols"),
        GeneIds::Ensembl => Some("Ensembl gene ids"),
        GeneIds::Any => None,
    }
}

fn described(names: &GeneNames, kind: NameKind) -> String {
    let total = names.total;
    match kind {
        NameKind::Symbols => format!("genes are named by symbols{}", spelt(names)),
        NameKind::Ensembl => format!("genes are named by Ensembl ids{}", ensembl_species(names)),
        NameKind::Mixed => format!(
            "genes are named in two ways: {} symbols and {} Ensembl ids of {total}",
            names.symbols(),
            names.ensembl()
        ),
        NameKind::EnsemblOther => "genes are named by Ensembl ids of transcripts, proteins or exons".into(),
        NameKind::GenomePrefixed => "gene names begin with the name of a genome, as in GRCh38_CD3E".into(),
        NameKind::Numbers if names.row_numbers => "the gene index is numbers: the row numbers".into(),
        NameKind::Numbers => "the gene index is numbers: Entrez ids, perhaps".into(),
        NameKind::Placeholders => "gene names are one word with running numbers: placeholders".into(),
        NameKind::Unknown => "gene names are neither symbols nor Ensembl ids".into(),
    }
}

fn spelt(names: &GeneNames) -> String {
    let total = names.total;
    match names.species() {
        Some(Species::Human) => format!(" ({} of {total} spelt like human ones)", names.human_symbols),
        Some(Species::Mouse) => format!(" ({} of {total} spelt like mouse ones)", names.mouse_symbols),
        _ => format!(
            " ({} of {total} spelt like human ones, {} like mouse ones)",
            names.human_symbols, names.mouse_symbols
        ),
    }
}

fn ensembl_species(names: &GeneNames) -> String {
    format!(
        " ({} human, {} mouse, {} of other species)",
        names.ensembl_human, names.ensembl_mouse, names.ensembl_species_other
    )
}

fn remedy(wanted: Option<GeneIds>, kind: NameKind) -> &'static str {
    match (kind, wanted) {
        (NameKind::GenomePrefixed, _) => {
            "in Python: adata.var_names = adata.var_names.str.replace(\"^[^_]+_+\", \"\", regex=True)"
        }
        (_, Some(GeneIds::Ensembl)) => {
            "put Ensembl gene ids into var_names; the feature table of the data has them"
        }
        _ => "put gene symbols into var_names; the feature table of the data has them",
    }
}

/// The species that the names tell against those of the method's vocabulary.
fn species(names: &GeneNames, profile: Option<&Profile>) -> Option<Finding> {
    let Some(profile) = profile.filter(|profile| !profile.genes.species.is_empty()) else {
        let mouse = profile.is_none() && names.species() == Some(Species::Mouse) && names.mouse_symbols > 0;
        return mouse.then(|| {
            Finding::info(
                "species",
                format!("{}; a model of human genes knows none of them", mouse_like(names)),
            )
        });
    };
    let known = &profile.genes.species;
    let Some(told) = names.species() else { return unfitting_symbols(names, profile) };
    if known.contains(&told) {
        return None;
    }
    let message = match told {
        Species::Mouse if names.mouse_symbols > 0 => mouse_like(names),
        Species::Human => format!("genes look human ({} of {})", fitting(names, told), names.total),
        Species::Mouse => format!("genes are mouse ({} of {} ids)", fitting(names, told), names.total),
        Species::Other => {
            format!("genes are of another species ({} of {} ids)", fitting(names, told), names.total)
        }
    };
    let knows: Vec<&str> = known.iter().map(|&species| in_words(species)).collect();
    let message = format!("{message}; {} knows {} genes only", profile.name, knows.join(" and "));
    Some(Finding::fail("species", message).hint(
        "choose a method for this species, or map the genes to their orthologs first (one to one, by a table of your choice)",
    ))
}

/// Symbols of no one species, of which the method can know those alone that are spelt like its own.
fn unfitting_symbols(names: &GeneNames, profile: &Profile) -> Option<Finding> {
    if names.kind() != NameKind::Symbols {
        return None;
    }
    let fitting: usize = profile.genes.species.iter().map(|&species| fitting(names, species)).sum();
    let share = fitting as f64 / names.total as f64;
    let too_few = profile.genes.minimum_matched.is_some_and(|minimum| share < minimum);
    let level = if too_few { Level::Fail } else { Level::Warn };
    let knows: Vec<&str> = profile.genes.species.iter().map(|&species| in_words(species)).collect();
    let knows = knows.join(" or ");
    (share < 0.9).then(|| {
        let message = format!(
            "{fitting} of {} genes are spelt like {knows} symbols; {} knows no others",
            names.total, profile.name
        );
        Finding::new(level, "species", message)
    })
}

fn in_words(species: Species) -> &'static str {
    match species {
        Species::Human => "human",
        Species::Mouse => "mouse",
        Species::Other => "other",
    }
}

fn fitting(names: &GeneNames, species: Species) -> usize {
    match species {
        Species::Human => names.human_symbols + names.ensembl_human,
        Species::Mouse => names.mouse_symbols + names.ensembl_mouse,
        Species::Other => names.ensembl_species_other,
    }
}

fn mouse_like(names: &GeneNames) -> String {
    format!(
        "looks like mouse symbols: {} of {} genes are written as human symbols are, {} of {} when case is ignored",
        names.human_symbols, names.total, names.human_in_capitals, names.total
    )
}

/// Vocabularies hold Ensembl ids without version.
fn versions(names: &GeneNames, profile: Option<&Profile>) -> Option<Finding> {
    let looked_up = profile.is_none_or(|profile| profile.genes.ids == GeneIds::Ensembl);
    (looked_up && names.versioned > 0).then(|| {
        let message = format!(
            "{} of {} Ensembl ids end in a version (.12); vocabularies hold them without",
            names.versioned,
            names.ensembl()
        );
        Finding::warn("versioned-gene-ids", message)
            .hint("in Python: adata.var_names = adata.var_names.str.replace(r\"\\.\\d+$\", \"\", regex=True)")
    })
}

/// A vocabulary of which the file can fill less than a tenth.
fn number_of_genes(genes: usize, profile: Option<&Profile>) -> Option<Finding> {
    let profile = profile?;
    let vocabulary = profile.genes.vocabulary? as usize;
    (genes * 10 < vocabulary).then(|| {
        let message = format!(
            "{} in the file; {} knows {vocabulary} and expects a whole transcriptome",
            counted(genes, "gene"),
            profile.name
        );
        Finding::warn("few-genes", message).hint("embed the file before it is cut to highly variable genes")
    })
}

fn duplicate_names(duplicates: &Duplicates<'_>) -> Option<Finding> {
    let first = duplicates.first?;
    let verb = if duplicates.count == 1 { "repeats" } else { "repeat" };
    let message =
        format!("{} {verb} an earlier one, first {}", counted(duplicates.count, "gene name"), quoted(first));
    Some(Finding::warn("duplicate-gene-names", message).hint("in Python: adata.var_names_make_unique()"))
}

/// Antibodies, guides or peaks among the genes, as Cell Ranger's `feature_types` tells them.
fn other_features(var: &Frame) -> Option<Finding> {
    const COLUMN: &str = "feature_types";
    let has_column = var.column_names().iter().any(|name| name == COLUMN);
    let labels = if has_column { var.column(COLUMN).ok()?.labels() } else { return None };
    let gene = labels.classes.iter().position(|class| class == "Gene Expression")?;
    let others: Vec<String> =
        labels.classes.iter().filter(|&class| class != "Gene Expression").cloned().collect();
    let count = labels.codes.iter().flatten().filter(|&&code| code as usize != gene).count();
    (count > 0).then(|| {
        let message =
            format!("{} of {} features are not genes: {}", count, labels.codes.len(), listed(&others, 3));
        Finding::warn("other-features", message)
            .hint("in Python: adata = adata[:, adata.var[\"feature_types\"] == \"Gene Expression\"].copy()")
    })
}

fn empty_genes(scan: &Scan) -> Option<Finding> {
    let empty = scan.empty_genes();
    (empty > 0).then(|| {
        let message = format!("{} of {} without any value but 0", counted(empty, "gene"), scan.genes);
        Finding::info("empty-genes", message)
    })
}

/// Highly variable genes alone, most likely: models look up all.
fn cut_to_fewer(genes: usize, raw_genes: usize) -> Option<Finding> {
    (raw_genes > genes).then(|| {
        let message = format!("X has {}, raw has {raw_genes}: X was cut to fewer", counted(genes, "gene"));
        Finding::info("raw-has-more-genes", message)
    })
}

/// The columns of `var` that name genes by symbols or Ensembl ids, customary names first.
///
/// A column that cannot be read is passed over: nobody asked for it.
fn name_columns(var: &Frame) -> Vec<NameColumn> {
    let mut columns: Vec<&String> = var.column_names().iter().collect();
    let rank = |name: &&String| {
        GENE_COLUMNS.iter().position(|customary| customary == name).unwrap_or(GENE_COLUMNS.len())
    };
    columns.sort_by_key(rank);
    let kind = |name: &String| match kind_of_column(&var.column(name).ok()?)? {
        kind @ (NameKind::Symbols | NameKind::Ensembl) => Some(NameColumn { column: name.clone(), kind }),
        _ => None,
    };
    columns.into_iter().filter_map(kind).collect()
}

/// What the values are called, where nearly all are there and differ.
fn kind_of_column(column: &Column) -> Option<NameKind> {
    let values: Vec<&str> = match column {
        Column::Text(values) => values.iter().map(|value| value.as_deref().unwrap_or_default()).collect(),
        Column::Categorical { categories, codes, .. } => {
            codes.iter().map(|code| code.map_or("", |code| categories[code as usize].as_str())).collect()
        }
        _ => return None,
    };
    let distinct = values.iter().collect::<std::collections::HashSet<_>>().len();
    (distinct * 10 >= values.len() * 9).then(|| GeneNames::of(values.into_iter()).kind())
}
