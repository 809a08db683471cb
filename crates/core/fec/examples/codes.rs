//! Compares this crate's sliding window with Reed–Solomon blocks at the same cost, for docs/decisions:
//! `cargo run --release -p farhop-fec --example codes`. The blocks are ideal: any `k` of a block's packets give all of it.

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::Duration;

use farhop_fec::decoder::Decoder;
use farhop_fec::encoder::Encoder;
use farhop_fec::wire::Repair;
use support::{Channel, packet};

const PACKETS: usize = 200_000;

/// Packets that stay lost, and how many packets later the others come back: mean and 99th percentile.
struct Result {
    lost: usize,
    residual: usize,
    waits: Vec<usize>,
}

impl Result {
    fn row(&mut self, name: &str) {
        self.waits.sort_unstable();
        let mean = self.waits.iter().sum::<usize>() as f64 / self.waits.len().max(1) as f64;
        let late = self.waits.get(self.waits.len() * 99 / 100).copied().unwrap_or(0);
        let residual = self.residual as f64 / PACKETS as f64 * 100.0;
        println!(
            "  {name:22} {:5} lost  {residual:7.4} % stay lost  back after {mean:5.1} packets, 99 % within {late:3}",
            self.lost
        );
    }
}

/// One repair of the last 128 after each `every` packets.
fn window(every: usize, mut channel: Channel) -> Result {
    let mut encoder = Encoder::new(0);
    let mut decoder = Decoder::new(u32::MAX);
    let mut result = Result { lost: 0, residual: 0, waits: Vec::new() };
    for number in 0..PACKETS as u32 {
        let packet = packet(number, 40);
        encoder.push(Duration::ZERO, number, &packet);
        decoder.advance(number);
        match channel.loses() {
            true => result.lost += 1,
            false => decoder.insert(number, &packet),
        }
        if number as usize % every == every - 1 {
            let repair = encoder.repair(false).expect("a window with packets");
            let Repair { first, count, number, loud, sum } = repair;
            if !channel.loses() {
                decoder.repair(&Repair { first, count, number, loud, sum });
            }
        }
        while let Some((lost, _)) = decoder.poll_recovered() {
            result.waits.push((number - lost) as usize);
        }
    }
    result.residual = result.lost - result.waits.len();
    result
}

/// `parity` packets after each `data` packets.
fn blocks(data: usize, parity: usize, mut channel: Channel) -> Result {
    let mut result = Result { lost: 0, residual: 0, waits: Vec::new() };
    for _ in 0..PACKETS / data {
        let arrived: Vec<bool> = (0..data + parity).map(|_| !channel.loses()).collect();
        let lost: Vec<usize> = (0..data).filter(|index| !arrived[*index]).collect();
        result.lost += lost.len();
        let mut here = 0;
        let complete = arrived.iter().position(|arrived| {
            here += usize::from(*arrived);
            here == data
        });
        match complete {
            // Parity packets take their places on the link too.
            Some(at) => result.waits.extend(lost.iter().map(|index| at.max(data) - index)),
            None => result.residual += lost.len(),
        }
    }
    result
}

fn main() {
    for (loss, burst, every) in [(0.01, 1.0, 20), (0.03, 1.0, 10), (0.01, 4.0, 10), (0.03, 3.0, 5)] {
        println!("{} % lost in runs of {burst}, one repair for {every} packets:", loss * 100.0);
        let channel = |seed| Channel::new(loss, burst, seed);
        window(every, channel(1)).row("sliding window of 128");
        for parity in [1, 2, 5, 10] {
            let data = parity * every;
            blocks(data, parity, channel(1)).row(&format!("blocks of {data} + {parity}"));
        }
    }
}
