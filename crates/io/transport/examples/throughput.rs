//! Moves 200 MB between two ends in this process and prints rate and peak memory:
//! `cargo run --release -p farhop-transport --example throughput -- [link PROFILE | udp] [CONTROLLER]`.
//! For a developer's eyes; the bounds are held by `farhop lab measure`.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use farhop_orbit::Profile;
use farhop_transport::identity::Identity;
use farhop_transport::path::{End, PathPlan};
use farhop_transport::quic::{Dialer, Listener, Peers};
use farhop_transport::socket::link;
use farhop_transport::socket::udp::UdpSocket;
use quinn::{AsyncUdpSocket, Connection};

const TOTAL: usize = 200_000_000;
const PIECE: usize = 16 << 10;

type Sockets = (Arc<dyn AsyncUdpSocket>, Arc<dyn AsyncUdpSocket>);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let (plan, sockets): (PathPlan, Sockets) = match words.next().as_deref() {
        Some("udp") => {
            let plan = PathPlan::UNKNOWN;
            let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
            let socket = || UdpSocket::bind(loopback, plan.socket_buffer());
            (plan, (socket()?, socket()?))
        }
        _ => {
            let profile = Profile::named(&words.next().unwrap_or("none".into()))?;
            let (_, ground, remote) = link::pair(&profile, 1);
            (PathPlan::for_profile(&profile), (ground, remote))
        }
    };
    let plan = PathPlan { congestion: words.next().map(|name| name.parse()).transpose()?, ..plan };
    let (ground, remote) = (Identity::generate()?, Identity::generate()?);
    let addr = sockets.0.local_addr()?;
    let keys = [ground.public()];
    let peers = Peers::new([("remote".into(), remote.public())])?;
    let mut listener = Listener::new(sockets.0, ground, peers, plan, plan.default_choice(End::Ground))?;
    let dialer = Dialer::new(sockets.1, remote, plan, plan.default_choice(End::Remote))?;
    let (near, far) = tokio::join!(dialer.connect(addr, &keys), listener.accept());
    let (near, far) = (near?, far.ok_or("the listener closed")??.connection);
    // Whoever holds a connection may accept; the listener must go on looking for others.
    let listening = tokio::spawn(async move { while listener.accept().await.is_some() {} });
    report("down", &far, &near).await?;
    report("up", &near, &far).await?;
    listening.abort();
    Ok(())
}

async fn report(name: &str, from: &Connection, to: &Connection) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let from = from.clone();
    let sending = tokio::spawn(async move {
        let piece = vec![0x5a; PIECE];
        let mut stream = from.open_uni().await?;
        for _ in 0..TOTAL / PIECE {
            stream.write_all(&piece).await?;
        }
        stream.finish()?;
        Ok::<_, Box<dyn Error + Send + Sync>>(from.stats().path)
    });
    let mut stream = to.accept_uni().await?;
    let mut received = 0;
    while let Some(chunk) = stream.read_chunk(64 << 10, true).await? {
        received += chunk.bytes.len();
    }
    let path = sending.await?.map_err(|error| error.to_string())?;
    let mbit = received as f64 * 8.0 / 1e6 / start.elapsed().as_secs_f64();
    let peak = std::fs::read_to_string("/proc/self/status")?;
    let peak = peak.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("VmHWM unknown");
    println!(
        "{name}: {received} bytes, {mbit:.0} Mbit/s, {} packets lost, mtu {}, {peak}",
        path.lost_packets, path.current_mtu
    );
    Ok(())
}
