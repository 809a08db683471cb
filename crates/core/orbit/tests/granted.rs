//! Who sends no more than what is granted: a shaper before the terminal that asks what that is every 300 ms. Told what waits at the
//! shaper, the terminal asks capacity for it; else it sees little to ask for, and is granted a tenth more each round at best.

use farhop_orbit::{Direction, Entitlement, Label, Leg, OnDemand, Signalling, Supply, Volume};
use farhop_units::{BitRate, Bytes};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const DELAY: Duration = Duration::from_millis(300);
/// 200 kbit/s of the link's 320.
const PACKET: u64 = 1000;
const PAUSE: u32 = 40;
const ENTITLED: BitRate = BitRate::kbit(320);
/// What is always sent at, and the margin that is left of what is granted.
const LEAST: BitRate = BitRate::kbit(16);
const SHARE: f64 = 0.95;

/// Capacity by rate, which is what a shaper can follow: 13 superframes of 50 ms from a request to its answer.
fn link() -> Direction<u32> {
    let entitlement = Entitlement { cra: BitRate(0), rbdc: ENTITLED, volume: Volume::None, fca: false };
    let shared = OnDemand {
        superframe: 50 * MS,
        capacity: ENTITLED,
        slot: Bytes(100),
        header: Bytes(4),
        control_round: 650 * MS,
        entitlement,
        rbdc_timeout: 20,
        signalling: Signalling { loss: 0.0, contention: None, size: Bytes(0) },
        terminals: 1,
        others: None,
    };
    shared.check().expect("the shape holds");
    let supply = Supply::OnDemand(Arc::new(shared));
    Direction::new(
        Leg { delay: DELAY, rate: Some(ENTITLED), supply, queue: Bytes(1_000_000), ..Leg::transparent() },
        1,
    )
}

/// Of twenty seconds of packets: how many arrived within a second after them, and how long those of the second half waited in the
/// terminal.
fn course(tells: bool) -> (u32, Vec<Duration>) {
    let (mut link, mut here) = (link(), VecDeque::new());
    let (mut rate, mut credit) = (LEAST, 0.0);
    let (mut arrived, mut waits) = (0, Vec::new());
    for now in 0..21_000 {
        let at = now * MS;
        if now < 20_000 && now % PAUSE == 0 {
            here.push_back(());
        }
        credit += rate.0 as f64 / 8e3;
        while credit >= PACKET as f64 && here.pop_front().is_some() {
            credit -= PACKET as f64;
            link.handle_labelled(at, Bytes(PACKET), Label::default(), now);
        }
        credit = f64::min(credit, PACKET as f64);
        if now % 300 == 0 {
            let granted = link.granted(at, 0).expect("capacity is given on demand");
            rate = BitRate((granted.0 as f64 * SHARE) as u64).clamp(LEAST, ENTITLED);
            if tells {
                link.announce(at, 0, Bytes(here.len() as u64 * PACKET));
            }
        }
        while let Some(sent) = link.poll_transmit(at) {
            arrived += 1;
            if now > 10_000 {
                waits.push(sent.due - sent.packet * MS - DELAY);
            }
        }
    }
    (arrived, waits)
}

#[test]
fn what_waits_before_the_terminal_is_granted_capacity_when_it_is_told_of_it() {
    let (arrived, waits) = course(true);
    let mean = waits.iter().sum::<Duration>() / waits.len() as u32;
    let all = 20_000 / PAUSE;
    println!("told: {arrived} of {all}, {mean:?} in the terminal; untold: {}", course(false).0);
    assert!(arrived * 100 >= all * 97, "{arrived} of {all}");
    assert!(mean < 150 * MS, "no queue builds in the terminal: {mean:?}");
    assert!(
        course(false).0 * 3 < all * 2,
        "what does not get there is asked for by a tenth more each round at best"
    );
}
