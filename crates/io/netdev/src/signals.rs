//! The way out on a signal: janitors first, then the end that the signal would have brought. Also the
//! interrupt key while a shell of the user's runs in the foreground. No other handling of signals.

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, raise, sigaction, signal};
use std::io::{PipeReader, Read as _};
use std::os::fd::IntoRawFd as _;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use crate::janitor;

/// Set once a signal is ending this process.
static ENDING: AtomicBool = AtomicBool::new(false);

/// The write end of the pipe that `note` fills; −1 until there is one.
static PIPE: AtomicI32 = AtomicI32::new(-1);

extern "C" fn note(number: libc::c_int) {
    let byte = number as u8; // signal numbers are below 65
    // SAFETY: write(2) is async-signal-safe; the descriptor is valid for the life of the process, and
    // one byte is read from a live local.
    unsafe {
        libc::write(PIPE.load(Ordering::Relaxed), (&raw const byte).cast(), 1);
    }
}

/// From now on SIGINT, SIGTERM and SIGHUP run the janitors first. A signal that the program handles or
/// ignores is left as it is.
pub(crate) fn finish_janitors_on_signals() {
    let Ok((reader, writer)) = std::io::pipe() else {
        return; // out of descriptors; the janitors still see the owner's end
    };
    PIPE.store(writer.into_raw_fd(), Ordering::Relaxed);
    let waiting = std::thread::Builder::new().name("signals".into()).spawn(move || wait(reader));
    if waiting.is_err() {
        return;
    }
    let action = SigAction::new(SigHandler::Handler(note), SaFlags::SA_RESTART, SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        if is_default(signal) {
            // SAFETY: `note` does nothing but one async-signal-safe write.
            let _ = unsafe { sigaction(signal, &action) };
        }
    }
}

fn is_default(signal: Signal) -> bool {
    // SAFETY: a null new action only reads the present one, into a live zeroed struct.
    unsafe {
        let mut present: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal as libc::c_int, std::ptr::null(), &raw mut present) == 0
            && present.sa_sigaction == libc::SIG_DFL
    }
}

fn wait(mut reader: PipeReader) {
    let mut number = [0u8];
    if reader.read_exact(&mut number).is_err() {
        return;
    }
    ENDING.store(true, Ordering::Release);
    janitor::finish_all();
    let Ok(number) = Signal::try_from(libc::c_int::from(number[0])) else {
        std::process::exit(1); // not reached: only `note` writes here
    };
    // SAFETY: the default action is no handler at all.
    let _ = unsafe { signal(number, SigHandler::SigDfl) };
    let _ = raise(number);
    // Only a thread that blocks the signal gets here; end as a shell would say it.
    std::process::exit(128 + number as i32);
}

/// Holds the calling thread if a signal is ending the process. Its children have just been killed for that
/// reason; what it would make of their deaths must not become the exit code.
pub(crate) fn wait_for_the_end() {
    while ENDING.load(Ordering::Acquire) {
        std::thread::park();
    }
}

/// While this lives, SIGINT and SIGQUIT do nothing to this process; children started through
/// [`crate::Namespace::prepare`] take them as usual.
#[derive(Debug)]
pub struct IgnoredInterrupt(Vec<(Signal, SigAction)>);

/// Ignores the keys that a terminal sends to everyone in the foreground, as system(3) does while the
/// user's own shell runs.
pub fn ignore_interrupt() -> IgnoredInterrupt {
    let ignore = SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty());
    let ignored = [Signal::SIGINT, Signal::SIGQUIT].into_iter().filter_map(|signal| {
        // SAFETY: ignoring a signal runs no code of ours.
        let before = unsafe { sigaction(signal, &ignore) }.ok()?;
        Some((signal, before))
    });
    IgnoredInterrupt(ignored.collect())
}

impl Drop for IgnoredInterrupt {
    fn drop(&mut self) {
        for (signal, before) in &self.0 {
            // SAFETY: puts back the action that was in force before, valid then and now.
            let _ = unsafe { sigaction(*signal, before) };
        }
    }
}
