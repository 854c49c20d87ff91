//! The report: findings, facts and a verdict, as text and as JSON.

use std::fmt;

use serde::Serialize;

use super::facts::Facts;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The file keeps this part of the contract.
    Ok,
    /// Worth knowing, needs nothing.
    Info,
    /// The run works, but look first.
    Warn,
    /// The run fails or gives wrong values.
    Fail,
}

impl Level {
    /// The word in brackets at the start of a line, four characters wide.
    pub fn tag(self) -> &'static str {
        match self {
            Level::Ok => "OK  ",
            Level::Info => "INFO",
            Level::Warn => "WARN",
            Level::Fail => "FAIL",
        }
    }
}

/// One thing that the check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub level: Level,
    /// Stable kebab-case identifier for scripts, such as `not-counts`.
    pub code: &'static str,
    /// One sentence without a full stop.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Finding {
    pub(super) fn new(level: Level, code: &'static str, message: impl Into<String>) -> Self {
        Finding { level, code, message: message.into(), hint: None }
    }

    pub(super) fn ok(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Level::Ok, code, message)
    }

    pub(super) fn info(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Level::Info, code, message)
    }

    pub(super) fn warn(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Level::Warn, code, message)
    }

    pub(super) fn fail(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Level::Fail, code, message)
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Findings of each level.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub ok: usize,
    pub info: usize,
    pub warn: usize,
    pub fail: usize,
}

/// The worst level among the findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Verdict {
    Pass,
    Warn,
    Fail,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Pass => "PASS",
            Verdict::Warn => "WARN",
            Verdict::Fail => "FAIL",
        })
    }
}

/// What the check of one file found. Serialised, it is the JSON document of version `schema`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Version of this document's shape: 1.
    pub schema: u32,
    /// Path of the file, as given.
    pub file: String,
    /// Name of the method whose needs were checked; absent: any method's.
    pub method: Option<String>,
    pub cells: usize,
    pub genes: usize,
    pub verdict: Verdict,
    pub counts: Counts,
    /// In the order: matrix, cells, genes, labels, batches, method.
    pub findings: Vec<Finding>,
    pub facts: Facts,
}

impl Report {
    pub(super) fn new(
        file: String,
        method: Option<String>,
        (cells, genes): (usize, usize),
        findings: Vec<Finding>,
        facts: Facts,
    ) -> Self {
        let mut counts = Counts::default();
        for finding in &findings {
            match finding.level {
                Level::Ok => counts.ok += 1,
                Level::Info => counts.info += 1,
                Level::Warn => counts.warn += 1,
                Level::Fail => counts.fail += 1,
            }
        }
        let verdict = match counts {
            Counts { fail: 1.., .. } => Verdict::Fail,
            Counts { warn: 1.., .. } => Verdict::Warn,
            _ => Verdict::Pass,
        };
        Report { schema: 1, file, method, cells, genes, verdict, counts, findings, facts }
    }

    /// The first finding with this code.
    pub fn finding(&self, code: &str) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.code == code)
    }
}

/// The text form: a line per finding with its hint indented below, a count line, the verdict; every line ended.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            writeln!(f, "[{}] {}", finding.level.tag(), finding.message)?;
            if let Some(hint) = &finding.hint {
                writeln!(f, "       hint: {hint}")?;
            }
        }
        let Counts { ok, info, warn, fail } = self.counts;
        writeln!(f, "{ok} OK, {info} INFO, {warn} WARN, {fail} FAIL")?;
        writeln!(f, "Verdict: {}", self.verdict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(levels: &[Level]) -> Report {
        let findings = levels.iter().map(|&level| Finding::new(level, "code", "message")).collect();
        Report::new("a.h5ad".into(), None, (2, 3), findings, Facts::default())
    }

    #[test]
    fn the_verdict_is_the_worst_level() {
        assert_eq!(report(&[Level::Ok, Level::Info]).verdict, Verdict::Pass);
        assert_eq!(report(&[Level::Ok, Level::Warn]).verdict, Verdict::Warn);
        assert_eq!(report(&[Level::Fail, Level::Warn]).verdict, Verdict::Fail);
    }

    #[test]
    fn text_has_a_line_a_finding_then_the_counts_and_the_verdict() {
        let mut report = report(&[Level::Ok, Level::Info, Level::Warn, Level::Fail]);
        report.findings[3].hint = Some("do this".into());
        let expected = "[OK  ] message\n[INFO] message\n[WARN] message\n[FAIL] message\n       hint: do this\n\
                        1 OK, 1 INFO, 1 WARN, 1 FAIL\nVerdict: FAIL\n";
        assert_eq!(report.to_string(), expected);
    }

    #[test]
    fn json_carries_the_schema_and_words() {
        let json = serde_json::to_value(report(&[Level::Warn])).unwrap();
        assert_eq!(json["schema"], 1);
        assert_eq!(json["verdict"], "WARN");
        assert_eq!(json["findings"][0]["level"], "warn");
        assert_eq!(json["counts"]["warn"], 1);
    }
}
