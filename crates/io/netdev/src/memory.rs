//! What this process keeps of the memory that it has freed.

use std::time::Duration;

#[cfg(target_env = "gnu")]
use nix::time::{ClockId, clock_gettime};

/// How often the watch looks, and how much of that time a process may work which has nothing to do.
const LOOK: Duration = Duration::from_secs(4);
const NOTHING: Duration = Duration::from_millis(40);
/// Who has worked less since memory was last given back has freed little.
const LITTLE: Duration = Duration::from_millis(200);

/// Has memory of 4 MB and more go back to the system as soon as it is freed. Once glibc has seen such a block freed it would take
/// the next ones from its arenas, and keep what these have grown to; threads have arenas of their own (mallopt(3)).
pub fn give_back_large_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it sets a number of the allocator, which is behind a lock there.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 4 << 20);
    }
}

/// Has the memory that this process has freed go back to the system whenever it has nothing to do after it had much: glibc
/// keeps what lies below anything still used, and after a busy hour that is most (malloc_trim(3)).
pub fn give_back_memory_when_idle() {
    #[cfg(target_env = "gnu")]
    // Without the thread everything works as it did, in more memory.
    let _ = std::thread::Builder::new().name("idle memory".into()).spawn(|| {
        let mut watch = Watch::default();
        loop {
            std::thread::sleep(LOOK);
            let worked =
                clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map_or(Duration::ZERO, Duration::from);
            if watch.is_time(worked) {
                // SAFETY: it takes no pointer, and the allocator's own locks.
                unsafe { libc::malloc_trim(0) };
            }
        }
    });
}

/// Tells when a process has come to rest.
#[derive(Debug, Default)]
struct Watch {
    /// How long it had worked when it was last looked at, and when its memory was last given back.
    worked: Duration,
    given_back: Duration,
}

impl Watch {
    /// Whether it has done much since its memory was given back, and nothing since it was last looked at; all that it `worked`
    /// so far is this.
    fn is_time(&mut self, worked: Duration) -> bool {
        let rests = worked.saturating_sub(self.worked) <= NOTHING;
        self.worked = worked;
        let is_time = rests && worked.saturating_sub(self.given_back) >= LITTLE;
        if is_time {
            self.given_back = worked;
        }
        is_time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_env = "gnu")]
    #[test]
    fn large_memory_is_given_back_also_when_it_was_before() {
        let resident = || {
            let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
            pages.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
        };
        give_back_large_memory();
        let before = resident();
        for _ in 0..3 {
            // On threads, as each has an arena; written, so that it is really there; with something above it that stays.
            let kept = std::thread::spawn(|| {
                let large = vec![1_u8; 20 << 20];
                let kept = vec![1_u8; 64];
                drop(std::hint::black_box(large));
                kept
            });
            std::mem::forget(kept.join().unwrap());
        }
        assert!(resident() < before + (10 << 20), "{} bytes were kept", resident() - before);
    }

    #[test]
    fn memory_is_given_back_once_after_work_and_never_meanwhile() {
        const S: Duration = Duration::from_secs(1);
        let mut watch = Watch::default();
        let at_work = [1, 3, 6, 8].map(|worked| watch.is_time(worked * S));
        assert_eq!(at_work, [false; 4]);
        let resting = [0, 30, 60, 90].map(|more| watch.is_time(8 * S + Duration::from_millis(more)));
        assert_eq!(resting, [true, false, false, false]);
        assert!(!watch.is_time(20 * S));
        assert!(watch.is_time(20 * S));
    }
}
