//! How quiet the machine itself is: how late it wakes a thread that should be on time. Bounds of microseconds
//! say nothing about the emulator while the machine's host gives its processors to others.

use farhop_netdev::{precise_timers, realtime_priority, run_on_processor};
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Between two wake-ups.
const PERIOD: Duration = Duration::from_millis(2);

/// Just below the emulator's own threads, which must not wait for this one.
const PRIORITY: i32 = 48;

/// Runs `work` and tells, beside its result, the 99th percentile of how late real-time threads that did nothing
/// else woke meanwhile (as cyclictest measures it), on the worst of the processors.
pub(crate) fn lateness_during<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let done = AtomicBool::new(false);
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        let sleepers: Vec<_> = (0..processors)
            .map(|processor| {
                let done = &done;
                scope.spawn(move || lateness_on(processor, done))
            })
            .collect();
        let result = work();
        done.store(true, Ordering::Relaxed);
        let worst = sleepers.into_iter().filter_map(|sleeper| sleeper.join().ok()).max();
        (result, worst.unwrap_or_default())
    })
}

fn lateness_on(processor: usize, done: &AtomicBool) -> Duration {
    precise_timers();
    // Without these it tells how late some ordinary thread is, which is no less.
    let _ = (run_on_processor(processor), realtime_priority(PRIORITY));
    let (mut due, mut late) = (Instant::now(), Vec::new());
    loop {
        // A fixed timetable: whoever oversleeps several wake-ups was late for each of them.
        due += PERIOD;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        late.push(due.elapsed());
        // After the first: however short the work was, something is measured.
        if done.load(Ordering::Relaxed) {
            break;
        }
    }
    late.sort();
    late.get((late.len() * 99).div_ceil(100).saturating_sub(1)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_tells_the_works_result_and_measures_meanwhile() {
        let (result, late) = lateness_during(|| 7);
        assert_eq!(result, 7);
        assert!(late > Duration::ZERO);
    }
}
