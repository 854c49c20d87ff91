//! What the sampler of a task saw of its cards: `.gpu.csv` and `.gpu.err` in the task's work directory.
//!
//! The figures are those of whole cards, whoever used them; [`Samples::shared`] says whether that may have been others.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The samples in a task's work directory.
pub(crate) const ROWS: &str = ".gpu.csv";
/// What the sampler had to say beside them.
pub(crate) const COMPLAINTS: &str = ".gpu.err";

/// Memory in use on a card on which nothing runs: what the driver keeps for itself stays below this.
const IDLE_MIB: f64 = 600.0;
const MIB: f64 = (1 << 20) as f64;

/// Seconds between two samples beyond which the power in between is not known.
const GAP_SECONDS: f64 = 10.0;

/// The samples of one task, added up.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Samples {
    pub count: usize,
    pub cards: u32,
    /// The memory of the smallest card.
    pub card_bytes: Option<u64>,
    /// The most that was in use on one card.
    pub peak_bytes: Option<u64>,
    /// In use on all cards together at the last sample.
    pub newest_bytes: Option<u64>,
    /// Mean over all samples.
    pub utilization_percent: Option<f64>,
    /// Energy of all cards.
    pub joules: Option<f64>,
    /// Another program was on a card when the task began, or memory of it was in use.
    pub shared: bool,
}

/// The samples in a task's work directory; `None` where there are none.
pub fn read(work_directory: &Path) -> Option<Samples> {
    parse(&String::from_utf8_lossy(&fs::read(work_directory.join(ROWS)).ok()?))
}

/// The first thing that the sampler had to complain of, as one line without control characters.
pub(crate) fn complaint(written: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(written);
    let line = text.lines().find(|line| !line.trim().is_empty())?;
    Some(line.chars().filter(|letter| !letter.is_control()).take(200).collect())
}

struct Row<'a> {
    seconds: f64,
    uuid: &'a str,
    used_mib: Option<f64>,
    total_mib: Option<f64>,
    utilization: Option<f64>,
    watts: Option<f64>,
}

impl<'a> Row<'a> {
    /// A line that is whole; a value such as `[N/A]` is absent.
    fn of(line: &'a str) -> Option<Row<'a>> {
        let values: Vec<&str> = line.split(',').collect();
        let [seconds, _index, uuid, used, total, utilization, watts] = values[..] else { return None };
        let number = |text: &str| text.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0);
        Some(Row {
            seconds: number(seconds)?,
            uuid,
            used_mib: number(used),
            total_mib: number(total).filter(|mib| *mib > 0.0),
            utilization: number(utilization),
            watts: number(watts),
        })
    }
}

/// The samples of a text; `None` where there are none.
pub(crate) fn parse(text: &str) -> Option<Samples> {
    let others: BTreeSet<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# process ")?.split(' ').next()).collect();
    let mut cards: BTreeMap<&str, Vec<Row<'_>>> = BTreeMap::new();
    // A last line without its end may have lost part of a number.
    for row in text.split_inclusive('\n').filter_map(|line| Row::of(line.strip_suffix('\n')?)) {
        cards.entry(row.uuid).or_default().push(row);
    }
    if cards.is_empty() {
        return None;
    }
    let rows = || cards.values().flatten();
    let bytes = |mib: f64| (mib * MIB) as u64;
    let in_use_before = |rows: &Vec<Row<'_>>| rows[0].used_mib.is_some_and(|mib| mib > IDLE_MIB);
    let newest = cards.values().filter_map(|rows| rows.last()?.used_mib).reduce(|sum, mib| sum + mib);
    Some(Samples {
        count: rows().count(),
        cards: cards.len() as u32,
        card_bytes: rows().filter_map(|row| row.total_mib).reduce(f64::min).map(bytes),
        peak_bytes: rows().filter_map(|row| row.used_mib).reduce(f64::max).map(bytes),
        newest_bytes: newest.map(bytes),
        utilization_percent: mean(rows().filter_map(|row| row.utilization)),
        joules: cards.values().filter_map(|rows| joules(rows)).reduce(|sum, joules| sum + joules),
        shared: cards.iter().any(|(uuid, rows)| others.contains(uuid) || in_use_before(rows)),
    })
}

/// The mean of values, if there are any.
pub(crate) fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// The power of one card over time, by the trapezoidal rule.
fn joules(rows: &[Row<'_>]) -> Option<f64> {
    let known: Vec<(f64, f64)> = rows.iter().filter_map(|row| Some((row.seconds, row.watts?))).collect();
    known
        .windows(2)
        .map(|pair| (pair[1].0 - pair[0].0, (pair[0].1 + pair[1].1) / 2.0))
        .filter(|(seconds, _)| (0.0..=GAP_SECONDS).contains(seconds))
        .map(|(seconds, watts)| seconds * watts)
        .reduce(|sum, joules| sum + joules)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "time,index,uuid,memory_used_mib,memory_total_mib,utilization_percent,power_watts\n";

    #[test]
    fn peaks_means_and_energy() {
        let rows = "100,0,GPU-a,5,8192,0,50\n100,1,GPU-b,6,8192,20,[N/A]\n101,0,GPU-a,4000,8192,100,150.5\n\
            101,1,GPU-b,700,8192,40,[N/A]\n103,0,GPU-a,3000,8192,[N/A],149.5\n500,0,GPU-a,3000,8192,[N/A],100\n";
        let samples = parse(&format!("{HEADER}{rows}")).unwrap();
        assert_eq!((samples.count, samples.cards, samples.shared), (6, 2, false));
        assert_eq!(samples.card_bytes, Some(8192 << 20));
        assert_eq!((samples.peak_bytes, samples.newest_bytes), (Some(4000 << 20), Some(3700 << 20)));
        assert_eq!(samples.utilization_percent, Some(40.0));
        // One second at 100.25 W and two at 150 W; nobody knows of the minutes without a sample.
        assert_eq!(samples.joules, Some(400.25));
    }

    #[test]
    fn others_on_the_card_are_seen() {
        let row = |mib: u32| format!("100,0,GPU-a,{mib},8192,0,50\n");
        let shared = |text: &str| parse(text).unwrap().shared;
        assert!(!shared(&row(450)));
        assert!(shared(&row(900)));
        assert!(shared(&format!("{}# process GPU-a 4711\n", row(5))));
        assert!(!shared(&format!("{}# process GPU-b 4711\n", row(5))));
    }

    #[test]
    fn damage_is_left_out() {
        assert_eq!(parse(HEADER), None);
        assert_eq!(parse("100,0,GPU-a,900,8192,0,5"), None);
        let samples = parse("100,0,GPU-a,[N/A],8192,x,-5\n\u{0},,\n100,0,GPU-a,70").unwrap();
        assert_eq!((samples.count, samples.peak_bytes, samples.joules), (1, None, None));
        let folder = tempfile::tempdir().unwrap();
        assert_eq!((read(folder.path()), complaint(b" \n")), (None, None));
        assert_eq!(complaint(b"\nno \x1bdriver\nmore\n").as_deref(), Some("no driver"));
    }
}
