//! A plain text table: aligned columns, as wide as the terminal at most.

use std::fmt;

/// What separates two columns.
const GAP: &str = "  ";

/// The least width, in characters, that trimming leaves of a column.
const NARROWEST: usize = 8;

/// What stands in a cell that has no value.
pub const ABSENT: &str = "-";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Align {
    Left,
    Right,
}

/// The head of one column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    title: String,
    align: Align,
    trimmed: bool,
}

impl Column {
    /// A column of words, aligned left.
    pub fn text(title: impl Into<String>) -> Column {
        Column { title: title.into(), align: Align::Left, trimmed: false }
    }

    /// A column of numbers, aligned right.
    pub fn number(title: impl Into<String>) -> Column {
        Column { title: title.into(), align: Align::Right, trimmed: false }
    }

    /// Lets the column be cut in the middle of its values where the table is too wide.
    pub fn trimmed(mut self) -> Column {
        self.trimmed = true;
        self
    }
}

/// Rows under a header, and rows of totals under a line. [`fmt::Display`] writes it at its natural width.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
    totals: Vec<Vec<String>>,
}

impl Table {
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Table {
        Table { columns: columns.into_iter().collect(), rows: Vec::new(), totals: Vec::new() }
    }

    /// Adds a row; missing and empty cells are written `-`, surplus ones are dropped.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        let row = self.cells(cells, ABSENT);
        self.rows.push(row);
    }

    /// Adds a row of totals, under a line below the others; missing and empty cells stay empty.
    pub fn total<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        let row = self.cells(cells, "");
        self.totals.push(row);
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn cells<S: Into<String>>(&self, cells: impl IntoIterator<Item = S>, absent: &str) -> Vec<String> {
        let mut row: Vec<String> = cells.into_iter().map(|cell| one_line(&cell.into())).collect();
        row.resize(self.columns.len(), String::new());
        for cell in row.iter_mut().filter(|cell| cell.is_empty()) {
            absent.clone_into(cell);
        }
        row
    }

    /// The table as text without a last line end; no line is wider than `width` where trimming can make it so.
    pub fn render(&self, width: Option<usize>) -> String {
        let widths = self.widths(width);
        let titles: Vec<String> = self.columns.iter().map(|column| column.title.clone()).collect();
        let mut lines = vec![self.line(&titles, &widths)];
        lines.extend(self.rows.iter().map(|row| self.line(row, &widths)));
        if !self.totals.is_empty() {
            let rule = widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1);
            lines.push("-".repeat(rule));
            lines.extend(self.totals.iter().map(|row| self.line(row, &widths)));
        }
        lines.join("\n")
    }

    fn widths(&self, limit: Option<usize>) -> Vec<usize> {
        let mut widths: Vec<usize> = self.columns.iter().map(|column| length(&column.title)).collect();
        for row in self.rows.iter().chain(&self.totals) {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(length(cell));
            }
        }
        let Some(limit) = limit else { return widths };
        let full = widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1);
        let mut excess = full.saturating_sub(limit);
        while excess > 0 {
            let widest = (0..widths.len())
                .filter(|&at| self.columns[at].trimmed && widths[at] > self.narrowest(at))
                .max_by_key(|&at| widths[at]);
            let Some(at) = widest else { break };
            widths[at] -= 1;
            excess -= 1;
        }
        widths
    }

    fn narrowest(&self, at: usize) -> usize {
        length(&self.columns[at].title).max(NARROWEST)
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let padded: Vec<String> = cells
            .iter()
            .zip(widths)
            .zip(&self.columns)
            .map(|((cell, &width), column)| {
                let cell = trim_middle(cell, width);
                match column.align {
                    Align::Left => format!("{cell:<width$}"),
                    Align::Right => format!("{cell:>width$}"),
                }
            })
            .collect();
        padded.join(GAP).trim_end().to_owned()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(None))
    }
}

/// The width of the terminal that stdout is, in characters; `None` where it is none.
pub fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|&columns| columns > 0)
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// A value from a file must not break the table: what would move the cursor becomes a space.
fn one_line(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

/// The text at most `width` characters long: of a longer one the middle gives way to `…`.
fn trim_middle(text: &str, width: usize) -> String {
    let total = length(text);
    if total <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(1);
    let head = kept.div_ceil(2);
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(total - (kept - head)).collect();
    format!("{start}…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table =
            Table::new([Column::text("task").trimmed(), Column::number("wall"), Column::text("status")]);
        table.row(["EMBED:PCA (pbmc_a)", "12.3 s", "ok"]);
        table.row(["γδ T", "", "failed"]);
        table
    }

    #[test]
    fn aligns_by_characters_and_marks_the_absent() {
        let expected = "\
task                  wall  status
EMBED:PCA (pbmc_a)  12.3 s  ok
γδ T                     -  failed";
        assert_eq!(table().to_string(), expected);
    }

    #[test]
    fn totals_stand_under_a_line_and_keep_empty_cells() {
        let mut table = table();
        table.total(["total", "12.3 s"]);
        let text = table.to_string();
        let last: Vec<&str> = text.lines().rev().take(2).collect();
        assert_eq!(last, ["total               12.3 s", "-".repeat(34).as_str()]);
    }

    #[test]
    fn trims_the_middle_of_the_column_that_allows_it() {
        let text = table().render(Some(28));
        assert_eq!(text.lines().nth(1), Some("EMBED:…mc_a)  12.3 s  ok"));
        assert!(text.lines().all(|line| line.chars().count() <= 28), "{text}");
    }

    #[test]
    fn never_trims_below_the_narrowest() {
        let text = table().render(Some(3));
        assert_eq!(text.lines().nth(1), Some("EMBE…_a)  12.3 s  ok"));
        assert_eq!(text.lines().nth(2), Some("γδ T           -  failed"));
    }

    #[test]
    fn a_value_cannot_break_the_table() {
        let mut table = Table::new([Column::text("name")]);
        table.row(["a\nb\u{1b}[2J\tc"]);
        assert_eq!(table.to_string(), "name\na b [2J c");
        table.row(Vec::<String>::new());
        table.row(["one", "too many"]);
        assert_eq!(table.to_string().lines().count(), 4);
    }
}
