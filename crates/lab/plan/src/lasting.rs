//! Tells of work while it lasts: whoever sees nothing for minutes thinks that nothing is done.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Does `work`, and each time that `every` has passed meanwhile tells for how long it has lasted.
pub(crate) fn told_while_lasting<T>(
    every: Duration,
    tell: &(dyn Fn(Duration) + Sync),
    work: impl FnOnce() -> T,
) -> T {
    let (working, ended) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let begin = Instant::now();
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(every) {
                tell(begin.elapsed());
            }
        });
        let done = work();
        drop(working);
        done
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn work_that_lasts_is_told_of_again_and_again_and_other_work_is_not() {
        let (told, listen) = channel();
        let told = Mutex::new(told);
        let tell = |time: Duration| told.lock().unwrap().send(time).unwrap_or_default();
        let heard = told_while_lasting(Duration::from_millis(1), &tell, || {
            [listen.recv().unwrap(), listen.recv().unwrap()]
        });
        assert!(heard[0] < heard[1]);
        let untold = told_while_lasting(Duration::from_secs(1000), &|_| panic!("it did not last"), || 7);
        assert_eq!(untold, 7);
    }
}
