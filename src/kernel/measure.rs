//! What each part of a kernel cost: wall time and peak memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::usage::{Phase, own_peak_rss_bytes, own_rss_bytes};

/// How often resident memory is looked at: a growth that ends within this time may be missed.
const INTERVAL: Duration = Duration::from_millis(10);

/// Measures one part after another.
///
/// The peak of a part that raises the process's own is exact (`VmHWM`); below that it is sampled, since to reset the
/// process's peak would falsify what the engine reads for its trace.
#[derive(Debug)]
pub struct Meter {
    phases: Vec<Phase>,
    sampler: Sampler,
}

impl Meter {
    pub fn new() -> Meter {
        Meter { phases: Vec::new(), sampler: Sampler::start() }
    }

    /// Does `work` as a part of its own.
    pub fn run<T>(&mut self, name: &str, work: impl FnOnce() -> T) -> T {
        let before = own_peak_rss_bytes();
        self.sampler.peak.store(own_rss_bytes().unwrap_or(0), Ordering::Relaxed);
        let start = Instant::now();
        let result = work();
        let seconds = start.elapsed().as_secs_f64();
        let after = own_peak_rss_bytes();
        let sampled = self.sampler.peak.load(Ordering::Relaxed).max(own_rss_bytes().unwrap_or(0));
        let peak_rss_bytes = if after > before { after } else { Some(sampled).filter(|&bytes| bytes > 0) };
        self.phases.push(Phase { name: name.to_owned(), seconds, peak_rss_bytes });
        result
    }

    /// The parts so far, in order.
    pub fn phases(&self) -> &[Phase] {
        &self.phases
    }
}

impl Default for Meter {
    fn default() -> Self {
        Meter::new()
    }
}

/// A thread that keeps the largest resident size it has seen. It ends when dropped.
#[derive(Debug)]
struct Sampler {
    peak: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Sampler {
    fn start() -> Sampler {
        let peak = Arc::new(AtomicU64::new(0));
        let seen = Arc::downgrade(&peak);
        let thread = thread::Builder::new().name("memory".to_owned()).spawn(move || {
            while let Some(peak) = seen.upgrade() {
                peak.fetch_max(own_rss_bytes().unwrap_or(0), Ordering::Relaxed);
                drop(peak);
                thread::sleep(INTERVAL);
            }
        });
        // Without a thread only what raises the process's peak is known.
        Sampler { peak, thread: thread.ok() }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.peak = Arc::default();
        if let Some(thread) = self.thread.take() {
            // It holds nothing that could be lost with it.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_timed_and_its_memory_seen() {
        let mut meter = Meter::new();
        let before = own_rss_bytes().unwrap();
        meter.run("grow", || {
            let block = std::hint::black_box(vec![1u8; 64 << 20]);
            thread::sleep(INTERVAL * 3);
            assert_eq!(block.iter().step_by(4096).map(|&byte| u64::from(byte)).sum::<u64>(), 16_384);
        });
        meter.run("rest", || thread::sleep(INTERVAL * 3));
        let [grow, rest] = meter.phases() else { panic!("two parts") };
        assert!(grow.seconds >= 0.03 && rest.seconds >= 0.03);
        assert!(grow.peak_rss_bytes.unwrap() >= before + (60 << 20));
        assert!(rest.peak_rss_bytes.unwrap() > 0);
    }
}
