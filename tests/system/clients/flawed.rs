//! Servers whose certificates are bad, each in one way, asked by curl and by Chromium through an interception: the page that
//! comes names the reason, and no byte of the server's own comes. OpenSSL makes and presents them.

use std::net::Ipv4Addr;

use farhop_workload::browser::trust_in;
use farhop_workload::flawed::{Flaw, Flawed, PAGE};
use serde_json::json;

use super::servers::{Server, free_port, start};
use super::{World, at_hand, client, succeeds};
use crate::support::node;

/// The name of all of them: this machine's own (RFC 6761 §6.3), and in no certificate that a system may have made for itself.
const HOST: &str = "flawed.localhost";
/// Chromium's view of a page: what it says first, and all of it.
const SEEN: &str =
    "({ said: document.querySelector('p').innerText, all: document.documentElement.outerHTML })";

/// A server for each flaw, in the order of [`Flaw::ALL`], and ends that intercept them all.
struct Flaws {
    world: World,
    ports: [u16; Flaw::ALL.len()],
    _servers: Vec<Server>,
    _made: tempfile::TempDir,
}

impl Flaws {
    async fn start() -> Flaws {
        let made = tempfile::tempdir().unwrap();
        let flawed = Flawed::make_for(made.path(), HOST).unwrap();
        let ports = Flaw::ALL.map(|_| free_port());
        let believed = [
            format!("ground.origin.roots={}", json!(flawed.authority())),
            format!("ground.origin.crls={}", json!(flawed.revoked())),
        ];
        let world = World::start_with(&ports, &believed).await;
        let mut servers = Vec::new();
        for (flaw, port) in Flaw::ALL.into_iter().zip(ports) {
            let server = flawed.server(flaw, (Ipv4Addr::LOCALHOST, port).into());
            servers.push(start(server, port, &made.path().join("server.log")).await);
        }
        Flaws { world, ports, _servers: servers, _made: made }
    }

    fn each(&self) -> impl Iterator<Item = (Flaw, String)> {
        let urls = self.ports.map(|port| format!("https://{HOST}:{port}{}", PAGE.0));
        Flaw::ALL.into_iter().zip(urls)
    }
}

/// What a page says first is the reason, and nothing in it comes from the server; of the good one it is the server's.
fn assert_told(flaw: Flaw, said: &str, all: &str) {
    match flaw.reason() {
        None => assert!(all.contains(PAGE.1), "{flaw:?}: {all}"),
        Some(reason) => {
            assert!(said.replace(HOST, "…").contains(reason), "{flaw:?}: {said}");
            assert!(!all.contains("what only this origin says"), "{flaw:?}: {all}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn curl_is_told_why_and_gets_no_byte_over_either_version() {
    if !at_hand(&["curl", "openssl"]) {
        return;
    }
    let flaws = Flaws::start().await;
    for version in ["--http1.1", "--http2"] {
        for (flaw, url) in flaws.each() {
            let mut command = client("curl");
            command.args(["--silent", "--show-error", version, "--write-out", "|%{http_code}", "--proxy"]);
            command.arg(format!("http://{}", flaws.world.local.proxy));
            command.arg("--cacert").arg(&flaws.world.ca).arg(url);
            let told = String::from_utf8(succeeds(command).await).unwrap();
            let status = if flaw.reason().is_some() { "|502" } else { "|200" };
            assert!(told.ends_with(status), "{flaw:?} over {version}: {told}");
            let said = told.split_once("<p>").map_or("", |(_, rest)| rest.split('<').next().unwrap());
            assert_told(flaw, said, &told);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn chromium_shows_why_and_nothing_of_the_server() {
    let Some(browser) = node::chromium() else { return };
    if !at_hand(&["certutil", "openssl"]) {
        return;
    }
    let flaws = Flaws::start().await;
    let home = flaws.world.folder.path();
    trust_in(&home.join(".pki/nssdb"), &flaws.world.ca).unwrap();
    let proxy = json!({ "server": format!("http://{}", flaws.world.local.proxy), "bypass": "<-loopback>" });
    let urls: Vec<_> = flaws.each().map(|(_, url)| url).collect();
    let visits = json!([{ "proxy": proxy, "urls": urls, "expression": SEEN }]);
    let seen = node::run(&browser, "visits.cjs", json!({ "visits": visits }), Some(home)).await;
    for ((flaw, _), page) in flaws.each().zip(seen[0].as_array().unwrap()) {
        assert!(page["error"].is_null(), "{flaw:?}: {page}");
        let text = |name: &str| page["value"][name].as_str().unwrap().to_owned();
        assert_told(flaw, &text("said"), &text("all"));
    }
}
