//! The emulator with everything on that a fixed link has, measured from outside, between two kernels. What comes of a packet is then
//! drawn at random; the same model in virtual time, with the same seed and told when each probe was sent, says what it must be.

use farhop_orbit::{
    Bursts, CoDel, Direction, Discipline, Label, Leg, Loss, Outage, Path, Policer, Profile, Reordering,
    Schedule, Segment, Way,
};
use farhop_units::{BitRate, Bytes};
use std::time::Duration;

use crate::measure::{Delays, PROBES, Row, delay_row, exchange, hop, probing, throughput};
use crate::probe::{HEADERS, SMALLEST};
use crate::{Error, Testbed, quiet};

const MS: Duration = Duration::from_millis(1);
const SEED: u64 = 6;

/// Everything that a link of satellites that stand still has, each part so that it shows.
fn everything() -> Leg {
    let ground = Segment { delay: 10 * MS, jitter: MS, loss: Loss::Bits(1e-5), ..Segment::NONE };
    Leg {
        delay: 100 * MS,
        rate: Some(BitRate::mbit(8)),
        queue: Bytes(600_000),
        loss: Loss::Bursts(Bursts { enter: 0.01, leave: 0.25, good: 0.0, bad: 1.0 }),
        discipline: Discipline::CoDel(CoDel { target: 30 * MS, interval: 600 * MS, ecn: true }),
        policer: Some(Policer { rate: BitRate::mbit(6), burst: Bytes(100_000) }),
        jitter: 2 * MS,
        reordering: Some(Reordering { share: 0.02, by: 20 * MS }),
        // Looked up for every packet, and too late to lose one of them.
        schedule: Schedule {
            outages: vec![Outage { at: Duration::from_secs(24 * 3600), lasts: MS, every: None }],
            handovers: None,
        },
        before: ground.clone(),
        after: ground,
        ..Leg::transparent()
    }
}

/// The same parts, each so small that what is measured is the work and not the waiting.
fn everything_fast() -> Leg {
    let ground = Segment {
        delay: Duration::ZERO,
        jitter: Duration::from_micros(1),
        loss: Loss::Bits(1e-10),
        ..Segment::NONE
    };
    Leg {
        delay: Duration::ZERO,
        rate: Some(BitRate::mbit(20_000)),
        queue: Bytes(10_000_000),
        loss: Loss::Bursts(Bursts { enter: 1e-6, leave: 0.5, good: 0.0, bad: 1.0 }),
        policer: Some(Policer { rate: BitRate::mbit(20_000), burst: Bytes(10_000_000) }),
        jitter: Duration::from_micros(1),
        reordering: Some(Reordering { share: 1e-6, by: Duration::from_micros(10) }),
        before: ground.clone(),
        after: ground,
        ..everything()
    }
}

/// Delay of both ways, losses packet by packet, and throughput. Takes a minute and needs root.
///
/// # Errors
/// No testbed can be brought up, or no probe came through.
pub fn impaired() -> Result<Vec<Row>, Error> {
    let leg = everything();
    let profile = Profile { name: "everything on".into(), forward: leg.clone(), return_: leg };
    let mut rows = Vec::new();
    for way in Way::BOTH {
        rows.extend(delay(&profile, way)?);
    }
    let fast = everything_fast();
    let profile = Profile { name: "everything on".into(), forward: fast.clone(), return_: fast };
    rows.push(throughput(&Testbed::up(&profile, SEED)?, "segments, everything on, per core")?);
    Ok(rows)
}

/// One way, packet by packet against its twin in virtual time.
fn delay(profile: &Profile, way: Way) -> Result<[Row; 2], Error> {
    let testbed = Testbed::up(profile, SEED)?;
    let (forward, return_) = Path::directions(profile, SEED);
    let mut twin = match way {
        Way::Forward => forward,
        Way::Return => return_,
    };
    let (mut offered, mut lost, mut differing) = (0, 0, 0);
    let row = delay_row(profile, way, || {
        let (delays, fates) = attempt(&testbed, way, &mut twin)?;
        offered += PROBES;
        lost += fates.iter().filter(|fate| !fate.expected).count();
        differing += fates.iter().filter(|fate| fate.expected != fate.arrived).count();
        Ok(delays)
    })?;
    let losses = Row {
        what: format!("losses packet by packet, everything on, {way}"),
        measured: format!("{lost} of {offered} lost in virtual time, {differing} decided otherwise live"),
        bound: "the same packets".into(),
        pass: differing == 0 && lost > 0,
    };
    Ok([row, losses])
}

/// What became of a probe.
#[derive(Debug, Clone, Copy, Default)]
struct Fate {
    /// It had to arrive.
    expected: bool,
    /// It did.
    arrived: bool,
}

fn attempt(testbed: &Testbed, way: Way, twin: &mut Direction<u64>) -> Result<(Delays, Vec<Fate>), Error> {
    let probe = hop(testbed, way)?;
    testbed.link().take_record();
    let (exchanged, machine) =
        quiet::lateness_during(|| exchange(&probe, PROBES, SMALLEST, Duration::from_millis(5)));
    let (sent, arrivals) = exchanged.map_err(probing)?;
    let mut due = vec![None; sent.len()];
    let mut take = |twin: &mut Direction<u64>, now| {
        while let Some(sent) = twin.poll_transmit(now) {
            if let Some(due) = usize::try_from(sent.packet).ok().and_then(|number| due.get_mut(number)) {
                *due = Some(sent.due);
            }
        }
    };
    for (number, at) in sent.iter().enumerate() {
        take(twin, *at);
        twin.handle_labelled(*at, Bytes((SMALLEST + HEADERS) as u64), Label::default(), number as u64);
    }
    while let Some(at) = twin.next_wakeup() {
        take(twin, at);
    }
    let mut fates: Vec<Fate> =
        due.iter().map(|due| Fate { expected: due.is_some(), arrived: false }).collect();
    let mut errors = Vec::new();
    for arrival in &arrivals {
        let Ok(number) = usize::try_from(arrival.number) else { continue };
        if let (Some(fate), Some(due)) = (fates.get_mut(number), due.get(number).copied().flatten()) {
            fate.arrived = true;
            errors.push(arrival.at.abs_diff(due));
        } else if let Some(fate) = fates.get_mut(number) {
            fate.arrived = true;
        }
    }
    errors.sort();
    let lateness = testbed.link().take_record().way(way).lateness;
    let all = fates.iter().filter(|fate| fate.expected).count();
    Ok((Delays { errors, all, lateness, machine }, fates))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_on_shows_in_virtual_time() {
        let mut link = Direction::new(everything(), SEED);
        let mut out = Vec::new();
        for number in 0..20_000u32 {
            let now = number * 5 * MS;
            out.extend(std::iter::from_fn(|| link.poll_transmit(now)).map(|sent| sent.packet));
            link.handle_packet(now, Bytes(36), number);
        }
        let counters = link.counters();
        let lost = counters.loss_drops.packets as f64 / 20_000.0;
        assert!((0.02..0.07).contains(&lost), "{lost}");
        assert!(!out.is_sorted(), "some are overtaken");
        assert_eq!(counters.queue_drops.packets + counters.policer_drops.packets, 0, "nothing waits");
    }
}
