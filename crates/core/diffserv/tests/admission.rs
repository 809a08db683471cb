//! Calls are admitted as long as there is room, hold what they were given, and give all of it back.

#![allow(clippy::unwrap_used)] // helpers of tests count as tests

use std::time::Duration;

use farhop_diffserv::calls::{Admitted, Calls, Codec, Hop, Kept, Offer, Refusal, rate};
use farhop_units::BitRate;
use proptest::prelude::*;

const LEASE: Duration = Duration::from_secs(60);

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// G.729 at 20 ms: 24 kbit/s.
fn call(number: usize) -> Offer {
    let time = Duration::from_millis(20);
    Offer {
        id: format!("call-{number}").parse().unwrap(),
        rate: rate(Codec::G729, time, &Hop::PLAIN).unwrap(),
        codec: Some((Codec::G729, time)),
        media: vec!["10.0.0.1:16384".parse().unwrap()],
    }
}

#[test]
fn the_eleventh_call_of_a_share_for_ten_is_refused_and_the_ten_are_untouched() {
    let mut calls = Calls::new(BitRate::kbit(240), LEASE);
    for number in 0..10 {
        assert_eq!(calls.admit(at(0), call(number)), Ok(Admitted::New));
    }
    let before = calls.clone();
    let refusal = calls.admit(at(1), call(10)).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "no room for it: it needs 24 kbit/s, and of the 240 kbit/s set aside for calls 10 calls hold 240 kbit/s; release one, or give EF a greater share"
    );
    assert_eq!(calls, before);
    calls.release(&call(3).id).unwrap();
    assert_eq!(calls.admit(at(2), call(10)), Ok(Admitted::New));
}

#[test]
fn a_refusal_counts_calls_as_people_do_and_says_where_no_release_would_help() {
    let mut calls = Calls::new(BitRate::kbit(30), LEASE);
    let large = Offer { rate: BitRate::kbit(31), ..call(0) };
    let refusal = calls.admit(at(0), large).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "no room for it: it needs 31 kbit/s, more than the whole share of 30 kbit/s set aside for calls; give EF a greater share"
    );
    assert!(refusal.is_for_want_of_room(), "where the rate is followed the share may be greater again");
    calls.admit(at(0), call(0)).unwrap();
    let line = calls.admit(at(0), call(1)).unwrap_err().to_string();
    assert!(line.contains("1 call holds 24 kbit/s; release one"), "{line}");
}

#[test]
fn a_lost_release_heals_when_the_lease_is_over() {
    let mut calls = Calls::new(BitRate::kbit(48), LEASE);
    calls.admit(at(0), call(0)).unwrap();
    calls.admit(at(0), call(1)).unwrap();
    assert!(calls.renew(at(50), &call(1).id) && !calls.renew(at(50), &call(2).id));
    assert_eq!((calls.next_expiry(), calls.expire(at(59)).len()), (Some(at(60)), 0));
    let gone = calls.expire(at(60));
    assert_eq!(gone.iter().map(|call| call.offer.id.to_string()).collect::<Vec<_>>(), ["call-0"]);
    assert_eq!((calls.held(), calls.next_expiry()), (BitRate::kbit(24), Some(at(110))));
}

#[test]
fn a_call_that_is_offered_again_holds_its_rate_once() {
    let mut calls = Calls::new(BitRate::kbit(30), LEASE);
    calls.admit(at(0), call(0)).unwrap();
    assert_eq!(calls.admit(at(5), call(0)), Ok(Admitted::Again));
    assert_eq!((calls.held(), calls.next_expiry()), (BitRate::kbit(24), Some(at(65))));
    let dearer = Offer { rate: BitRate::kbit(80), ..call(0) };
    assert!(matches!(calls.admit(at(6), dearer), Err(Refusal::TooLarge { .. })));
    assert_eq!(calls.held(), BitRate::kbit(24), "it keeps what it had");
    let cheaper = Offer { rate: BitRate::kbit(10), ..call(0) };
    assert_eq!((calls.admit(at(7), cheaper), calls.held()), (Ok(Admitted::Changed), BitRate::kbit(10)));
}

