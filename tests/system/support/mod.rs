//! What the tests of the whole share: the program, its two ends as processes, a client that notices what is not whole.

mod client;
mod in_process;
mod local;
mod pair;
mod program;

pub(crate) use client::{Answer, Body, get, open, raw, request, send};
pub(crate) use in_process::InProcess;
pub(crate) use local::Local;
pub(crate) use pair::{Pair, Trust, keygen};
pub(crate) use program::{Program, ended_with, farhop, refused};

use std::time::Duration;

use serde_json::Value;

/// Nothing in these tests takes so long unless it hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// Waits until `look` finds something; `what` is said when it never does.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let wait = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let found = tokio::time::timeout(PATIENCE, wait).await;
    found.unwrap_or_else(|_| panic!("waited {PATIENCE:?} in vain until {what}"))
}

/// Asks an end over its control socket; `None` while nobody answers there.
pub(crate) async fn ask(socket: &std::path::Path, command: &str) -> Option<Value> {
    let mut client = farhop_control::Client::connect(socket).await.ok()?;
    client.call(command, Value::Null).await.ok()
}
