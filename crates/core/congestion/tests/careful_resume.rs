//! Careful Resume against whatever a path may do: packets leave, are acknowledged, are lost, in any
//! order and number, and the rules of RFC 9959 hold after each event.

use std::collections::VecDeque;
use std::time::Duration;

use farhop_congestion::{Ack, Choice, Controller, Loss, Phase, Resume, Saved, Sent};
use farhop_units::Bytes;
use proptest::prelude::*;

const PACKET: u64 = 1200;
const MINIMUM: u64 = 2 * PACKET;
const INITIAL: u64 = 10 * PACKET;
const RTT: Duration = Duration::from_millis(600);

/// What happens to a connection.
#[derive(Debug, Clone, Copy)]
enum Happening {
    /// So many packets leave, if the window lets them.
    Send(u8),
    /// The oldest in flight are acknowledged, if a round trip has passed; else time passes first.
    Ack(u8),
    /// The oldest in flight are lost.
    Lose(u8),
    /// All in flight is lost, and nothing came through for long.
    Outage,
    Wait(u16),
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let one = prop_oneof![
        8 => any::<u8>().prop_map(Happening::Send),
        8 => any::<u8>().prop_map(Happening::Ack),
        1 => (1u8..4).prop_map(Happening::Lose),
        1 => Just(Happening::Outage),
        2 => any::<u16>().prop_map(Happening::Wait),
    ];
    prop::collection::vec(one, 1..200)
}

fn choices() -> impl Strategy<Value = Choice> {
    prop::sample::select(Choice::ALL.into_iter().filter(|choice| choice.searches()).collect::<Vec<_>>())
}

/// A connection and what is known of it from outside.
struct Connection {
    resume: Resume,
    now: Duration,
    in_flight: VecDeque<Duration>,
    /// What has got through since the jump, and what was in flight then (PipeSize, counted again).
    pipe: u64,
    jumps: u32,
    acked: bool,
}

impl Connection {
    fn new(choice: Choice, saved: Saved) -> Self {
        let inner = choice.build(None, Bytes(PACKET)).expect("needs no contract");
        let mut resume = Resume::new(inner, Bytes(PACKET));
        resume.offer(Some(saved));
        let now = Duration::from_secs(1);
        Connection { resume, now, in_flight: VecDeque::new(), pipe: 0, jumps: 0, acked: false }
    }

    fn flight(&self) -> u64 {
        self.in_flight.len() as u64 * PACKET
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Send(packets) => {
                for _ in 0..packets {
                    if self.flight() + PACKET >= self.resume.window().0 {
                        break;
                    }
                    self.in_flight.push_back(self.now);
                    self.resume.on_sent(&Sent { now: self.now, in_flight: Bytes(self.flight()) });
                }
            }
            Happening::Ack(packets) => {
                for _ in 0..packets {
                    let Some(sent) = self.in_flight.pop_front() else { break };
                    self.now = self.now.max(sent + RTT);
                    self.ack(sent);
                }
            }
            Happening::Lose(packets) => {
                let lost: Vec<Duration> = (0..packets).map_while(|_| self.in_flight.pop_front()).collect();
                self.lose(&lost, false);
            }
            Happening::Outage => {
                self.now += 10 * RTT;
                let lost: Vec<Duration> = self.in_flight.drain(..).collect();
                self.lose(&lost, true);
            }
            Happening::Wait(ms) => self.now += Duration::from_millis(ms.into()),
        }
    }

    fn ack(&mut self, sent: Duration) {
        self.pipe += PACKET;
        self.acked = true;
        self.resume.on_ack(&Ack {
            now: self.now,
            sent,
            bytes: Bytes(PACKET),
            in_flight: Bytes(self.flight()),
            app_limited: false,
            min_rtt: Some(RTT),
            rtt: RTT,
        });
    }

    fn lose(&mut self, lost: &[Duration], persistent: bool) {
        let Some(&sent) = lost.last() else { return };
        let bytes = Bytes(lost.len() as u64 * PACKET);
        self.resume.on_loss(&Loss { now: self.now, sent, bytes, persistent });
    }

    /// Holds what the RFC says of the step from `before` with `window`.
    fn check(&mut self, before: Phase, window: u64, happening: Happening, saved: Saved) {
        let (phase, now) = (self.resume.phase(), self.resume.window().0);
        let half = saved.capacity.0 / 2;
        assert!(now >= MINIMUM, "RFC 9002 §7.2: {now}");
        if phase == Phase::Unvalidated && before != Phase::Unvalidated {
            self.jumps += 1;
            self.pipe = self.flight();
            assert!(self.acked, "§3.2: nothing of the first flight was acknowledged");
        }
        assert!(self.jumps <= 1, "it jumps once");
        if phase == Phase::Unvalidated {
            assert_eq!(now, half, "§3.3: half of what was saved");
        }
        let lost = matches!(happening, Happening::Lose(_) | Happening::Outage);
        let unsure = matches!(before, Phase::Unvalidated | Phase::Validating);
        if unsure && phase == Phase::Retreat {
            assert!(now <= (self.pipe / 2).max(MINIMUM), "§3.5: {now} of {}", self.pipe);
        }
        if before == Phase::Retreat && phase == Phase::Retreat {
            assert_eq!(now, window, "§3.5: not increased");
        }
        if !lost && before == Phase::Reconnaissance && phase == Phase::Reconnaissance {
            assert!(now <= INITIAL * 100, "no jump without its phase: {now}");
        }
        let allowed = match before {
            Phase::Normal => phase == Phase::Normal,
            Phase::Reconnaissance | Phase::Unvalidated | Phase::Validating => true,
            Phase::Retreat => matches!(phase, Phase::Retreat | Phase::Normal),
        };
        assert!(allowed, "from {before:?} to {phase:?}");
        assert!(!self.resume.has_retreated() || self.jumps > 0, "retreats from jumps alone");
    }
}

