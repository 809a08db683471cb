//! What asking ahead is worth: an upload whose length is known from its first byte on, over a return link whose capacity is given on
//! demand, with an end that says what is coming and one that does not. 13 superframes of 50 ms from a request to its answer.

use farhop_capacity::{Answer, Asker, Expect};
use farhop_orbit::{Direction, Entitlement, Label, Leg, OnDemand, Signalling, Supply, Volume};
use farhop_units::{BitRate, Bytes};
use std::sync::Arc;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const DELAY: Duration = Duration::from_millis(300);
/// One packet every so often: 200 kbit/s of the link's 320.
const PACKET: u64 = 1000;
const PAUSE: u32 = 40;
/// When the upload begins.
const BEGIN: u32 = 1000;

fn link(volume: Volume, loss: f64) -> Direction<u32> {
    let entitlement = Entitlement { cra: BitRate(0), rbdc: BitRate(0), volume, fca: false };
    let shared = OnDemand {
        superframe: 50 * MS,
        capacity: BitRate::kbit(320),
        slot: Bytes(100),
        header: Bytes(0),
        control_round: 650 * MS,
        entitlement,
        rbdc_timeout: 8,
        signalling: Signalling { loss, contention: None, size: Bytes(0) },
        terminals: 1,
        others: None,
    };
    shared.check().expect("the shape holds");
    let supply = Supply::OnDemand(Arc::new(shared));
    let queue = Bytes(1_000_000);
    Direction::new(
        Leg { delay: DELAY, rate: Some(BitRate::kbit(320)), supply, queue, ..Leg::transparent() },
        1,
    )
}

/// How the end asks.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Asks {
    Not,
    Modem,
    Centre,
}

/// What an upload came to.
#[derive(Debug)]
struct Course {
    /// What each packet waited for capacity.
    waits: Vec<Duration>,
    /// Used ÷ given.
    utilisation: f64,
    datagrams: u32,
}

impl Course {
    fn mean(&self) -> u128 {
        self.waits.iter().sum::<Duration>().as_millis() / self.waits.len() as u128
    }
}

/// An upload of so many packets.
fn upload(packets: u32, volume: Volume, loss: f64, asks: Asks) -> Course {
    let mut link = link(volume, loss);
    let mut asker = Asker::new(32_000, None);
    let (mut waits, mut datagrams) = (Vec::new(), 0);
    for now in 0..BEGIN + packets * PAUSE + 20_000 {
        let at = now * MS;
        if now == BEGIN {
            asker.expect(u64::from(packets) * PACKET);
        }
        if now >= BEGIN && (now - BEGIN).is_multiple_of(PAUSE) && (now - BEGIN) / PAUSE < packets {
            link.handle_labelled(at, Bytes(PACKET), Label::default(), now);
            asker.sent(PACKET);
        }
        while asks != Asks::Not
            && let Some(Expect { number, bytes, .. }) = asker.poll_transmit(at)
        {
            datagrams += 1;
            match asks {
                Asks::Modem => link.announce(at, 0, Bytes(bytes)),
                _ => link.foretell(at, 0, Bytes(bytes)),
            }
            asker.handle_answer(at, &Answer::Noted { number });
        }
        while let Some(sent) = link.poll_transmit(at) {
            waits.push(sent.due - sent.packet * MS - DELAY);
        }
    }
    assert_eq!(waits.len(), packets as usize);
    assert_eq!(
        asker.next_wakeup(),
        None,
        "it has said that nothing more comes, or was never to say anything"
    );
    let counters = link.counters();
    let course =
        Course { waits, utilisation: counters.sent.bytes.0 as f64 / counters.given.0 as f64, datagrams };
    let Course { utilisation, datagrams, .. } = &course;
    println!(
        "{volume:?}, {asks:?}, {loss} lost: mean wait {} ms, {utilisation:.2} used, {datagrams} datagrams",
        course.mean()
    );
    course
}

#[test]
fn an_upload_that_is_announced_waits_for_one_control_round_and_not_for_all() {
    for volume in [Volume::Added, Volume::Absolute] {
        let (not, modem) = (upload(250, volume, 0.0, Asks::Not), upload(250, volume, 0.0, Asks::Modem));
        // Every packet waits for its own request: to the next superframe, 650 ms, its slots.
        assert!((650..=735).contains(&not.mean()), "{volume:?} {}", not.mean());
        // Only what comes in the first control round has to; what was asked for ahead then carries it off.
        assert!(modem.waits[0] >= 650 * MS, "{volume:?} {:?}", modem.waits[0]);
        // In the last control round little is expected any more, and what was given ahead and not met is missing there.
        let later = &modem.waits[125..225];
        assert!(later.iter().all(|wait| *wait <= 100 * MS), "{volume:?} {later:?}");
        assert!(modem.mean() * 3 <= not.mean(), "{volume:?} {} of {}", modem.mean(), not.mean());
        // What is given ahead and not met is the price.
        assert!(not.utilisation > 0.95, "{volume:?} {}", not.utilisation);
        assert!((0.5..1.0).contains(&modem.utilisation), "{volume:?} {}", modem.utilisation);
        assert!(modem.datagrams < 80, "{}", modem.datagrams);
    }
}

#[test]
fn the_centre_itself_answers_sooner_than_a_modem() {
    for volume in [Volume::Added, Volume::Absolute] {
        let (modem, centre) = (upload(250, volume, 0.0, Asks::Modem), upload(250, volume, 0.0, Asks::Centre));
        // A table of 350 ms in place of a round of 650 ms; the terminal's own request for the first packet has not even arrived.
        assert!((350..=450).contains(&centre.waits[0].as_millis()), "{volume:?} {:?}", centre.waits[0]);
        assert!(centre.mean() < modem.mean(), "{volume:?} {} {}", centre.mean(), modem.mean());
    }
}

#[test]
fn an_end_that_asks_helps_where_requests_get_lost() {
    let (not, modem) =
        (upload(250, Volume::Absolute, 0.3, Asks::Not), upload(250, Volume::Absolute, 0.3, Asks::Modem));
    assert!(modem.mean() * 2 <= not.mean(), "{} of {}", modem.mean(), not.mean());
}

#[test]
fn a_short_upload_costs_no_more_than_twice_what_it_needs() {
    for asks in [Asks::Modem, Asks::Centre] {
        let course = upload(3, Volume::Absolute, 0.0, asks);
        assert!(course.utilisation >= 0.5, "{asks:?} {}", course.utilisation);
        assert!(course.datagrams <= 12, "{asks:?} {}", course.datagrams);
    }
}

#[test]
fn what_a_terminal_is_given_is_told_while_it_is_and_for_a_control_round() {
    let mut link = link(Volume::Absolute, 0.0);
    let mut told = Vec::new();
    for now in 0..6_000 {
        let at = now * MS;
        // 200 kbit/s from the first to the third second.
        if (1_000..3_000).contains(&now) && now % PAUSE == 0 {
            link.handle_labelled(at, Bytes(PACKET), Label::default(), now);
        }
        while link.poll_transmit(at).is_some() {}
        told.push(link.granted(at, 0).expect("capacity is given on demand").0);
    }
    assert_eq!((told[900], told[5_900]), (0, 0), "nothing is asked for");
    // It begins a control round after the first packet.
    assert!(told[..1_600].iter().all(|rate| *rate == 0));
    let mean = told[2_500..3_000].iter().sum::<u64>() / 500;
    assert!((185_000..=215_000).contains(&mean), "{mean}");
    assert_eq!(Direction::<u32>::new(Leg::transparent(), 1).granted(MS, 0), None);
}
