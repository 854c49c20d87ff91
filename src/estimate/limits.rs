//! What a run may cost at most.

use super::{Estimate, Range};
use crate::error::{Error, Result};
use crate::trace::units::{format_bytes, format_duration};

/// Bounds that a user sets; a run whose upper bound is beyond one is not started.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Limits {
    /// Of the tasks, as they follow each other.
    pub hours: Option<f64>,
    /// Of one card.
    pub gpu_bytes: Option<u64>,
}

impl Limits {
    pub fn is_empty(&self) -> bool {
        *self == Limits::default()
    }

    /// # Errors
    /// Input: an upper bound is beyond a limit, or nothing is known: a limit is a promise.
    pub fn check(&self, estimate: &Estimate, on_a_card: bool) -> Result<()> {
        if let Some(hours) = self.hours {
            let Some(range) = estimate.seconds else { return Err(unknown("--max-hours", "time")) };
            let whole = range.plus(Range::exact(estimate.engine_seconds.unwrap_or(0.0)));
            if whole.high > hours * 3600.0 {
                let words = [whole.middle, whole.low, whole.high].map(duration);
                return Err(beyond(estimate, format!("--max-hours {hours}"), "time", words));
            }
        }
        if let Some(bytes) = self.gpu_bytes.filter(|_| on_a_card) {
            let Some(range) = estimate.peak_gpu_bytes else {
                return Err(unknown("--max-gpu-memory", "GPU memory"));
            };
            if range.high > bytes as f64 {
                let words = [range.middle, range.low, range.high].map(|bytes| format_bytes(bytes as u64));
                let limit = format!("--max-gpu-memory {}", format_bytes(bytes));
                return Err(beyond(estimate, limit, "GPU memory", words)
                    .hint("a smaller `--batch-size` takes less GPU memory"));
            }
        }
        Ok(())
    }
}

fn duration(seconds: f64) -> String {
    format_duration((seconds * 1e3) as u64)
}

fn unknown(option: &str, what: &str) -> Error {
    Error::input(format_args!("{option} cannot be kept to: the {what} of this run was never measured")).hint(
        "`scfoundry estimate … --probe 1000` measures it on a few cells; without the option the run starts",
    )
}

fn beyond(estimate: &Estimate, limit: String, what: &str, [middle, low, high]: [String; 3]) -> Error {
    let basis = estimate.basis.as_ref().map_or(String::new(), |basis| format!(", by {basis}"));
    Error::input(format_args!("not started: {limit} may not be enough"))
        .cause(format_args!("{what}: {middle}, from {low} to {high} in nine cases of ten{basis}"))
}

#[cfg(test)]
mod tests {
    use super::super::Basis;
    use super::*;

    #[test]
    fn the_upper_bound_counts_and_what_is_unknown_is_no_promise() {
        let range = Range { low: 3000.0, middle: 3600.0, high: 4000.0 };
        let known = Estimate {
            seconds: Some(range),
            engine_seconds: Some(2.0),
            peak_rss_bytes: None,
            peak_gpu_bytes: None,
            disk_bytes: 0,
            largest_batch_size: None,
            basis: Some(Basis {
                runs: 3,
                probes: 2,
                smallest_cells: 100,
                largest_cells: 1000,
                this_machine: true,
            }),
            unmeasured: Vec::new(),
        };
        let hours = |hours| Limits { hours: Some(hours), gpu_bytes: None };
        assert!(hours(2.0).check(&known, true).is_ok());
        let error = hours(1.05).check(&known, true).unwrap_err();
        assert_eq!(error.message, "not started: --max-hours 1.05 may not be enough");
        assert_eq!(error.kind.exit_code(), 3);
        assert!(error.causes[0].starts_with("time: 1h 00m"), "{}", error.causes[0]);
        assert!(error.causes[0].contains("3 runs"), "{}", error.causes[0]);
        let card = Limits { hours: None, gpu_bytes: Some(1 << 30) };
        assert!(card.check(&known, true).unwrap_err().message.contains("never measured"));
        assert!(card.check(&known, false).is_ok(), "no card is used");
    }
}
