//! What probes meet on a link whose capacity is given on demand: worked out with the model in virtual time, since a probe waits for
//! grants that those before it asked for. Pure.

use farhop_orbit::{OnDemand, Path, Profile, Supply, Way};
use farhop_units::{BitRate, Bytes};
use std::time::Duration;

/// When in a superframe the first probe comes nobody knows: the mean of so many moments is expected.
const MOMENTS: u32 = 8;
/// A link that has carried nothing by then is not waited for.
const ENDLESS: Duration = Duration::from_secs(120);

/// The capacity on demand of one way, if that is how it is given.
pub(crate) fn on_demand(profile: &Profile, way: Way) -> Option<&OnDemand> {
    match &profile.leg(way).supply {
        Supply::OnDemand(demand) => Some(demand),
        _ => None,
    }
}

/// How long it takes until nothing is granted any more of what was asked for.
pub(crate) fn rest(demand: &OnDemand) -> Duration {
    2 * demand.control_round + (demand.rbdc_timeout + 2) * demand.superframe
}

/// How many of a train's packets tell its rate: terminals ask for the bytes of packets, not for the headers of slots, so that the
/// last ones may have to wait for another grant.
pub(crate) fn telling(count: u32) -> u32 {
    (count * 3 / 4).max(2)
}

/// The median round trip of `count` packets of this size, sent at this pace from the terminal and answered at once.
pub(crate) fn round_trip(profile: &Profile, count: u32, pause: Duration, size: Bytes) -> Option<Duration> {
    let trips: Option<Vec<Duration>> = moments(profile)
        .map(|begin| {
            let mut arrived = Vec::new();
            let sent: Vec<Duration> = (0..count).map(|number| begin + pause * number).collect();
            follow(profile, &sent, size, |path, at, way, number| match way {
                Way::Return => drop(path.handle_packet(at, Way::Forward, size, number)),
                Way::Forward => arrived.push(at.saturating_sub(sent[number])),
            });
            arrived.sort();
            arrived.get(arrived.len() / 2).copied()
        })
        .collect();
    Some(trips?.iter().sum::<Duration>() / MOMENTS)
}

/// The rate at which `count` packets of this size arrive that the terminal has sent at once, and how long they take.
pub(crate) fn rate(profile: &Profile, count: u32, size: Bytes) -> Option<(BitRate, Duration)> {
    let spans: Option<Vec<f64>> = moments(profile)
        .map(|begin| {
            let sent = vec![begin; count as usize];
            let mut ends: Option<((usize, Duration), (usize, Duration))> = None;
            follow(profile, &sent, size, |_, at, way, number| {
                if way == Way::Return && number < telling(count) as usize {
                    ends = Some((ends.map_or((number, at), |(first, _)| first), (number, at)));
                }
            });
            let (first, last) = ends?;
            // For each packet, so that those which the link loses do not count.
            let span = last.1.saturating_sub(first.1).as_secs_f64();
            (last.0 > first.0).then(|| span / (last.0 - first.0) as f64)
        })
        .collect();
    let each = spans?.iter().sum::<f64>() / f64::from(MOMENTS);
    let rate = (size.0 * 8) as f64 / each;
    (each > 0.0)
        .then(|| (BitRate(rate.round() as u64), Duration::from_secs_f64(each * f64::from(telling(count)))))
}

/// Beginnings spread over a superframe, after the link was idle.
fn moments(profile: &Profile) -> impl Iterator<Item = Duration> + use<> {
    let (superframe, rest) = on_demand(profile, Way::Return)
        .map_or((Duration::ZERO, Duration::ZERO), |demand| (demand.superframe, rest(demand)));
    (0..MOMENTS).map(move |moment| rest + superframe * (2 * moment + 1) / (2 * MOMENTS))
}

/// Sends packets from the terminal at these times, and hands over each that arrives anywhere.
fn follow(
    profile: &Profile,
    sent: &[Duration],
    size: Bytes,
    mut arrives: impl FnMut(&mut Path<usize>, Duration, Way, usize),
) {
    let mut path = Path::new(profile, 1);
    let mut left = sent.iter().copied().enumerate().peekable();
    loop {
        let sends = left.peek().map(|(_, at)| *at);
        let Some(now) = [sends, path.next_wakeup()].into_iter().flatten().min() else { return };
        if now > ENDLESS {
            return;
        }
        while let Some((way, transmit)) = path.poll_transmit(now) {
            arrives(&mut path, transmit.due, way, transmit.packet);
        }
        while let Some((number, _)) = left.next_if(|(_, at)| *at <= now) {
            path.handle_packet(now, Way::Return, size, number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminals::shared;
    use farhop_orbit::{Entitlement, Volume};
    use std::sync::Arc;

    const NO: Entitlement =
        Entitlement { cra: BitRate(0), rbdc: BitRate(0), volume: Volume::None, fca: false };
    const CAPACITY: BitRate = BitRate::mbit(2);

    /// A link of 600 ms whose one terminal has nothing but this.
    fn link(entitlement: Entitlement) -> Profile {
        let mut profile = shared(1);
        let mut demand = on_demand(&profile, Way::Return).unwrap().clone();
        demand.entitlement = entitlement;
        profile.return_.supply = Supply::OnDemand(Arc::new(demand));
        profile
    }

    #[test]
    fn who_has_to_ask_waits_half_a_superframe_and_a_control_round_and_who_has_not_does_not() {
        let trip = |entitlement| {
            round_trip(&link(entitlement), 9, Duration::from_millis(10), Bytes(36)).unwrap().as_secs_f64()
        };
        let superframe = 0.045;
        // 645 ms are 15 superframes (EN 301 790: a table is for whole ones).
        for entitlement in [
            Entitlement { volume: Volume::Added, ..NO },
            Entitlement { volume: Volume::Absolute, ..NO },
            Entitlement { rbdc: CAPACITY, ..NO },
        ] {
            let expected = 0.6 + superframe / 2.0 + 15.0 * superframe;
            let found = trip(entitlement);
            assert!((found - expected).abs() < superframe, "{entitlement:?}: {found} for {expected}");
        }
        for entitlement in [Entitlement { cra: CAPACITY, ..NO }, Entitlement { fca: true, ..NO }] {
            let found = trip(entitlement);
            assert!((0.6..0.6 + superframe).contains(&found), "{entitlement:?}: {found}");
        }
    }

    #[test]
    fn a_train_is_carried_at_the_capacity_less_the_headers_of_its_slots() {
        for entitlement in [Entitlement { cra: CAPACITY, ..NO }, Entitlement { volume: Volume::Added, ..NO }]
        {
            let (rate, takes) = rate(&link(entitlement), 18, Bytes(1428)).unwrap();
            let share = rate.0 as f64 / CAPACITY.0 as f64;
            // 96 of 100 bytes of a slot, whole slots of a superframe, and the last slot of each packet not always full.
            assert!((0.85..=0.97).contains(&share), "{entitlement:?}: {share}");
            assert!(takes > Duration::from_millis(75), "{takes:?}");
        }
    }
}
