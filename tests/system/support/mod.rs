//! What the tests of the whole share: the program, its two ends as processes, a client that notices what is not whole.

mod client;
pub(crate) mod firefox;
mod in_process;
mod local;
pub(crate) mod node;
mod pair;
mod program;
mod relay;
pub(crate) mod rough;
pub(crate) mod routed;

pub(crate) use client::{Answer, Body, get, open, raw, request, send};
pub(crate) use in_process::InProcess;
pub(crate) use local::Local;
pub(crate) use pair::{Pair, Trust, keygen};
pub(crate) use program::{Program, ended_with, farhop, refused};
pub(crate) use relay::Relay;

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
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

/// Lets a user in with a password.
pub(crate) fn add_user(file: &Path, name: &str, password: &str) {
    let mut command = farhop();
    let command = command.args(["user", "add"]).arg(file).arg(name).stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(password.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
}

/// Asks an end over its control socket; `None` while nobody answers there.
pub(crate) async fn ask(socket: &Path, command: &str) -> Option<Value> {
    let mut client = farhop_control::Client::connect(socket).await.ok()?;
    client.call(command, Value::Null).await.ok()
}
