//! How fast the layer is on one core, sender and receiver apart, at 3 % of loss and some 9 % of repairs:
//! `cargo run --release -p farhop-fec --example speed`.

use std::time::{Duration, Instant};

use farhop_fec::{Layer, Outcome, Secret, Terms};
use farhop_orbit::Rng;

const PACKET: usize = 1400;
const BATCH: usize = 10;
const BATCHES: usize = 20_000;

fn main() {
    let secret =
        |own, theirs| Secret { own: [own; 8], theirs: [theirs; 8], first_sent: 0, first_received: 0 };
    let terms = Terms { most: 0.25, loud: false };
    let rtt = Duration::from_millis(600);
    let mut near = Layer::new(Duration::ZERO, &secret(1, 2), terms, rtt);
    let mut far = Layer::new(Duration::ZERO, &secret(2, 1), terms, rtt);
    let mut rng = Rng::new(1);
    let packets: Vec<u8> =
        (0..BATCH * PACKET).map(|at| if at % PACKET == 0 { 0x40 } else { rng.next_u64() as u8 }).collect();
    let (mut sending, mut receiving) = (Duration::ZERO, Duration::ZERO);
    let mut framed = Vec::new();
    let mut own = Vec::new();
    let mut recovered = 0;
    for step in 0..BATCHES as u32 {
        // 100 Mbit/s of its own time.
        let now = Duration::from_micros(1120) * step;
        let mut datagrams: Vec<Vec<u8>> = Vec::new();
        let start = Instant::now();
        framed.clear();
        if let Some(stride) = near.frame(&packets, PACKET, &mut framed) {
            near.sent(now, &packets, PACKET);
            datagrams.extend(framed.chunks(stride).map(<[u8]>::to_vec));
        }
        while near.poll_transmit(now, &mut own) {
            datagrams.push(std::mem::take(&mut own));
        }
        sending += start.elapsed();
        datagrams.retain(|_| step < 10 || !rng.chance(0.03));
        let start = Instant::now();
        for datagram in &datagrams {
            assert_ne!(far.handle(now, datagram), Outcome::Ignored);
        }
        while far.poll_recovered().is_some() {
            recovered += 1;
        }
        let mut back = Vec::new();
        while far.poll_transmit(now, &mut own) {
            back.push(std::mem::take(&mut own));
        }
        receiving += start.elapsed();
        for datagram in &back {
            near.handle(now, datagram);
        }
    }
    let sent = near.counters().sent;
    let mbit = |took: Duration| sent.source_bytes as f64 * 8.0 / 1e6 / took.as_secs_f64();
    println!(
        "{} packets, {} lost, {recovered} brought back, {:.1} % repairs: {:.0} Mbit/s sent, {:.0} Mbit/s received on a core",
        sent.sources,
        sent.lost,
        sent.repair_bytes as f64 / sent.source_bytes as f64 * 100.0,
        mbit(sending),
        mbit(receiving),
    );
}
