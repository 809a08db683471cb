//! `http://farhop.internal/` in a real browser that runs no script. Needs node, Chromium and playwright-core (`./run test`
//! installs them); without them the test says so and passes over.

use std::path::Path;
use std::process::{Command, Stdio};

use farhop_workload::browser::Browser;
use serde_json::{Value, json};

use crate::support::Local;

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_without_scripts_reads_the_portal_and_switches_what_it_offers() {
    let Some(browser) = Browser::at_hand(Path::new(env!("CARGO_MANIFEST_DIR"))) else { return };
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    let mut local = Local::start(&["--intercept", "--ca-out", ca.to_str().unwrap()]).await;
    let order = json!({
        "playwright": browser.node.join("node_modules/playwright-core"),
        "executable": browser.executable,
        "proxy": local.proxy.to_string(),
        "pac": format!("http://{}/proxy.pac", local.proxy),
        "folder": folder.path(),
    });
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/system/portal.cjs");
    let mut command = Command::new("node");
    command.arg(script).arg(order.to_string()).stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    let says = |page: &str, words: &str| seen[page].as_str().unwrap().contains(words);

    assert!(says("before", "Accelerated") && says("before", "The satellite link is up"), "{seen}");
    assert!(says("withSite", "Left alone for you") && says("withSite", "bank.example"), "{seen}");
    assert!(!says("withoutSite", "Left alone for you"), "{seen}");
    assert!(says("off", "Off for you") && says("on", "Accelerated"), "{seen}");
    assert!(says("steps", "update-ca-certificates"), "{seen}");
    assert_eq!(seen["byPac"], "Farhop on this network");
    assert_eq!(seen["font"], "solid", "the style sheet is applied: {seen}");
    assert!(seen["width"].as_u64().unwrap() <= 360, "it fits a telephone: {seen}");
    assert_eq!(seen["problems"], json!([]));
    // Nine page loads, the style sheet and the certificate.
    assert!(seen["bytes"].as_u64().unwrap() < 100_000, "{seen}");
    let downloaded = std::fs::read(folder.path().join("downloaded.pem")).unwrap();
    assert_eq!(downloaded, std::fs::read(&ca).unwrap(), "the portal's certificate is the one of --ca-out");
    local.program.assert_runs();
}
