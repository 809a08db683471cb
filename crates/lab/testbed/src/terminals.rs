//! Many terminals at once on one emulated link: that each has its share, that together they have no more than there is, and that
//! packets leave on time all the same.

use farhop_orbit::{Entitlement, OnDemand, Profile, Signalling, Supply, Volume};
use farhop_units::{BitRate, Bytes};
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use farhop_netdev::Namespace;

use crate::measure::{DELAY_BOUND, Row, micros, probing};
use crate::probe::{HEADERS, Probe};
use crate::{Error, Place, Testbed, quiet};

const MS: Duration = Duration::from_millis(1);
/// How many share the link.
const TERMINALS: u16 = 20;
/// What they may send together.
const CAPACITY: BitRate = BitRate::mbit(2);
/// Packets of each, and the pause between two: twice what its share carries.
const PACKETS: u64 = 250;
const PAUSE: Duration = Duration::from_millis(20);
const SIZE: usize = 500;
/// Jain's index of what terminals that want the same were given: 1 is even.
const EVEN: f64 = 0.99;

/// A return link for so many terminals: a little for each always, the rest by volume.
pub(crate) fn shared(terminals: u16) -> Profile {
    let link = OnDemand {
        superframe: 45 * MS,
        capacity: CAPACITY,
        slot: Bytes(100),
        header: Bytes(4),
        control_round: 645 * MS,
        entitlement: Entitlement {
            cra: BitRate::kbit(16),
            rbdc: BitRate(0),
            volume: Volume::Absolute,
            fca: false,
        },
        rbdc_timeout: 8,
        signalling: Signalling { loss: 0.0, contention: None, size: Bytes(0) },
        terminals,
        others: None,
    };
    let mut profile = Profile::symmetric_delay("shared", BitRate::mbit(20), CAPACITY, 300 * MS);
    profile.return_.queue = Bytes(30_000);
    profile.return_.supply = Supply::OnDemand(Arc::new(link));
    profile
}

/// Twenty users on as many terminals send twice what there is. Takes ten seconds and needs root.
///
/// # Errors
/// No testbed can be brought up, or no probe came through.
pub fn terminals() -> Result<Vec<Row>, Error> {
    let testbed = Testbed::with_terminals(&shared(TERMINALS), 1, TERMINALS)?;
    let users = users(&testbed);
    testbed.link().take_record();
    let (arrived, machine) = quiet::lateness_during(|| overload(&testbed, &users));
    let arrived = arrived?;
    let record = testbed.link().take_record();
    let counters = record.return_.counters;
    let most = CAPACITY.bytes_in(record.elapsed + 45 * MS);
    let index = jain(&arrived);
    let range = (arrived.iter().min().unwrap_or(&0), arrived.iter().max().unwrap_or(&0));
    let lateness = record.p99_lateness();
    Ok(vec![
        Row {
            what: format!("{TERMINALS} terminals at once, their shares"),
            measured: format!(
                "Jain's index {index:.4}: {} to {} packets of each; {} given, {} sent",
                range.0, range.1, counters.given, counters.sent.bytes
            ),
            bound: format!("≥ {EVEN}, no more than {CAPACITY} given, no more than that sent"),
            pass: index >= EVEN && counters.given <= most && counters.sent.bytes <= counters.given,
        },
        Row {
            what: format!("{TERMINALS} terminals at once, lateness"),
            measured: format!(
                "p99 {} (p50 {}, {} packets; an idle thread woke {} late at p99)",
                micros(lateness),
                micros(record.return_.lateness.p50),
                record.return_.lateness.packets,
                micros(machine)
            ),
            bound: format!("p99 ≤ {} on a quiet machine", micros(DELAY_BOUND)),
            pass: lateness <= DELAY_BOUND,
        },
    ])
}

/// Where each user's machine is, the first terminal's first.
fn users(testbed: &Testbed) -> Vec<(&Namespace, Ipv4Addr)> {
    let first = (testbed.namespace(Place::Client), testbed.addresses.client);
    let others = testbed.terminals().iter().map(|other| (other.client(), other.client_address));
    std::iter::once(first).chain(others).collect()
}

/// All send at once; how many packets of each arrived.
fn overload(testbed: &Testbed, users: &[(&Namespace, Ipv4Addr)]) -> Result<Vec<u64>, Error> {
    let origins = (testbed.namespace(Place::Origins), testbed.addresses.origins);
    let probes: Vec<Probe> = users
        .iter()
        .map(|user| Probe::between(*user, origins, Duration::from_secs(4)))
        .collect::<Result<_, _>>()?;
    let send = |probe: &Probe| -> io::Result<()> {
        for number in 0..PACKETS {
            probe.send(number, SIZE - HEADERS)?;
            thread::sleep(PAUSE);
        }
        Ok(())
    };
    let receive = |probe: &Probe| -> io::Result<u64> {
        let mut arrived = 0;
        while probe.receive()?.is_some() {
            arrived += 1;
        }
        Ok(arrived)
    };
    let all = || -> io::Result<Vec<u64>> {
        thread::scope(|scope| {
            let senders: Vec<_> = probes.iter().map(|probe| scope.spawn(move || send(probe))).collect();
            let receivers: Vec<_> = probes.iter().map(|probe| scope.spawn(move || receive(probe))).collect();
            let stopped = |_| Err(io::Error::other("a user stopped"));
            for sender in senders {
                sender.join().unwrap_or_else(|_| Err(io::Error::other("a user stopped")))?;
            }
            receivers.into_iter().map(|receiver| receiver.join().unwrap_or_else(stopped)).collect()
        })
    };
    all().map_err(probing)
}

/// Jain, Chiu, Hawe, "A quantitative measure of fairness", DEC-TR-301, 1984: (Σx)² ÷ (n × Σx²).
fn jain(shares: &[u64]) -> f64 {
    let sum: f64 = shares.iter().map(|share| *share as f64).sum();
    let squares: f64 = shares.iter().map(|share| (*share as f64).powi(2)).sum();
    if squares > 0.0 { sum * sum / (shares.len() as f64 * squares) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_is_one_when_all_have_the_same_and_one_nth_when_one_has_all() {
        assert!((jain(&[5, 5, 5, 5]) - 1.0).abs() < 1e-12);
        assert!((jain(&[7, 0, 0, 0]) - 0.25).abs() < 1e-12);
        assert!((jain(&[1, 3]) - 0.8).abs() < 1e-12);
        assert_eq!(jain(&[]), 0.0);
    }
}
