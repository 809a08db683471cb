//! Heads and small objects in the midst of a download: what becomes of their losses where packets are few, and what the
//! download pays for it.

mod support;

use std::time::Duration;

use support::{DELAY, Pair};

/// Bytes of a stream in a packet of these tests.
const PAYLOAD: usize = 1_400 - 35;
/// Packets of an object.
const OBJECT: usize = 4;

/// What came of a download at so many ms a packet, with an object in it after every fifty packets.
struct Course {
    /// Objects of which a packet stayed away for more than three packets' time after their last.
    late: usize,
    /// Packets of the download that QUIC had to send again.
    missing: usize,
    /// Bytes of repair for each byte sent.
    cost: f64,
}

fn course(loss: f64, packet_ms: u64, expected: Option<bool>) -> Course {
    let packet_time = Duration::from_millis(packet_ms);
    let mut pair = Pair::new(loss, 1.0, 11);
    pair.near.remember(loss);
    pair.bulk(3_000);
    let (before, from) = (pair.near.counters().sent, pair.next());
    let mut objects = Vec::new();
    let send = |pair: &mut Pair| {
        pair.send(1, 1400, 1400);
        pair.run_until(pair.now + packet_time);
    };
    for _ in 0..600 {
        (0..50).for_each(|_| send(&mut pair));
        objects.push(pair.next());
        if let Some(urgent) = expected {
            pair.near.expect(OBJECT * PAYLOAD, urgent);
        }
        (0..OBJECT).for_each(|_| send(&mut pair));
    }
    pair.run_until(pair.now + 4 * DELAY);
    let after = pair.near.counters().sent;
    let is_of_object =
        |number: u32| objects.iter().any(|first| (*first..*first + OBJECT as u32).contains(&number));
    let arrived: std::collections::HashMap<u32, Duration> =
        pair.arrived.iter().map(|(number, at, _)| (*number, *at)).collect();
    let is_late = |first: &&u32| {
        let last = pair.sent[&(**first + OBJECT as u32 - 1)].0 + DELAY + 3 * packet_time;
        (**first..**first + OBJECT as u32).any(|number| arrived.get(&number).is_none_or(|at| *at > last))
    };
    Course {
        late: objects.iter().filter(is_late).count(),
        missing: (from..pair.next()).filter(|n| !is_of_object(*n) && !arrived.contains_key(n)).count(),
        cost: (after.repair_bytes - before.repair_bytes) as f64
            / (after.source_bytes - before.source_bytes) as f64,
    }
}

#[test]
fn what_is_waited_for_is_repaired_first_and_in_all_no_more_is() {
    let mut rows = Vec::new();
    for (loss, packet_ms) in [(0.01, 2), (0.01, 20), (0.03, 20), (0.03, 80)] {
        for (told, expected) in [("nothing told", None), ("told", Some(false)), ("told urgent", Some(true))] {
            let Course { late, missing, cost } = course(loss, packet_ms, expected);
            rows.push(format!(
                "{:.0} % lost, {packet_ms} ms a packet, {told}: {late} of 600 late, {missing} missing, {:.1} % repairs",
                loss * 100.0,
                cost * 100.0,
            ));
        }
    }
    // Where packets take long, a repair covers few, and the download has most of its losses sent again in any case.
    let expected = [
        "1 % lost, 2 ms a packet, nothing told: 16 of 600 late, 0 missing, 4.6 % repairs",
        "1 % lost, 2 ms a packet, told: 1 of 600 late, 0 missing, 4.6 % repairs",
        "1 % lost, 2 ms a packet, told urgent: 1 of 600 late, 0 missing, 4.6 % repairs",
        "1 % lost, 20 ms a packet, nothing told: 27 of 600 late, 30 missing, 4.6 % repairs",
        "1 % lost, 20 ms a packet, told: 2 of 600 late, 40 missing, 4.6 % repairs",
        "1 % lost, 20 ms a packet, told urgent: 2 of 600 late, 40 missing, 4.6 % repairs",
        "3 % lost, 20 ms a packet, nothing told: 49 of 600 late, 35 missing, 9.4 % repairs",
        "3 % lost, 20 ms a packet, told: 5 of 600 late, 29 missing, 9.4 % repairs",
        "3 % lost, 20 ms a packet, told urgent: 4 of 600 late, 57 missing, 9.3 % repairs",
        "3 % lost, 80 ms a packet, nothing told: 48 of 600 late, 325 missing, 9.3 % repairs",
        "3 % lost, 80 ms a packet, told: 9 of 600 late, 372 missing, 9.3 % repairs",
        "3 % lost, 80 ms a packet, told urgent: 3 of 600 late, 434 missing, 9.3 % repairs",
    ];
    assert_eq!(rows, expected, "\n{}\n", rows.join("\n"));
}
