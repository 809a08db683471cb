//! What goes first, in the order of uses alone: no clock and no store.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use farhop_replacement::{Link, Replacement, Response, Worth, can_answer_again};
use farhop_units::{BitRate, Bytes};

const GEO: Link = Link { round_trip: Duration::from_millis(650), rate: BitRate::mbit(8) };

fn response(uses: u32, size: u64) -> Response {
    Response { uses, cost: GEO.cost(Bytes(size)), size: Bytes(size) }
}

#[test]
fn what_the_link_brings_slowly_for_its_size_is_worth_more() {
    let now = Replacement::default();
    assert!(now.worth(&response(1, 1_000)) > now.worth(&response(1, 1_000_000)), "a round trip each");
    let coded = Response { cost: GEO.cost(Bytes(200_000)), ..response(1, 1_000_000) };
    assert!(coded.cost < response(1, 1_000_000).cost);
    assert!(now.worth(&coded) < now.worth(&response(1, 1_000_000)), "text crosses more cheaply than images");
    assert!(now.worth(&response(2, 50_000)) > now.worth(&response(1, 50_000)));
}

#[test]
fn what_is_not_used_any_more_is_overtaken() {
    let mut policy = Replacement::default();
    let favourite = policy.worth(&response(100, 20_000));
    let mut gone = 0;
    while policy.worth(&response(1, 20_000)) <= favourite {
        policy.handle_gone(policy.worth(&response(1, 20_000)));
        gone += 1;
    }
    assert_eq!(gone, 99, "after as many others as it was used more often");
    policy.handle_gone(favourite);
    let before = policy.age();
    policy.handle_gone(Replacement::default().worth(&response(1, 1)).min(before));
    assert_eq!(policy.age(), before, "age never goes back");
}

#[test]
fn worth_is_written_down_in_its_order() {
    let policy = Replacement::default();
    let sizes = [0, 1, 999, 1_000, 65_536, 1 << 20, 1 << 40];
    let worths = sizes.map(|size| policy.worth(&response(1, size)));
    for (one, other) in worths.iter().flat_map(|one| worths.iter().map(move |other| (one, other))) {
        assert_eq!(one.cmp(other), one.to_bits().cmp(&other.to_bits()));
        assert_eq!(Worth::from_bits(one.to_bits()), Some(*one));
    }
    for never in [f64::NAN, f64::INFINITY, -1.0, -0.0] {
        assert_eq!(Worth::from_bits(never.to_bits()), None);
    }
}

#[test]
fn what_can_never_answer_is_not_worth_a_place() {
    assert!(can_answer_again(Duration::ZERO, true) && can_answer_again(Duration::from_secs(60), false));
    assert!(!can_answer_again(Duration::from_secs(1), false));
}

/// Requests as users make them: few URLs often, many once (Zipf), most responses small and some large.
fn requests() -> Vec<(u64, u64)> {
    let mut state = 1_u64;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / (1_u64 << 31) as f64
    };
    (0..60_000)
        .map(|_| {
            let url = (20_000_f64.powf(draw()) - 1.0) as u64;
            let size = 1_000 << (url.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61);
            (url, size * if url % 50 == 7 { 20 } else { 1 })
        })
        .collect()
}

/// Time of the link that is spent on what a store of this size does not hold, if `worth` of uses, size and turn orders it.
fn spent(room: u64, mut worth: impl FnMut(u32, u64, u64, Option<Worth>) -> Worth) -> Duration {
    let (mut held, mut order) = (BTreeMap::<u64, (Worth, u32)>::new(), BTreeSet::new());
    let sizes: BTreeMap<u64, u64> = requests().into_iter().collect();
    let (mut used, mut spent) = (0, Duration::ZERO);
    for (turn, (url, size)) in requests().into_iter().enumerate() {
        let uses = match held.remove(&url) {
            Some((old, uses)) => {
                order.remove(&(old, url));
                uses + 1
            }
            None => {
                spent += GEO.cost(Bytes(size));
                used += size;
                1
            }
        };
        let new = worth(uses, size, turn as u64, None);
        held.insert(url, (new, uses));
        order.insert((new, url));
        while used > room {
            let (least, gone) = order.pop_first().expect("something is held");
            held.remove(&gone);
            used -= sizes[&gone];
            worth(0, 0, 0, Some(least));
        }
    }
    spent
}

#[test]
fn the_link_has_less_to_do_than_when_the_longest_unused_goes_first() {
    for room in [1_000_000, 4_000_000, 16_000_000] {
        let mut policy = Replacement::default();
        let by_worth = spent(room, |uses, size, _, gone| {
            if let Some(least) = gone {
                policy.handle_gone(least);
            }
            policy.worth(&response(uses.max(1), size))
        });
        let by_use = spent(room, |_, _, turn, _| {
            Replacement::default().worth(&Response {
                uses: 1,
                cost: Duration::from_secs(turn),
                size: Bytes(1),
            })
        });
        assert!(by_worth.mul_f64(1.1) < by_use, "{room}: {by_worth:?} against {by_use:?}");
    }
}
