//! Ctrl-C and its kin as a flag, so that everything is taken down in order on the way out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use farhop_testbed::Running;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::CompareError;

/// How often a wait looks at what it waits for.
const LOOK: Duration = Duration::from_millis(10);

/// Whether the user wants it to end.
#[derive(Debug, Clone)]
pub struct Interrupt(Arc<AtomicBool>);

/// How a wait for a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The process did.
    Exited,
    /// It came as far as it was waited for.
    SoFar,
    /// Patience did.
    Late,
}

impl Interrupt {
    /// Takes the signals over. To be called before a testbed comes up, which else ends the process itself.
    ///
    /// # Errors
    /// The system refuses signal handlers.
    pub fn install() -> Result<Interrupt, CompareError> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // The second one ends at once: kernel objects still go, since their janitor sees its owner's end.
            signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, flag.clone())
                .and_then(|_| signal_hook::flag::register(signal, flag.clone()))
                .map_err(CompareError::file("signal handler"))?;
        }
        Ok(Interrupt(flag))
    }

    /// Whether the signal has come.
    ///
    /// # Errors
    /// It has.
    pub fn check(&self) -> Result<(), CompareError> {
        if self.0.load(Ordering::Relaxed) { Err(CompareError::Interrupted) } else { Ok(()) }
    }

    /// Waits for a time.
    ///
    /// # Errors
    /// The signal has come.
    pub fn sleep(&self, time: Duration) -> Result<(), CompareError> {
        let until = Instant::now() + time;
        while Instant::now() < until {
            self.check()?;
            std::thread::sleep(LOOK.min(until.saturating_duration_since(Instant::now())));
        }
        self.check()
    }

    /// Waits for a process.
    pub(crate) fn wait(&self, process: &mut Running, patience: Duration) -> Result<Ended, CompareError> {
        self.wait_until(process, patience, &|| false)
    }

    /// Waits for a process to come so far, or to end.
    pub(crate) fn wait_until(
        &self,
        process: &mut Running,
        patience: Duration,
        is_so_far: &dyn Fn() -> bool,
    ) -> Result<Ended, CompareError> {
        let deadline = Instant::now() + patience;
        loop {
            if matches!(process.try_wait(), Ok(Some(_)) | Err(_)) {
                return Ok(Ended::Exited);
            }
            if is_so_far() {
                return Ok(Ended::SoFar);
            }
            if Instant::now() > deadline {
                return Ok(Ended::Late);
            }
            self.sleep(LOOK)?;
        }
    }

    /// Waits for the user to want the end.
    pub(crate) fn until_asked(&self) {
        while self.check().is_ok() {
            std::thread::sleep(LOOK);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_that_is_up_ends_every_wait() {
        let interrupt = Interrupt(Arc::new(AtomicBool::new(true)));
        assert!(matches!(interrupt.sleep(Duration::from_secs(1000)), Err(CompareError::Interrupted)));
        interrupt.until_asked();
    }

    #[test]
    fn a_process_is_waited_for_as_long_as_patience_lasts() {
        let interrupt = Interrupt(Arc::default());
        let start = |line: &str| Running::start(std::process::Command::new("sh").args(["-c", line])).unwrap();
        assert_eq!(interrupt.wait(&mut start("exit 3"), Duration::from_secs(60)).unwrap(), Ended::Exited);
        assert_eq!(interrupt.wait(&mut start("sleep 1000"), Duration::ZERO).unwrap(), Ended::Late);
        let so_far = interrupt.wait_until(&mut start("sleep 1000"), Duration::from_secs(60), &|| true);
        assert_eq!(so_far.unwrap(), Ended::SoFar);
    }
}