proptest! {
    #[test]
    fn whatever_happens_the_rules_hold(
        choice in choices(),
        capacity in 10_000u64..2_000_000,
        happenings in happenings(),
    ) {
        let saved = Saved { capacity: Bytes(capacity), rtt: RTT, full: Some(Bytes(capacity)) };
        let mut connection = Connection::new(choice, saved);
        for happening in happenings {
            // One packet at a time, so that no phase passes unseen.
            let single = match happening {
                Happening::Send(packets) => vec![Happening::Send(1); packets.into()],
                Happening::Ack(packets) => vec![Happening::Ack(1); packets.into()],
                other => vec![other],
            };
            for happening in single {
                let (before, window) = (connection.resume.phase(), connection.resume.window().0);
                connection.happen(happening);
                connection.check(before, window, happening, saved);
            }
        }
    }
}

/// A connection that fills its window, is answered, and fills it again, for so many round trips.
fn busy(connection: &mut Connection, rounds: u32) -> Vec<Phase> {
    let mut phases = vec![connection.resume.phase()];
    for _ in 0..rounds {
        connection.happen(Happening::Send(255));
        connection.happen(Happening::Send(255));
        for _ in 0..connection.in_flight.len() {
            connection.happen(Happening::Ack(1));
            phases.push(connection.resume.phase());
        }
    }
    phases.dedup();
    phases
}

fn geo() -> Saved {
    Saved { capacity: Bytes(600_000), rtt: RTT, full: Some(Bytes(600_000)) }
}

#[test]
fn a_path_that_has_kept_its_capacity_is_full_again_after_three_round_trips() {
    let mut connection = Connection::new(Choice::Cubic, geo());
    let phases = busy(&mut connection, 3);
    assert_eq!(phases.last(), Some(&Phase::Normal), "{phases:?}");
    assert_eq!(connection.resume.window().0 / 100_000, 6);
    assert!(!connection.resume.has_retreated());
}

#[test]
fn a_loss_in_the_jump_takes_it_back() {
    let mut connection = Connection::new(Choice::Cubic, geo());
    busy(&mut connection, 1);
    connection.happen(Happening::Send(255));
    assert!(matches!(connection.resume.phase(), Phase::Unvalidated | Phase::Validating));
    connection.happen(Happening::Lose(1));
    assert_eq!(connection.resume.phase(), Phase::Retreat);
    assert!(connection.resume.has_retreated());
    assert!(connection.resume.window().0 <= 20_000, "{:?}", connection.resume.window());
    assert_eq!(connection.resume.observed(), None, "what was tried is not kept");
}

#[test]
fn another_path_is_not_jumped_on() {
    for other in [RTT * 3, RTT / 11] {
        let mut connection = Connection::new(Choice::Cubic, Saved { rtt: other, ..geo() });
        let phases = busy(&mut connection, 2);
        assert_eq!(phases, [Phase::Reconnaissance, Phase::Normal], "saved over {other:?}");
        assert!(connection.resume.window().0 < 60_000);
    }
}

#[test]
fn what_is_observed_is_what_a_round_trip_delivers() {
    let mut connection = Connection::new(Choice::Cubic, geo());
    busy(&mut connection, 6);
    let observed = connection.resume.observed().expect("enough has crossed");
    assert_eq!(observed.rtt, RTT);
    assert!(observed.capacity.0 > 300_000, "{observed:?}");
}

#[test]
fn what_was_measured_counts_less_as_it_ages_and_is_forgotten_after_a_day() {
    let hour = Duration::from_secs(3600);
    let worth = |age| geo().aged(age).map(|saved| saved.capacity.0);
    assert_eq!(worth(Duration::ZERO), Some(600_000));
    assert_eq!(worth(4 * hour), Some(300_000));
    assert_eq!(worth(24 * hour), Some(9_375));
    assert_eq!(worth(25 * hour), None);
}
