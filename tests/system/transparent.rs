//! Connections that are caught: their clients know of no proxy. Needs root; without it each test says so and passes.

use std::io::ErrorKind;
use std::process::{Command, Stdio};

use farhop_testkit::pattern::bytes_at;
use farhop_testkit::urgent;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::rotation::ca;
use crate::support::routed::{PROXY, Routed, SERVER};
use crate::support::{PATIENCE, raw, until};

const SIZE: usize = 3 << 20;

/// Both ends of a connection that goes through Farhop, which the server sees come from ground.
async fn through(routed: &Routed, address: &str, port: u16) -> (TcpStream, TcpStream) {
    let (near, far) = joined(routed, address, port).await;
    let from = far.peer_addr().unwrap().ip().to_string();
    assert!(["10.79.3.1", "fd79:3::1"].contains(&&*from), "{from}");
    (near, far)
}

/// Both ends of a connection that goes through Farhop.
async fn joined(routed: &Routed, address: &str, port: u16) -> (TcpStream, TcpStream) {
    let server = routed.listen(address, port).await;
    let mut near = routed.connect(address, port).unwrap();
    let (mut far, _) = timeout(PATIENCE, server.accept()).await.unwrap().unwrap();
    // Both ends know of it by now.
    far.write_all(b"welcome").await.unwrap();
    heard(&mut near, b"welcome").await;
    (near, far)
}

async fn heard(stream: &mut TcpStream, wanted: &[u8]) {
    let mut got = vec![0; wanted.len()];
    timeout(PATIENCE, stream.read_exact(&mut got)).await.unwrap().unwrap();
    assert!(got == wanted, "other bytes arrived");
}

