//! Which bodies the remote holds is told to a ground that says it makes use of it, and to no other. What the remote undoes it says in turn.

mod pair;

use std::time::Duration;

use farhop_htotp::mirror::{BodyHash, HeldBody, Word};
use farhop_htotp::session::{Config, Event};
use pair::{GROUND, Pair};

fn session(bodies: bool) -> Pair {
    let mut pair = Pair::new(Duration::from_millis(300), None, Config { bodies, ..Config::default() });
    pair.run(Duration::from_secs(2));
    pair
}

#[test]
fn ground_says_in_its_settings_whether_it_makes_use_of_bodies() {
    assert!(session(true).remote().takes_bodies());
    assert!(!session(false).remote().takes_bodies());
}

#[test]
fn the_remote_says_in_its_settings_whether_it_undoes_codings_of_origins_and_deltas_of_several_frames() {
    for undoes in [false, true] {
        let config = Config { undoes, ..Config::default() };
        let mut pair = Pair::new(Duration::from_millis(300), None, config);
        assert!(!pair.ground().takes_origins_codings());
        pair.run(Duration::from_secs(2));
        assert_eq!(pair.ground().takes_origins_codings(), undoes);
        assert_eq!(pair.ground().takes_chained_deltas(), undoes);
        assert!(!pair.remote().takes_origins_codings(), "ground undoes nothing");
    }
}

#[test]
fn words_of_bodies_come_in_order_behind_the_reset_that_opens_the_mirror() {
    let mut pair = session(true);
    let body = |user, text: &[u8]| HeldBody { user, hash: BodyHash::of(text) };
    let words =
        [Word::Holds(vec![body(None, b"a"), body(Some(7), b"b")]), Word::Lacks(vec![body(None, b"a")])];
    for word in words.clone() {
        pair.remote().tell_mirror(word);
    }
    pair.run(Duration::from_secs(4));
    let events = pair.events(GROUND).into_iter();
    let heard: Vec<Word> = events
        .filter_map(|(_, event)| if let Event::Mirror(word) = event { Some(word) } else { None })
        .collect();
    assert_eq!(heard, [&[Word::Reset][..], &words].concat());
}
