//! Shared return links drawn from seeds: whatever terminals are entitled to, ask for and lose, no superframe gives or carries more
//! than it has, and a seed is one history.

use std::time::Duration;

use farhop_orbit::{Counters, Direction, Entitlement, Label, Leg, Rng, Signalling, Volume};
use farhop_units::{BitRate, Bytes};

use super::trial::{CAPACITY, DELAY, drain, leg, shared};
use crate::Row;

/// Superframes of each history.
const FRAMES: u32 = 200;
/// Terminals that share each link.
const TERMINALS: u16 = 20;

/// What arrived, by number and time, and what was counted.
#[derive(Debug, PartialEq, Eq)]
struct History {
    arrived: Vec<(Duration, u64)>,
    counters: Counters,
    /// The largest share of a superframe's slots that was given, and that was used, in thousandths.
    given: u64,
    carried: u64,
}

fn up_to(rng: &mut Rng, most: u64) -> u64 {
    rng.next_u64() % (most + 1)
}

/// A link on which anything may be set.
fn drawn(rng: &mut Rng) -> (Leg, Duration) {
    let superframe = Duration::from_micros(match up_to(rng, 2) {
        0 => 26_500,
        1 => 45_000,
        _ => 50_000,
    });
    let mut entitlement = Entitlement {
        cra: BitRate::kbit(8 * up_to(rng, 3)),
        rbdc: BitRate::kbit(128 * up_to(rng, 3)),
        volume: match up_to(rng, 2) {
            0 => Volume::None,
            1 => Volume::Added,
            _ => Volume::Absolute,
        },
        fca: up_to(rng, 3) == 0,
    };
    let nothing = entitlement.cra.0 == 0 && entitlement.rbdc.0 == 0 && entitlement.volume == Volume::None;
    if nothing && !entitlement.fca {
        entitlement.volume = Volume::Absolute;
    }
    let mut shared = shared(entitlement, superframe);
    shared.terminals = TERMINALS;
    shared.signalling = Signalling {
        loss: rng.next_f64() / 2.0,
        contention: (up_to(rng, 1) == 1).then(|| 1 + (up_to(rng, 15) as u32)),
        size: Bytes(0),
    };
    (leg(shared), superframe)
}

fn live(seed: u64) -> History {
    let mut rng = Rng::new(seed);
    let (leg, superframe) = drawn(&mut rng);
    let mut link: Direction<(u64, u64)> = Direction::new(leg, seed);
    let slots =
        u64::try_from(u128::from(CAPACITY.0) * superframe.as_nanos() / 800_000_000_000).unwrap_or(1).max(1);
    let (mut arrived, mut number) = (Vec::new(), 0);
    let (mut before, mut most, mut carried) = (Bytes(0), 0, vec![0u64; FRAMES as usize + 1]);
    for frame in 0..FRAMES {
        let begins = frame * superframe;
        for burst in 0..up_to(&mut rng, 12) {
            let label =
                Label { terminal: up_to(&mut rng, u64::from(TERMINALS) - 1) as u16, ..Label::default() };
            let size = 1 + up_to(&mut rng, 1_499);
            link.handle_labelled(begins + Duration::from_micros(burst), Bytes(size), label, (number, size));
            number += 1;
        }
        drain(&mut link, begins + superframe - Duration::from_micros(1), |due, (number, size)| {
            let frame = (due - DELAY).saturating_sub(Duration::from_micros(1)).as_nanos()
                / superframe.as_nanos().max(1);
            if let Some(bytes) = usize::try_from(frame).ok().and_then(|frame| carried.get_mut(frame)) {
                // Of a packet in several fragments only the last is sure to be in this superframe.
                *bytes += size.min(96);
            }
            arrived.push((due, number));
        });
        let given = link.counters().given;
        most = most.max((given.0 - before.0) * 1000 / (slots * 100));
        before = given;
    }
    let carried = carried.iter().max().map_or(0, |bytes| bytes * 1000 / (slots * 100));
    History { arrived, counters: link.counters(), given: most, carried }
}

/// No superframe gives or carries more than it has.
pub(super) fn conserved(links: u64) -> Row {
    let histories = (0..links).map(live);
    let (mut given, mut carried, mut bytes, mut wrong) = (0, 0, 0, Vec::new());
    for (seed, history) in histories.enumerate() {
        (given, carried) = (given.max(history.given), carried.max(history.carried));
        bytes += history.counters.given.0;
        if history.given > 1000
            || history.carried > 1000
            || history.counters.sent.bytes > history.counters.given
        {
            wrong.push(seed);
        }
    }
    let measured = format!(
        "the fullest superframe gave {:.1} % and carried {:.1} % of its slots, {} MB given; wrong seeds: {wrong:?}",
        given as f64 / 10.0,
        carried as f64 / 10.0,
        bytes / 1_000_000
    );
    let what = format!("capacity given, {links} links drawn, {TERMINALS} terminals each");
    Row::judged(what, measured, "≤ 100 % of every superframe", wrong.is_empty() && bytes > 0)
}

/// A seed is one history, another seed another.
pub(super) fn replayed(links: u64) -> Row {
    let differing = (0..links).filter(|seed| live(*seed) != live(*seed)).count();
    let alike = (0..links).filter(|seed| live(*seed) == live(seed + links)).count();
    let arrivals: usize = (0..links).map(|seed| live(seed).arrived.len()).sum();
    let measured = format!(
        "{differing} of {links} differ when lived again, {alike} are like another seed's; {arrivals} arrivals compared"
    );
    let good = differing == 0 && alike == 0 && arrivals > 0;
    Row::judged("one seed lived twice", measured, "the same to the last packet", good)
}
