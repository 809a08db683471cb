//! Whether this machine stood still: a thread of ordinary priority that looks often, and how long it once did not come to it.
//! The link's own threads go first and are only late with what is under way; clients and servers wait as this one does.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often it looks.
const LOOK: Duration = Duration::from_millis(10);

/// Looks until it is dropped.
pub(crate) struct Watch {
    seen: Arc<Standstill>,
    thread: Option<JoinHandle<()>>,
}

/// The longest time without a look.
#[derive(Default)]
pub(crate) struct Standstill {
    longest_us: AtomicU64,
    ended: AtomicBool,
}

impl Standstill {
    /// Since the last reset.
    pub(crate) fn longest(&self) -> Duration {
        Duration::from_micros(self.longest_us.load(Ordering::Relaxed))
    }

    /// The same, and begins anew.
    pub(crate) fn take(&self) -> Duration {
        Duration::from_micros(self.longest_us.swap(0, Ordering::Relaxed))
    }

    /// So much more than was slept went by between two looks.
    fn note(&self, more: Duration) {
        let micros = u64::try_from(more.as_micros()).unwrap_or(u64::MAX);
        self.longest_us.fetch_max(micros, Ordering::Relaxed);
    }
}

impl Watch {
    /// Begins.
    ///
    /// # Errors
    /// The system has no thread for it.
    pub(crate) fn start() -> io::Result<Watch> {
        let seen = Arc::new(Standstill::default());
        let noted = Arc::clone(&seen);
        let look = move || {
            while !noted.ended.load(Ordering::Relaxed) {
                let begin = Instant::now();
                std::thread::sleep(LOOK);
                noted.note(begin.elapsed().saturating_sub(LOOK));
            }
        };
        let thread = std::thread::Builder::new().name("link-watch".into()).spawn(look)?;
        Ok(Watch { seen, thread: Some(thread) })
    }

    /// What it sees.
    pub(crate) fn seen(&self) -> &Standstill {
        &self.seen
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.seen.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // its panic was printed
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_is_kept_until_it_is_taken() {
        let seen = Standstill::default();
        [3, 250, 7].into_iter().for_each(|ms| seen.note(Duration::from_millis(ms)));
        assert_eq!(seen.longest(), Duration::from_millis(250));
        assert_eq!((seen.take(), seen.longest()), (Duration::from_millis(250), Duration::ZERO));
    }
}
