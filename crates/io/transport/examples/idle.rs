//! What an idle carrier takes of the memory of each end: calls a ground in this process from another process, moves 200 KB on
//! each carrier, and prints how much more is resident for each once all are still, at the remote with a socket of its own:
//! `cargo run --release -p farhop-transport --example idle -- [quic | tcp] [COUNT]`.

use std::error::Error;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Duration;

use bytes::Bytes;
use farhop_htotp::session::{Config, Role};
use farhop_transport::Connection;
use farhop_transport::hop::{Arrival, Hop, Incoming};
use farhop_transport::identity::Identity;
use farhop_transport::path::{End, PathPlan};
use farhop_transport::quic::{self, Peers};
use farhop_transport::socket::udp::UdpSocket;
use farhop_transport::tcp;
use farhop_units::Bytes as Size;

const PLAN: PathPlan = PathPlan::UNKNOWN;
const MOVED: usize = 200_000;
/// After this the repair layer, and whatever else waits for a while, has let go of what it held.
const STILL: Duration = Duration::from_secs(5);

type Outcome<T> = Result<T, Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let over_tcp = words.first().is_some_and(|word| word == "tcp");
    let count: usize = words.get(1).map_or(Ok(200), |word| word.parse())?;
    match words.get(2) {
        Some(addr) => call(over_tcp, count, addr.parse()?).await,
        None => answer(over_tcp, count).await,
    }
}

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// Bytes of this process that are resident.
fn resident() -> Outcome<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS")).ok_or("no VmRSS")?;
    let kilobytes: u64 = line.split_whitespace().nth(1).ok_or("no figure")?.parse()?;
    Ok(1024 * kilobytes)
}

async fn answer(over_tcp: bool, count: usize) -> Outcome<()> {
    let peers = Peers::new([("remote".into(), Identity::from_seed([1; 32]).public())])?;
    let ground = Identity::from_seed([2; 32]);
    let options = tcp::Options::new(&PLAN, End::Ground, None)?;
    let mut by_tcp = tcp::Listener::bind(loopback(), ground.clone(), peers.clone(), PLAN, options)?;
    let socket = UdpSocket::bind(loopback(), PLAN.socket_buffer())?;
    let by_udp = socket.clone();
    let mut by_quic = quic::Listener::new(socket, ground, peers, PLAN, PLAN.default_choice(End::Ground))?;
    let addr =
        if over_tcp { by_tcp.local_addr()? } else { quinn::AsyncUdpSocket::local_addr(by_udp.as_ref())? };
    let kind = if over_tcp { "tcp" } else { "quic" };
    // One more, since the first brings what all share.
    let mut caller = Command::new(std::env::current_exe()?)
        .args([kind, &(count + 1).to_string(), &addr.to_string()])
        .stdin(Stdio::piped())
        .spawn()?;
    let mut hops = Vec::new();
    let mut before = 0;
    for number in 0..=count {
        let connection: Connection = if over_tcp {
            by_tcp.accept().await?.connection.into()
        } else {
            by_quic.accept().await.ok_or("the listener closed")??.connection.into()
        };
        let hop = Hop::start(connection, Role::Ground, Config::default(), &PLAN);
        let (mut sender, receiver) = loop {
            // Before it comes what the session tells of itself.
            if let Incoming::Exchange { sender, receiver, .. } =
                hop.accept().await.ok_or("the carrier ended")?
            {
                break (sender, receiver);
            }
        };
        let head =
            farhop_htotp::ResponseHead { status: http::StatusCode::OK, fields: http::HeaderMap::new() };
        sender.answer(&head, farhop_htotp::frame::Coding::Identity, None);
        for _ in 0..MOVED / 20_000 {
            sender.write(Bytes::from(vec![7; 20_000])).await.map_err(|_| "the remote left")?;
        }
        sender.finish(None);
        drop(receiver);
        hops.push(hop);
        if number == 0 {
            before = resident()?;
        }
    }
    tokio::time::sleep(STILL).await;
    let each = resident()?.saturating_sub(before) / count as u64;
    println!("{count} idle carriers over {kind}: {} each at ground", Size(each));
    drop(caller.stdin.take());
    caller.wait()?;
    Ok(())
}

/// Calls one after the other, and holds what it has called until ground has what it wants.
async fn call(over_tcp: bool, count: usize, addr: SocketAddr) -> Outcome<()> {
    let (remote, keys) = (Identity::from_seed([1; 32]), [Identity::from_seed([2; 32]).public()]);
    let (mut kept, mut before) = (Vec::new(), 0);
    for number in 0..count {
        let connection: Connection = if over_tcp {
            let options = tcp::Options::new(&PLAN, End::Remote, None)?;
            tcp::Dialer::new(remote.clone(), PLAN, options, 1).connect(addr, &keys).await?.into()
        } else {
            let socket = UdpSocket::bind(loopback(), Size(256 << 10))?;
            let dialer = quic::Dialer::new(socket, remote.clone(), PLAN, PLAN.default_choice(End::Remote))?;
            let connection = dialer.connect(addr, &keys).await?;
            kept.push(dialer);
            connection.into()
        };
        let hop = Hop::start(connection, Role::Remote, Config::default(), &PLAN);
        let head = farhop_htotp::RequestHead {
            method: http::Method::GET,
            scheme: "https".into(),
            authority: "site.test".into(),
            path: "/".into(),
            fields: http::HeaderMap::new(),
        };
        let (mut sender, mut receiver) = hop.ask(Default::default(), &head);
        sender.finish(None);
        loop {
            match receiver.next().await {
                Arrival::Answered { .. } | Arrival::Body(_) => {}
                Arrival::Ended => break,
                other => return Err(format!("ground has gone: {other:?}").into()),
            }
        }
        std::mem::forget(hop);
        if number == 0 {
            before = resident()?;
        }
    }
    tokio::time::sleep(STILL).await;
    let each = resident()?.saturating_sub(before) / (count as u64 - 1).max(1);
    println!("{} each at the remote", Size(each));
    tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new())).await??;
    Ok(())
}
