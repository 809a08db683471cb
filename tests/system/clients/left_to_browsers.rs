//! Origins with which a browser may be able to do more than ground: an issuer has to be fetched (RFC 5280 §4.2.2.1), the key is
//! on P-521, a certificate of the client's is wanted. Each gives one page that says so; from then on the host's connections go
//! through and the browser judges. OpenSSL makes and serves them.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use super::servers::{free_port, start};
use super::{HOST, World, at_hand, client, output, succeeds};
use crate::support::node;

const P256: &str = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
const P521: &str = "-newkey ec -pkeyopt ec_paramgen_curve:secp521r1 -nodes";
/// What the origins serve.
const PAGE: &str = "what only this origin says\n";

/// OpenSSL's own settings, so that the machine's do not matter.
const SETTINGS: &str = "[req]
distinguished_name = name
[name]
[authority]
basicConstraints = critical, CA:true
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[fetched]
basicConstraints = critical, CA:false
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
authorityInfoAccess = caIssuers;URI:http://issuers.test/between.der
[client]
keyUsage = critical, digitalSignature
extendedKeyUsage = clientAuth
[leaf]
basicConstraints = critical, CA:false
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
";

/// Runs OpenSSL; no argument has a blank in it.
fn openssl(folder: &Path, arguments: &str) {
    let mut command = Command::new("openssl");
    command.args(arguments.split_ascii_whitespace()).current_dir(folder).stdin(Stdio::null());
    let done = command.output().unwrap();
    assert!(done.status.success(), "openssl {arguments}: {}", String::from_utf8_lossy(&done.stderr));
}

/// Makes `name` with such a key, vouched for by `by` with these extensions.
fn certificate(folder: &Path, name: &str, key: &str, by: &str, extensions: &str) {
    let request = "req -new -config openssl.cnf";
    openssl(
        folder,
        &format!(
            "{request} {key} -subj /CN={name} -addext subjectAltName=DNS:{HOST} -keyout {name}.key -out {name}.csr"
        ),
    );
    openssl(
        folder,
        &format!(
            "x509 -req -in {name}.csr -CA {by}.pem -CAkey {by}.key -CAcreateserial -days 7 -sha256 -copy_extensions copy \
             -extfile openssl.cnf -extensions {extensions} -out {name}.pem"
        ),
    );
}

/// Makes the root that ground trusts, and gives the setting that says so.
fn trusted_root(folder: &Path) -> String {
    std::fs::write(folder.join("openssl.cnf"), SETTINGS).unwrap();
    let root =
        format!("req -x509 -config openssl.cnf -extensions authority {P256} -days 30 -sha256 -subj /CN=root");
    openssl(folder, &format!("{root} -keyout root.key -out root.pem"));
    format!("ground.origin.roots={}", json!(folder.join("root.pem")))
}

/// OpenSSL as a server of the files in `folder`, which shows the certificate of this name.
fn server(folder: &Path, name: &str, port: u16) -> Command {
    let mut server = Command::new("openssl");
    server.args(["s_server", "-quiet", "-WWW", "-accept", &format!("127.0.0.1:{port}")]);
    server.args(["-cert", &format!("{name}.pem"), "-key", &format!("{name}.key")]).current_dir(folder);
    server
}

/// One that would like to see a client's certificate and does without: the page that says why this goes through from now on
/// gives way to the origin's own by itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_has_been_told_so_comes_through_by_itself() {
    let Some(browser) = node::chromium() else { return };
    if !at_hand(&["openssl"]) {
        return;
    }
    let made = tempfile::tempdir().unwrap();
    let (folder, port) = (made.path(), free_port());
    let roots = trusted_root(folder);
    certificate(folder, "asking", P256, "root", "leaf");
    std::fs::write(folder.join("page.html"), "<!doctype html><title>its own</title>").unwrap();
    let mut asking = server(folder, "asking", port);
    asking.args(["-verify", "1", "-CAfile", "root.pem"]);
    let _server = start(asking, port, &folder.join("server.log")).await;
    let world = World::start_with(&[port], &[roots]).await;
    let visits = json!([{
        "proxy": { "server": format!("http://{}", world.local.proxy), "bypass": "<-loopback>" },
        "arguments": ["--ignore-certificate-errors"],
        "urls": [format!("https://{HOST}:{port}/page.html")],
        "until": "its own",
    }]);
    let seen = node::run(&browser, "visits.cjs", json!({ "visits": visits }), None).await;
    assert_eq!(seen[0][0]["title"], "its own", "{seen}");
    let counted = world.local.counters().await;
    assert!(counted["intercepted"].as_u64() > Some(0), "it went through at once: {counted}");
    assert_eq!(counted["bypasses_learned"], 1, "{counted}");
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_with_which_a_browser_can_do_more_go_through_from_the_second_time_on() {
    if !at_hand(&["curl", "openssl"]) {
        return;
    }
    let made = tempfile::tempdir().unwrap();
    let folder = made.path();
    std::fs::write(folder.join("page.html"), PAGE).unwrap();
    let roots = trusted_root(folder);
    certificate(folder, "between", P256, "root", "authority");
    certificate(folder, "fetched", P256, "between", "fetched");
    certificate(folder, "p521", P521, "root", "leaf");
    certificate(folder, "asking", P256, "root", "leaf");
    certificate(folder, "client", P256, "root", "client");
    // What a browser trusts that has fetched what it needs.
    let pem = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    std::fs::write(folder.join("browser.pem"), pem("root.pem") + &pem("between.pem")).unwrap();

    let names = ["fetched", "p521", "asking"];
    let ports = names.map(|_| free_port());
    let world = World::start_with(&ports, &[roots]).await;
    let own = folder.join("browser.pem");
    let get = |port: u16, ca: &Path, with: Option<&str>| {
        let mut command = client("curl");
        command.args(["--silent", "--max-time", "60", "--write-out", "|%{http_code}", "--proxy"]);
        command.arg(format!("http://{}", world.local.proxy)).arg("--cacert").arg(ca);
        if let Some(name) = with {
            command.arg("--cert").arg(folder.join(format!("{name}.pem")));
            command.arg("--key").arg(folder.join(format!("{name}.key")));
        }
        command.arg(format!("https://{HOST}:{port}/page.html"));
        command
    };
    for (name, port) in names.into_iter().zip(ports) {
        let mut server = server(folder, name, port);
        if name == "asking" {
            server.args(["-Verify", "1", "-CAfile", "root.pem"]);
        }
        let _server = start(server, port, &folder.join("server.log")).await;

        let told = String::from_utf8(succeeds(get(port, &world.ca, None)).await).unwrap();
        assert!(told.ends_with("|502"), "{name}: {told}");
        assert!(told.contains("reload the page") && !told.contains(PAGE.trim()), "{name}: {told}");
        for _ in 0..2 {
            let passed = succeeds(get(port, &own, Some("client"))).await;
            assert_eq!(String::from_utf8_lossy(&passed), format!("{PAGE}|200"), "{name}");
        }
        // Whoever trusts the operator's CA alone sees the origin's own certificate, too, and refuses it.
        assert!(!output(get(port, &world.ca, None)).await.status.success(), "{name}");
    }
}
