//! What the transport has to reach, and what each controller is there for.
//! `cargo run -p farhop-congestion --example table` prints the whole table.

use std::time::Duration;

use farhop_congestion::Choice;

use crate::simulation::scenes::{Link, RTT, after_small_pages, fresh, measured, urgent, warm};

const CLEAN: Link = Link { queue_kb: 600, loss: 0.0 };
const SHORT: Link = Link { queue_kb: 100, loss: 0.0 };
const LOSSY: Link = Link { queue_kb: 600, loss: 0.01 };

const BULK: u64 = 2_000_000;

/// A controller that `auto` may choose.
const SENSIBLE: [Choice; 2] = [Choice::Rate, Choice::Bbr];

#[test]
fn two_megabytes_on_a_warm_carrier_take_what_the_link_needs() {
    for choice in SENSIBLE {
        for (link, pause) in [(CLEAN, 0), (CLEAN, 60), (SHORT, 0), (SHORT, 60)] {
            let ratio = warm(link, choice, pause, BULK).ratio();
            assert!(ratio <= 1.05, "{choice} over {link:?} after {pause} s: {ratio:.3}");
        }
    }
}

#[test]
fn two_megabytes_on_a_fresh_carrier_over_a_known_path_take_little_more() {
    for choice in SENSIBLE {
        for link in [CLEAN, SHORT] {
            let ratio = fresh(link, choice, measured(link, choice), BULK).ratio();
            assert!(ratio <= 1.10, "{choice} over {link:?}: {ratio:.3}");
        }
    }
}

#[test]
fn careful_resume_saves_every_search_two_seconds() {
    // Westwood's filter learns long round trips so slowly that there is too little to be saved: it is here to compare with.
    for choice in Choice::ALL.into_iter().filter(|choice| choice.searches() && *choice != Choice::Westwood) {
        let unknown = fresh(CLEAN, choice, None, BULK).took;
        let known = fresh(CLEAN, choice, measured(CLEAN, choice), BULK).took;
        assert!(unknown - known > Duration::from_secs(2), "{choice}: {unknown:?}, {known:?}");
    }
}

#[test]
fn what_is_urgent_waits_for_no_queue() {
    let bound = RTT + Duration::from_millis(150);
    for choice in SENSIBLE {
        for link in [CLEAN, SHORT] {
            let took = urgent(link, choice).took;
            assert!(took <= bound, "{choice} over {link:?}: {took:?}");
        }
    }
    let behind = urgent(CLEAN, Choice::Cubic).took;
    assert!(behind > bound, "cubic fills the queue: {behind:?}");
}

#[test]
fn a_known_rate_drops_nothing_even_where_the_queue_is_short() {
    let outcomes = [fresh(SHORT, Choice::Rate, None, 10 * BULK), warm(SHORT, Choice::Rate, 60, BULK)];
    assert_eq!(outcomes.map(|outcome| outcome.dropped), [0, 0]);
    assert!(outcomes.iter().all(|outcome| outcome.queue_peak.0 < 4_000), "a packet or two: {outcomes:?}");
    assert!(outcomes[0].ratio() < 1.01, "{:?}", outcomes[0]);
}

#[test]
fn random_loss_costs_a_repair_and_not_the_rate() {
    // Without error correction what was lost crosses a round trip later, the last of it alone.
    for choice in SENSIBLE {
        let outcome = warm(LOSSY, choice, 0, BULK);
        assert!(outcome.took <= outcome.limit + RTT * 11 / 10, "{choice}: {outcome:?}");
        let long = fresh(LOSSY, choice, None, 10 * BULK).ratio();
        assert!(long <= 1.25, "{choice}: {long:.3}");
    }
}

#[test]
fn small_pages_before_do_not_hold_up_what_is_large() {
    let ratios = SENSIBLE.map(|choice| after_small_pages(CLEAN, choice).ratio());
    assert!(ratios[0] <= 1.02 && ratios[1] <= 1.25, "{ratios:?}");
}
