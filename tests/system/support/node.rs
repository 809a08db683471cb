//! Scripts beside these tests that drive Chromium, run by node.

use std::path::Path;
use std::process::{Command, Stdio};

use farhop_workload::browser::Browser;
use serde_json::{Value, json};

/// The browser of this machine, if it can be driven; says what is missing.
pub(crate) fn chromium() -> Option<Browser> {
    Browser::at_hand(Path::new(env!("CARGO_MANIFEST_DIR")))
}

/// Runs `script` (a file of `tests/system`) with `order`, to which the browser is added; gives what it prints. The
/// browser believes the certificates in `home`, where there is one.
pub(crate) async fn run(browser: &Browser, script: &str, mut order: Value, home: Option<&Path>) -> Value {
    order["playwright"] = json!(browser.node.join("node_modules/playwright-core"));
    order["executable"] = json!(browser.executable);
    let temporary = tempfile::tempdir().unwrap();
    let mut command = Command::new("node");
    command.arg(format!("{}/../../tests/system/{script}", env!("CARGO_MANIFEST_DIR")));
    command.arg(order.to_string()).env("TMPDIR", temporary.path()).stdin(Stdio::null());
    if let Some(home) = home {
        command.env("HOME", home);
    }
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}
