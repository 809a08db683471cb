//! The CA is changed while the remote runs, and no user notices: those who have the older certificate, those who have the
//! newer one. Needs curl; without it the test says so and passes over.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Command, Stdio};

use farhop_workload::origins::{OriginSpec, OriginsSpec, serve};
use serde_json::json;

use crate::support::{Pair, farhop, until};

/// What curl exits with when it does not believe the certificate.
const DISTRUSTS: i32 = 60;

/// Whether a client that has installed `ca` alone believes what answers for a site; what is answered does not matter.
fn believes(proxy: SocketAddr, site: SocketAddr, ca: &Path) -> bool {
    let mut command = Command::new("curl");
    command.args(["-s", "-o", "/dev/null", "--max-time", "20", "-x", &format!("http://{proxy}"), "--cacert"]);
    let status = command.arg(ca).arg(format!("https://{site}/")).stdin(Stdio::null()).status().unwrap();
    match status.code() {
        Some(0) => true,
        Some(DISTRUSTS) => false,
        other => panic!("curl ended with {other:?}"),
    }
}

pub(crate) fn ca(arguments: &[&str], folder: &Path) -> String {
    let done = farhop().arg("ca").args(arguments).current_dir(folder).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    String::from_utf8(done.stdout).unwrap()
}

/// A site of HTTPS, whose own certificate nobody here trusts.
async fn origin(folder: &Path) -> SocketAddr {
    let site = folder.join("site");
    std::fs::create_dir(&site).unwrap();
    let origin = OriginSpec::new("a.test", Ipv4Addr::LOCALHOST, site);
    let spec =
        OriginsSpec { ca: folder.join("origin.pem"), ..OriginsSpec::on_free_ports(vec![origin], folder) };
    serve(&spec).await.unwrap().origins[0].https
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_breaks_neither_those_with_the_older_certificate_nor_those_with_the_newer() {
    if Command::new("curl").arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("passed over: curl does not run here");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    ca(&["init", "ca"], folder.path());
    ca(&["export", "ca", "--out", "older.pem"], folder.path());
    let (older, newer) = (file("older.pem"), file("newer.pem"));
    let at = format!("interception.ca={}", file("ca").display());
    let site = origin(folder.path()).await;
    let (ports, connect) =
        (format!("interception.ports={}", site.port()), format!("connect_ports={}", site.port()));
    let pair = Pair::start_with(&["interception.enabled=true", &at, &ports, &connect]).await;
    assert!(believes(pair.proxy, site, &older));

    ca(&["rotate", "ca"], folder.path());
    ca(&["export", "ca", "--out", "newer.pem"], folder.path());
    assert!(!believes(pair.proxy, site, &newer), "the remote has not been told");
    assert!(
        Command::new("kill").args(["-HUP", &pair.remote.child.id().to_string()]).status().unwrap().success()
    );
    until("the newer CA answers", async || {
        // Distrust until then was learned from.
        let mut control = farhop_control::Client::connect(&pair.control("remote")).await.ok()?;
        control.call("forget", json!({"all": true})).await.ok()?;
        believes(pair.proxy, site, &newer).then_some(())
    })
    .await;
    assert!(believes(pair.proxy, site, &older), "the bridge carries them over");
}
