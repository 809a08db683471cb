//! The log on standard error, as the settings want it.

use std::io::IsTerminal;

use farhop_settings::LogLevel;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, fmt, reload};

/// Changes the level while the program runs.
pub(crate) struct Log(reload::Handle<EnvFilter, Registry>);

/// Starts the log.
pub(crate) fn start(level: LogLevel) -> Log {
    let (filter, handle) = reload::Layer::new(filter(level));
    let lines = fmt::layer()
        .with_writer(std::io::stderr)
        .log_internal_errors(false) // it would panic where standard error is full
        .with_target(false)
        .with_ansi(std::io::stderr().is_terminal());
    // Fails only where a log runs already, as in a process that starts two ends.
    let _ = tracing_subscriber::registry().with(filter).with(lines).try_init();
    Log(handle)
}

impl Log {
    /// Puts a level into force.
    pub(crate) fn set(&self, level: LogLevel) {
        // Fails only when the log is gone, and nothing can be said then.
        let _ = self.0.reload(filter(level));
    }
}

/// Farhop at the wished level; the libraries below speak up only when something is wrong.
fn filter(level: LogLevel) -> EnvFilter {
    let rest = if level == LogLevel::Trace { "debug" } else { "error" };
    let own: String =
        ["", "_remote", "_ground", "_transport", "_front", "_origin", "_control", "_store", "_link"]
            .iter()
            .map(|name| format!(",farhop{name}={}", level.as_str()))
            .collect();
    EnvFilter::new(format!("{rest}{own}"))
}
