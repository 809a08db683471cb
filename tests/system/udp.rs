//! Datagrams that are caught: their clients know of nothing. Needs root; without it each test says so and passes.

use std::io::ErrorKind;
use std::time::Duration;

use farhop_packets::Complaint;
use tokio::net::UdpSocket;
use tokio::time::timeout;

use crate::support::routed::{NARROW, NOBODY, Routed, SERVER};
use crate::support::{PATIENCE, until};

/// As ground goes out.
const GROUND: [&str; 2] = ["10.79.3.1", "fd79:3::1"];

/// Gives back whatever comes, until it is dropped.
pub(crate) fn echo(server: UdpSocket) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move {
        let mut buffer = [0; 65_535];
        loop {
            let (length, from) = server.recv_from(&mut buffer).await.unwrap();
            assert!(GROUND.contains(&&*from.ip().to_string()), "{from}");
            server.send_to(&buffer[..length], from).await.unwrap();
        }
    })
}

/// Sends until it is given back: what is lost once may be lost.
pub(crate) async fn answered(socket: &UdpSocket, payload: &[u8]) {
    let mut buffer = vec![0; 65_535];
    until("the datagram is given back", async || {
        socket.send(payload).await.unwrap();
        loop {
            let length = timeout(Duration::from_secs(1), socket.recv(&mut buffer)).await.ok()?.unwrap();
            if buffer[..length] == *payload {
                return Some(());
            }
        }
    })
    .await;
}

pub(crate) async fn both_ways(routed: &Routed) {
    for address in SERVER {
        let echoing = echo(routed.hear(address, 4000));
        // Two clients, who are told apart. A socket that is connected takes answers from where it has sent to, and no other place.
        let sockets = [routed.speak_with(address, 4000), routed.speak_with(address, 4000)];
        for (number, socket) in sockets.iter().enumerate() {
            for length in [1, 160, 1200, 1400, 20_000] {
                answered(socket, &vec![number as u8 + 1; length]).await;
            }
        }
        echoing.abort();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn datagrams_come_back_from_where_they_were_sent() {
    let Some(routed) = Routed::new() else { return };
    let (_remote, _ground) = (routed.remote(&[]).await, routed.ground());
    routed.joined().await;
    both_ways(&routed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn so_they_do_where_the_carrier_is_tcp() {
    let Some(routed) = Routed::new() else { return };
    let (_remote, _ground) = (routed.remote(&["--set", "carrier=tcp"]).await, routed.ground());
    routed.joined().await;
    both_ways(&routed).await;
}

/// 443 is left out: what is sent there goes as the client sent it.
#[tokio::test(flavor = "multi_thread")]
async fn ports_that_are_left_out_go_their_own_way() {
    let Some(routed) = Routed::new() else { return };
    let (_remote, _ground) = (routed.remote(&[]).await, routed.ground());
    routed.joined().await;
    let (caught, own) = (routed.hear(SERVER[0], 442), routed.hear(SERVER[0], 443));
    routed.speak_with(SERVER[0], 442).send(b"caught").await.unwrap();
    routed.speak_with(SERVER[0], 443).send(b"its own").await.unwrap();
    let mut buffer = [0; 64];
    for (server, said, from) in [(&caught, &b"caught"[..], GROUND[0]), (&own, &b"its own"[..], "10.79.1.2")] {
        let (length, client) = timeout(PATIENCE, server.recv_from(&mut buffer)).await.unwrap().unwrap();
        assert_eq!((&buffer[..length], &*client.ip().to_string()), (said, from));
    }
}

/// Sends to this port until ICMP has said `what` of it, as the client's kernel hears it.
async fn complained(routed: &Routed, address: &str, port: u16, length: usize, what: Complaint) {
    let socket = routed.speak_with(address, port);
    farhop_netdev::keep_complaints(&socket, socket.peer_addr().unwrap()).unwrap();
    until("ICMP's word is heard", async || {
        // It may fail for what was said before.
        let _ = socket.send(&vec![7; length]).await;
        let said = farhop_netdev::next_complaint(&socket);
        match said {
            Ok(said) => {
                assert_eq!(said, Some(what), "{address}");
                Some(())
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                None
            }
        }
    })
    .await;
}

async fn complaints(routed: &Routed) {
    routed.troubled();
    for family in [0, 1] {
        complained(routed, SERVER[family], 4001, 20, Complaint::PortUnreachable).await;
        complained(routed, NOBODY[family], 4001, 20, Complaint::HostUnreachable).await;
        complained(routed, NARROW[family], 4001, 1400, Complaint::TooBig(1300)).await;
    }
    // Who asks for nothing more than that its sending fails hears at least that nobody listens.
    let socket = routed.speak_with(SERVER[0], 4002);
    until("sending fails", async || match socket.send(b"anyone?").await {
        Ok(_) => None,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
            Some(())
        }
    })
    .await;
    let counters = routed.ask("remote", "counters").await.unwrap();
    assert!(counters["flow_troubles"].as_u64().unwrap() >= 6, "{counters}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_icmp_says_at_ground_the_client_hears() {
    let Some(routed) = Routed::new() else { return };
    let (_remote, _ground) = (routed.remote(&[]).await, routed.ground());
    routed.joined().await;
    complaints(&routed).await;
}