#[test]
fn calls_go_on_when_the_share_becomes_less_and_new_ones_wait() {
    let mut calls = Calls::new(BitRate::kbit(48), LEASE);
    calls.admit(at(0), call(0)).unwrap();
    calls.admit(at(0), call(1)).unwrap();
    calls.resize(BitRate::kbit(24));
    assert_eq!((calls.iter().count(), calls.admit(at(1), call(0))), (2, Ok(Admitted::Again)));
    assert!(calls.admit(at(1), call(2)).is_err());
    calls.release(&call(1).id);
    assert!(calls.admit(at(1), call(2)).is_err(), "the one that is left holds all there is");
}

#[test]
fn what_was_written_down_is_taken_up_with_a_whole_lease() {
    let mut calls = Calls::new(BitRate::kbit(48), LEASE);
    calls.admit(at(0), call(0)).unwrap();
    let plain = Offer { rate: BitRate::kbit(8), codec: None, media: Vec::new(), ..call(7) };
    calls.admit(at(0), plain).unwrap();
    let json = serde_json::to_string(&calls.kept()).unwrap();
    let mut kept: Vec<Kept> = serde_json::from_str(&json).unwrap();
    kept.push(Kept { id: "two words".into(), ..kept[0].clone() });
    let (taken, lost) = Calls::take_up(BitRate::kbit(48), LEASE, at(1000), &kept);
    assert_eq!((taken.kept(), lost), (calls.kept(), 1));
    assert_eq!((taken.held(), taken.next_expiry()), (BitRate::kbit(32), Some(at(1060))));
}

#[derive(Debug, Clone)]
enum Step {
    Admit(usize, u64),
    Release(usize),
    Renew(usize),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0usize..12, 0u64..90).prop_map(|(call, kbit)| Step::Admit(call, kbit)),
        2 => (0usize..12).prop_map(Step::Release),
        1 => (0usize..12).prop_map(Step::Renew),
        1 => (0u64..40).prop_map(Step::Wait),
    ]
}

proptest! {
    /// Beside a book that is kept in the plainest way.
    #[test]
    fn no_history_gives_away_more_than_there_is(share in 0u64..400, steps in proptest::collection::vec(step(), 1..120)) {
        let share = BitRate::kbit(share);
        let mut calls = Calls::new(share, LEASE);
        let mut book = std::collections::BTreeMap::new();
        let mut now = at(0);
        for step in steps {
            book.retain(|_, (_, until): &mut (u64, Duration)| *until > now);
            calls.expire(now);
            match step {
                Step::Admit(number, kbit) => {
                    let before = calls.clone();
                    let admitted = calls.admit(now, Offer { rate: BitRate::kbit(kbit), ..call(number) });
                    let own = book.get(&number).map_or(0, |(rate, _)| *rate);
                    let others: u64 = book.values().map(|(rate, _)| rate).sum::<u64>() - own;
                    let rate = BitRate::kbit(kbit).0;
                    prop_assert_eq!(admitted.is_ok(), rate > 0 && (rate <= own || others + rate <= share.0));
                    match admitted {
                        Ok(_) => { book.insert(number, (rate, now + LEASE)); }
                        Err(_) => prop_assert_eq!(&calls, &before),
                    }
                }
                Step::Release(number) => {
                    prop_assert_eq!(calls.release(&call(number).id).is_some(), book.remove(&number).is_some());
                }
                Step::Renew(number) => {
                    let there = book.get_mut(&number).map(|it| it.1 = now + LEASE).is_some();
                    prop_assert_eq!(calls.renew(now, &call(number).id), there);
                }
                Step::Wait(seconds) => now += at(seconds),
            }
            prop_assert!(calls.held() <= share);
            prop_assert_eq!(calls.held().0, book.values().map(|(rate, _)| rate).sum::<u64>());
            let (taken, lost) = Calls::take_up(share, LEASE, now, &calls.kept());
            prop_assert_eq!((taken.kept(), lost), (calls.kept(), 0));
        }
    }
}
