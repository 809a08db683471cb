//! What a thread that must be on time asks of the kernel: priority, exact timers, waiting, its own CPU time.

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Duration;

/// Puts the calling thread under SCHED_FIFO at `priority` (1 to 99), so that ordinary work cannot delay it.
///
/// # Errors
/// The system does not allow it; the thread goes on as before.
pub fn realtime_priority(priority: i32) -> io::Result<()> {
    let parameter = libc::sched_param { sched_priority: priority };
    // SAFETY: pid 0 means the calling thread, and the parameter lives through the call.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Lets timers of the calling thread fire when they are due. Without it, or a real-time priority, the
/// kernel may batch them by 50 µs.
pub fn precise_timers() {
    // Best effort: a kernel without this setting is only less exact, and the lateness shows it.
    let _ = nix::sys::prctl::set_timerslack(1);
}

/// Keeps the processors from sleeping deeply while it lives, as cyclictest does: waking a halted one takes a
/// virtual machine's host tens of microseconds at best and milliseconds at worst. Costs power, so it is held
/// only while something measures (Linux's Documentation/power/pm_qos_interface.rst).
#[derive(Debug)]
pub struct AwakeProcessors(#[expect(dead_code, reason = "closing it ends the request")] File);

impl AwakeProcessors {
    /// Asks for a wake-up latency of zero.
    ///
    /// # Errors
    /// The system does not allow it, or does not know it; processors go on sleeping.
    pub fn request() -> io::Result<Self> {
        let mut file = File::options().write(true).open("/dev/cpu_dma_latency")?;
        file.write_all(&0_i32.to_ne_bytes())?;
        Ok(AwakeProcessors(file))
    }
}

/// Keeps the calling thread on one processor, counted from 0.
///
/// # Errors
/// There is no such processor, or it is not for this process.
pub fn run_on_processor(number: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(number)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}

/// CPU time, user and system, that the calling thread has used.
pub fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

/// Waits until one of `sources` is readable or `timeout` has passed; without a timeout, for ever. May also
/// return early.
///
/// # Errors
/// A descriptor is not valid.
pub fn wait_readable(sources: &[BorrowedFd<'_>], timeout: Option<Duration>) -> io::Result<()> {
    let mut polled: Vec<_> = sources.iter().map(|source| PollFd::new(*source, PollFlags::POLLIN)).collect();
    match ppoll(&mut polled, timeout.map(TimeSpec::from), None) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Wakes a thread that waits in [`wait_readable`].
#[derive(Debug)]
pub struct Waker(EventFd);

impl Waker {
    /// A waker that nothing has touched yet.
    ///
    /// # Errors
    /// Out of descriptors.
    pub fn new() -> io::Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        Ok(Waker(EventFd::from_value_and_flags(0, flags)?))
    }

    /// Wakes the thread, now or at its next wait.
    pub fn wake(&self) {
        let _ = self.0.write(1); // fails only if it is full of wakes already
    }

    /// Forgets the wakes so far.
    pub fn clear(&self) {
        let _ = self.0.read(); // fails only if there were none
    }

    /// What to wait for.
    pub fn source(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waker_ends_a_wait_without_a_timeout() {
        let (waker, other) = (Waker::new().unwrap(), Waker::new().unwrap());
        waker.wake();
        wait_readable(&[waker.source(), other.source()], None).unwrap();
        waker.clear();
        wait_readable(&[waker.source(), other.source()], Some(Duration::ZERO)).unwrap();
    }

    #[test]
    fn cpu_time_counts_the_threads_own_work() {
        let before = cpu_time();
        while cpu_time() == before {
            std::hint::black_box(0);
        }
        assert!(cpu_time() > before);
    }
}
