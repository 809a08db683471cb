//! The signals that an end obeys. They are listened to before it says that it is up: whoever waits for that may send one at once.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Signals that come from here on.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

/// What one says.
pub(crate) enum Told {
    /// SIGTERM or SIGINT: to end.
    End,
    /// SIGHUP: to read the settings anew.
    ReadAnew,
}

impl Signals {
    /// Listens to them.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn listen() -> io::Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// The next one.
    pub(crate) async fn next(&mut self) -> Told {
        tokio::select! {
            _ = self.terminate.recv() => Told::End,
            _ = self.interrupt.recv() => Told::End,
            _ = self.hangup.recv() => Told::ReadAnew,
        }
    }
}
