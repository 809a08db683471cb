//! Subnets whose packets come by a TUN device, on a machine that diverts nothing: their clients know of nothing. Needs root; without it each
//! test says so and passes.

use std::process::{Command, Output};

use farhop_netdev::Ping;
use farhop_testkit::pattern::bytes_at;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::support::routed::{Routed, SERVER};
use crate::support::{PATIENCE, farhop, until};
use crate::udp;

const SIZE: usize = 3 << 20;
/// As ground goes out, and the client itself.
const GROUND: [&str; 2] = ["10.79.3.1", "fd79:3::1"];
const CLIENT: [&str; 2] = ["10.79.1.2", "fd79:1::2"];

/// Answers requests with the same body; gives who asked.
async fn serve(listener: TcpListener) -> String {
    let (mut stream, from) = timeout(PATIENCE, listener.accept()).await.unwrap().unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\nConnection: close\r\n\r\n");
    stream.write_all(answer.as_bytes()).await.unwrap();
    stream.write_all(&bytes_at(7, 0, SIZE)).await.unwrap();
    stream.shutdown().await.unwrap();
    from.ip().to_string()
}

/// What a command prints on the client's machine, or on the router.
async fn on(place: &farhop_netdev::Namespace, mut command: Command) -> Output {
    place.prepare(&mut command);
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

async fn curl(routed: &Routed, url: &str) -> Vec<u8> {
    let mut command = Command::new("curl");
    command.args([
        "--silent",
        "--show-error",
        "--fail",
        "--noproxy",
        "*",
        "--max-time",
        "80",
        "--globoff",
        url,
    ]);
    let output = on(&routed.client, command).await;
    assert!(output.status.success(), "curl {url}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

async fn router_says(routed: &Routed, script: &str) -> String {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    String::from_utf8(on(&routed.router, command).await.stdout).unwrap()
}

fn place(address: &str, port: u16) -> String {
    if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") }
}

async fn fetched_as(routed: &Routed, address: &str, port: u16) -> String {
    let server = tokio::spawn(serve(routed.listen(address, port).await));
    let body = curl(routed, &format!("http://{}/x", place(address, port))).await;
    assert!(body == bytes_at(7, 0, SIZE), "{address}: other bytes arrived");
    server.await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_and_datagrams_of_a_subnet_are_carried() {
    let Some(routed) = Routed::new() else { return };
    let (_remote, _ground) = (routed.remote_by_tun(&[]).await, routed.ground());
    routed.joined().await;
    for (address, ground) in SERVER.iter().zip(GROUND) {
        assert_eq!(fetched_as(&routed, address, 8080).await, ground, "carried");
        assert_eq!(fetched_as(&routed, address, 80).await, ground, "served by the application role");
    }
    udp::both_ways(&routed).await;
    // Nobody listens: who connects is told.
    let mut refused = routed.connect(SERVER[0], 9).unwrap();
    assert!(timeout(PATIENCE, refused.read_u8()).await.unwrap().is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_caught_goes_on_as_it_came() {
    let Some(routed) = Routed::new() else { return };
    let ports = ["--set", "transparent.ports=1-8000", "--set", "transparent.except=198.51.100.8/32"];
    let (remote, _ground) = (routed.remote_by_tun(&ports).await, routed.ground());
    routed.joined().await;
    for (family, address) in SERVER.iter().enumerate() {
        assert_eq!(fetched_as(&routed, address, 8080).await, CLIENT[family], "a port that is left out");
        // What is neither TCP nor UDP.
        let address = address.parse().unwrap();
        let echo =
            routed.client.run(|| Ping::open("lan0", address).unwrap().round_trip(PATIENCE).unwrap()).unwrap();
        assert!(echo.is_some(), "{address}");
        // UDP to 443, in pieces, too.
        let server = routed.hear(SERVER[family], 443);
        routed.speak_with(SERVER[family], 443).send(&[7; 4000]).await.unwrap();
        let (length, from) = timeout(PATIENCE, server.recv_from(&mut [0; 8000])).await.unwrap().unwrap();
        assert_eq!((length, from.ip().to_string()), (4000, CLIENT[family].to_owned()));
    }
    let table = router_says(&routed, "ip -4 route show table 51900").await;
    assert!(table.contains("throw 198.51.100.8") && table.contains("default dev farhop0"), "{table}");
    assert_eq!(fetched_as(&routed, SERVER[0], 2080).await, GROUND[0], "and all else is caught");
    drop(remote);
    until("nothing is left of it", async || {
        let left = router_says(&routed, "ip link; ip rule; ip -6 rule; ip route show table 51900").await;
        (!left.contains("farhop0") && !left.contains("51900")).then_some(())
    })
    .await;
    assert_eq!(fetched_as(&routed, SERVER[0], 2081).await, CLIENT[0], "and connections go on without it");
}

/// The remote's complaint when it cannot start.
async fn refused(routed: &Routed, options: &[&str]) -> String {
    let mut command = farhop();
    command.args(["remote", "--config"]).arg(routed.settings_of("remote")).args(options);
    let output = on(&routed.router, command).await;
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_is_said_in_one_line() {
    let Some(routed) = Routed::new() else { return };
    let said = refused(&routed, &["--tun"]).await;
    assert!(said.contains("'transparent.tun' needs 'transparent.interfaces'"), "{said}");
    let said = refused(&routed, &["--tun", "--set", "transparent.interfaces=lan9"]).await;
    assert!(said.contains("there is no network device 'lan9' here"), "{said}");
    let said = refused(&routed, &["--tun", "lan0", "--set", "transparent.interfaces=lan0"]).await;
    assert!(said.contains("there is a network device 'lan0' already"), "{said}");
    let left = router_says(&routed, "ip link; ip rule; ip -6 rule").await;
    assert!(!left.contains("farhop0") && !left.contains("51900"), "{left}");
}