/// The reset that the other side ended with.
async fn reset(mut stream: TcpStream) {
    let error = timeout(PATIENCE, stream.read(&mut [0])).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

/// Answers one request with its head as the body, and gives that.
async fn answer(server: TcpListener) -> String {
    let (mut stream, _) = timeout(PATIENCE, server.accept()).await.unwrap().unwrap();
    let head = raw(&mut stream, "", |said| said.contains("\r\n\r\n")).await;
    let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{head}", head.len());
    stream.write_all(text.as_bytes()).await.unwrap();
    head
}

/// Asks as curl does that knows of no proxy.
async fn ask(routed: &Routed, port: u16, host: &str) -> (String, String) {
    let server = tokio::spawn(answer(routed.listen(SERVER[0], port).await));
    let mut near = routed.connect(SERVER[0], port).unwrap();
    let request = format!("GET /x HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let said = raw(&mut near, &request, |said| said.matches("\r\n\r\n").count() == 2).await;
    (said, server.await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_accepted_at_once_and_carried_as_they_are() {
    let Some(routed) = Routed::new() else { return };
    let _remote = routed.remote(&[]).await;
    // Nobody is at the other side of the hop yet, and the client is connected all the same.
    let server = routed.listen(SERVER[0], 22).await;
    let mut early = routed.connect(SERVER[0], 22).unwrap();
    let _ground = routed.ground();
    let (mut far, _) = timeout(PATIENCE, server.accept()).await.unwrap().unwrap();
    // The server speaks first, and either side while the other is silent.
    far.write_all(b"SSH-2.0-test\r\n").await.unwrap();
    heard(&mut early, b"SSH-2.0-test\r\n").await;
    early.write_all(b"SSH-2.0-client\r\n").await.unwrap();
    heard(&mut far, b"SSH-2.0-client\r\n").await;
    drop((early, far, server));

    for address in SERVER {
        let (mut near, mut far) = through(&routed, address, 2021).await;
        // Each half ends by itself.
        let up = async {
            near.write_all(&bytes_at(1, 0, SIZE)).await.unwrap();
            near.shutdown().await.unwrap();
            let mut got = Vec::new();
            near.read_to_end(&mut got).await.unwrap();
            got
        };
        let down = async {
            let mut got = Vec::new();
            far.read_to_end(&mut got).await.unwrap();
            far.write_all(&bytes_at(2, 0, SIZE)).await.unwrap();
            far.shutdown().await.unwrap();
            got
        };
        let (near_got, far_got) = timeout(PATIENCE, async { tokio::join!(up, down) }).await.unwrap();
        assert!(near_got == bytes_at(2, 0, SIZE) && far_got == bytes_at(1, 0, SIZE), "{address}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn resets_and_refusals_reach_the_other_side_and_urgent_bytes_with_their_mark() {
    let Some(routed) = Routed::new() else { return };
    let (_ground, _remote) = (routed.ground(), routed.remote(&["--role", "transport"]).await);
    routed.joined().await;
    let (near, far) = through(&routed, SERVER[0], 2022).await;
    near.set_zero_linger().unwrap();
    drop(near);
    reset(far).await;
    let (near, far) = through(&routed, SERVER[0], 2023).await;
    far.set_zero_linger().unwrap();
    drop(far);
    reset(near).await;
    // Nobody listens there.
    reset(routed.connect(SERVER[0], 2024).unwrap()).await;

    let mut both: [TcpStream; 2] = through(&routed, SERVER[0], 2025).await.into();
    both.iter().for_each(|stream| farhop_netdev::keep_urgent_in_place(stream).unwrap());
    for (from, to) in [(0, 1), (1, 0)] {
        let [from, to] = both.get_disjoint_mut([from, to]).unwrap();
        from.write_all(b"before").await.unwrap();
        urgent::say(from, b'!').await;
        from.write_all(b"after").await.unwrap();
        let got = timeout(PATIENCE, urgent::hear(to, 12)).await.unwrap();
        assert_eq!(got, (b"before!after".to_vec(), vec![6]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_see_addresses_of_clients_where_both_ends_agree() {
    let Some(routed) = Routed::new() else { return };
    routed.let_clients_keep_addresses();
    let mut ground = routed.ground();
    let remote = routed.remote(&["--role", "transport"]).await;
    routed.joined().await;
    // The remote does not tell.
    through(&routed, SERVER[0], 2030).await;
    drop(remote);
    let telling = ["--role", "transport", "--set", "transparent.client_addresses=true"];
    let remote = routed.remote(&telling).await;
    routed.joined().await;
    for address in SERVER {
        let (mut near, mut far) = joined(&routed, address, 2031).await;
        let seen = far.peer_addr().unwrap().ip();
        assert_eq!(seen, near.local_addr().unwrap().ip(), "whose address it is");
        near.write_all(&bytes_at(1, 0, SIZE)).await.unwrap();
        near.shutdown().await.unwrap();
        let mut got = Vec::new();
        timeout(PATIENCE, far.read_to_end(&mut got)).await.unwrap().unwrap();
        assert!(got == bytes_at(1, 0, SIZE), "{address}");
    }
    // Nobody listens there, which its client learns all the same.
    reset(routed.connect(SERVER[0], 2032).unwrap()).await;
    let rules = routed.ground_rules();
    assert!(rules.contains("farhop") && rules.contains("local default"), "{rules}");
    drop(remote);
    ground.kill();
    until("ground's rules are gone", async || {
        let rules = routed.ground_rules();
        (!rules.contains("farhop") && !rules.contains("local default")).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_http_goes_to_the_application_role_if_it_is_for_that_address() {
    let Some(routed) = Routed::new() else { return };
    let (_ground, _remote) = (routed.ground(), routed.remote(&[]).await);
    routed.joined().await;
    let (said, asked) = ask(&routed, 80, SERVER[0]).await;
    assert!(said.starts_with("HTTP/1.1 200 ") && said.contains("farhop"), "{said}");
    assert!(asked.to_ascii_lowercase().contains("via: "), "{asked}");
    // Another host's name for this address is between its client and its server.
    let (said, asked) = ask(&routed, 80, "198.51.100.9").await;
    assert!(said.ends_with(&asked) && !said.contains("farhop"), "{said}");
    assert_eq!(asked, "GET /x HTTP/1.1\r\nHost: 198.51.100.9\r\n\r\n");
    // A public name is for ground to resolve, and here nobody answers it: its name server is there, and silent.
    let _silent = routed.hear(SERVER[0], 53);
    let mut near = routed.connect(SERVER[0], 80).unwrap();
    let said =
        raw(&mut near, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", |said| said.contains("\r\n\r\n")).await;
    assert!(said.contains("farhop-ground; error=dns_timeout"), "{said}");
    // One that it does not know (RFC 6761 §6.4: nobody need be asked for these) is answered by the address that the client has found,
    // each time anew.
    for _ in 0..2 {
        let (said, asked) = ask(&routed, 80, "wiki.invalid").await;
        assert!(said.starts_with("HTTP/1.1 200 ") && said.contains("farhop"), "{said}");
        assert!(asked.contains("\r\nHost: wiki.invalid\r\n") && !asked.contains("sent-to"), "{asked}");
    }
    // What ground may not connect to it does not, whoever has found it there.
    let mut near = routed.connect("192.0.2.1", 80).unwrap();
    let request = "GET /x HTTP/1.1\r\nHost: wiki.invalid\r\n\r\n";
    let said = raw(&mut near, request, |said| said.contains("\r\n\r\n")).await;
    assert!(said.starts_with("HTTP/1.1 403 "), "{said}");
    // What is no HTTP is carried too.
    let server = routed.listen(SERVER[0], 80).await;
    let mut near = routed.connect(SERVER[0], 80).unwrap();
    near.write_all(b"\x01\x02").await.unwrap();
    let (mut far, _) = timeout(PATIENCE, server.accept()).await.unwrap().unwrap();
    heard(&mut far, b"\x01\x02").await;
    far.write_all(b"\x03").await.unwrap();
    heard(&mut near, b"\x03").await;
    // Browsers that know of the proxy use it beside.
    let address: std::net::SocketAddr = PROXY.parse().unwrap();
    assert!(routed.connect(&address.ip().to_string(), address.port()).is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_is_looked_into_by_the_name_in_its_hello_where_that_is_agreed() {
    if Command::new("curl").arg("--version").stdout(Stdio::null()).status().is_err() {
        println!("skipped: curl does not run here");
        return;
    }
    let Some(routed) = Routed::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    ca(&["init", "ca"], folder.path());
    ca(&["export", "ca", "--out", "ca.pem"], folder.path());
    let at = format!("interception.ca={}", folder.path().join("ca").display());
    let sets = ["interception.enabled=true", &at, "interception.bypass=spared.test"];
    let options: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
    let (_ground, _remote) = (routed.ground(), routed.remote(&options).await);
    routed.joined().await;
    let curl = |host: &str| {
        let mut command = Command::new("curl");
        let resolve = format!("{host}:443:{}", SERVER[0]);
        command.args(["-s", "-o", "/dev/null", "--max-time", "60", "--resolve", &resolve, "--cacert"]);
        command.arg(folder.path().join("ca.pem")).arg(format!("https://{host}/")).stdin(Stdio::null());
        routed.client.prepare(&mut command);
        command
    };
    let mut looked_into = curl("a.test");
    let status = tokio::task::spawn_blocking(move || looked_into.status()).await.unwrap().unwrap();
    assert!(status.success(), "it believes our certificate, whatever is answered then: {status}");

    let server = routed.listen(SERVER[0], 443).await;
    let mut spared = curl("spared.test").spawn().unwrap();
    let (mut far, _) = timeout(PATIENCE, server.accept()).await.unwrap().unwrap();
    // RFC 8446 §5.1: a handshake record, as its client sent it.
    heard(&mut far, &[22, 3]).await;
    spared.kill().unwrap();
    spared.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_transport_role_alone_carries_http_as_anything_else() {
    let Some(routed) = Routed::new() else { return };
    let (_ground, _remote) = (routed.ground(), routed.remote(&["--role", "transport"]).await);
    routed.joined().await;
    let (said, asked) = ask(&routed, 80, SERVER[0]).await;
    assert!(said.ends_with(&asked) && !said.contains("farhop"), "{said}");
    let address: std::net::SocketAddr = PROXY.parse().unwrap();
    let refused = routed.connect(&address.ip().to_string(), address.port()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_the_rules_when_the_remote_ends_in_whatever_way() {
    let Some(routed) = Routed::new() else { return };
    let is_clean = async || {
        let rules = routed.rules();
        (!rules.contains("farhop") && !rules.contains("51900") && !rules.contains("local default"))
            .then_some(())
    };
    let mut remote = routed.remote(&[]).await;
    let asked = Command::new("kill").args(["-s", "TERM", &remote.child.id().to_string()]).status();
    assert!(asked.unwrap().success());
    let ended = tokio::task::spawn_blocking(move || remote.child.wait().map(|status| (status, remote)));
    assert!(timeout(PATIENCE, ended).await.unwrap().unwrap().unwrap().0.success());
    assert!(is_clean().await.is_some(), "{}", routed.rules());

    let mut remote = routed.remote(&[]).await;
    remote.kill();
    until("its helper has cleaned up", is_clean).await;

    // Both killed, as by a service manager that has lost its patience: the next start takes their place.
    let mut remote = routed.remote(&[]).await;
    let rules = routed.rules();
    let helper = rules.split("farhop_").nth(1).unwrap().split('_').next().unwrap();
    assert!(Command::new("kill").args(["-9", helper]).status().unwrap().success());
    remote.kill();
    assert!(routed.rules().contains("tproxy"), "nobody could take them back");
    let _remote = routed.remote(&[]).await;
    until("the old rules are gone", async || {
        let rules = routed.rules();
        (!rules.contains(&format!("farhop_{helper}_")) && rules.contains("tproxy")).then_some(())
    })
    .await;
    let _ground = routed.ground();
    let (mut near, mut far) = through(&routed, SERVER[0], 2026).await;
    near.write_all(b"hello").await.unwrap();
    heard(&mut far, b"hello").await;
}
