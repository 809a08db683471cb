//! The component manager in virtual time: loads come and go, and who is moved is told.

use super::*;
use proptest::prelude::*;

const RATE: BitRate = BitRate(8_000_000);

fn s(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn rule() -> Rule {
    Rule {
        when: Signal::Link,
        above: 0.85,
        below: 0.5,
        hold: s(10.0),
        users: Users::All,
        service: Service::All,
        policy: Policy::Httpep,
    }
}

/// A manager, its clock, and a link called "ship".
struct World {
    manager: Manager,
    ship: Arc<str>,
    now: f64,
    told: Vec<Change>,
}

impl World {
    fn with(rules: &[Rule]) -> World {
        let mut manager = Manager::default();
        manager.set(Policy::Gentle, rules.to_vec());
        World { manager, ship: "ship".into(), now: 0.0, told: Vec::new() }
    }

    /// For so many seconds each user sends this share of the link's rate, in pieces of a tenth of a second.
    fn pass(&mut self, seconds: f64, shares: &[(u64, f64)], cpu: f64) {
        for _ in 0..(seconds * 10.0).round() as u32 {
            self.now += 0.1;
            for (user, share) in shares {
                let bytes = Bytes((RATE.0 as f64 / 80.0 * share) as u64);
                self.manager.handle_sent(&self.ship, *user, bytes, Some(RATE), s(self.now));
            }
            while self.manager.poll_timeout().is_some_and(|due| due <= s(self.now)) {
                self.manager.handle_timeout(cpu, s(self.now));
            }
            self.told.extend(std::iter::from_fn(|| self.manager.poll_change()));
        }
    }

    fn policy(&self, user: u64) -> Policy {
        self.manager.policy("ship", user, false)
    }
}

#[test]
fn a_link_that_stays_full_moves_its_users_and_moves_them_back_when_it_is_not() {
    let mut world = World::with(&[rule()]);
    world.pass(15.0, &[(1, 1.0)], 0.0);
    assert_eq!(world.policy(1), Policy::Gentle, "not for ten seconds yet");
    world.pass(10.0, &[(1, 1.0)], 0.0);
    assert_eq!(world.policy(1), Policy::Httpep);
    assert_eq!(world.manager.policy("other", 1, false), Policy::Gentle, "another link is another");
    world.pass(60.0, &[(1, 0.7)], 0.0);
    assert_eq!(world.policy(1), Policy::Httpep, "between both bounds all stays");
    world.pass(25.0, &[(1, 0.2)], 0.0);
    assert_eq!(world.policy(1), Policy::Gentle);
    let [up, back] = &world.told[..] else { panic!("{:?}", world.told) };
    assert_eq!((up.user, up.before, up.policy), (None, Policy::Gentle, Policy::Httpep));
    assert!(up.why.starts_with("link at ") && up.why.ends_with("for 10 s at 85 % or more"), "{}", up.why);
    assert_eq!((back.before, back.policy), (Policy::Httpep, Policy::Gentle));
    assert!(back.why.ends_with("for 10 s under 50 %"), "{}", back.why);
}

#[test]
fn the_burst_of_a_page_moves_nobody() {
    let mut world = World::with(&[rule()]);
    for _ in 0..20 {
        world.pass(3.0, &[(1, 1.0)], 0.0);
        world.pass(6.0, &[], 0.0);
    }
    assert_eq!(world.told, []);
}

#[test]
fn a_link_that_nothing_limits_is_never_full() {
    let mut world = World::with(&[rule()]);
    for step in 0..1000 {
        world.manager.handle_sent(&world.ship, 1, Bytes(1 << 20), None, s(f64::from(step) * 0.1));
        world.manager.handle_timeout(0.0, s(f64::from(step) * 0.1));
    }
    assert_eq!(world.manager.poll_change(), None);
}

#[test]
fn only_who_takes_more_than_an_equal_share_is_moved_where_the_rule_says_so() {
    let mut world = World::with(&[Rule { users: Users::Heavy, ..rule() }]);
    world.pass(40.0, &[(1, 1.0)], 0.0);
    assert_eq!(world.told, [], "nobody else is there");
    world.pass(20.0, &[(1, 0.8), (2, 0.1), (3, 0.1)], 0.0);
    assert_eq!([1, 2, 3].map(|user| world.policy(user)), [Policy::Httpep, Policy::Gentle, Policy::Gentle]);
    // The load stays, and is another's.
    world.pass(60.0, &[(1, 0.1), (2, 0.8), (3, 0.1)], 0.0);
    assert_eq!([1, 2, 3].map(|user| world.policy(user)), [Policy::Gentle, Policy::Httpep, Policy::Gentle]);
    world.pass(60.0, &[], 0.0);
    assert_eq!(world.policy(2), Policy::Gentle);
    let told: Vec<_> = world.told.iter().map(|change| (change.user, change.policy)).collect();
    let (strong, weak) = (Policy::Httpep, Policy::Gentle);
    assert_eq!(
        told.iter().filter(|(user, _)| *user == Some(1)).collect::<Vec<_>>(),
        [&(Some(1), strong), &(Some(1), weak)]
    );
    assert_eq!(
        told.iter().filter(|(user, _)| *user == Some(2)).collect::<Vec<_>>(),
        [&(Some(2), strong), &(Some(2), weak)]
    );
    assert!(told.iter().all(|(user, _)| *user != Some(3) && user.is_some()));
}

#[test]
fn what_nobody_asked_for_can_be_moved_alone_and_the_strictest_rule_counts() {
    let unasked = Rule { service: Service::Unasked, policy: Policy::Strong, ..rule() };
    let mut world = World::with(&[rule(), unasked]);
    world.pass(30.0, &[(1, 1.0)], 0.0);
    let policies = [false, true].map(|unasked| world.manager.policy("ship", 1, unasked));
    assert_eq!(policies, [Policy::Httpep, Policy::Strong]);
}

#[test]
fn a_busy_processor_counts_where_the_rule_looks_at_it() {
    let mut world = World::with(&[Rule { when: Signal::Cpu, ..rule() }]);
    world.pass(30.0, &[(1, 1.0)], 0.1);
    assert_eq!(world.told, []);
    world.pass(15.0, &[(1, 0.1)], 0.95);
    assert_eq!(world.policy(1), Policy::Httpep);
    assert!(world.told[0].why.starts_with("cpu at 95 %"), "{}", world.told[0].why);
    world.pass(15.0, &[(1, 0.1)], 0.1);
    assert_eq!(world.policy(1), Policy::Gentle);
}

#[test]
fn no_rule_makes_less_of_the_policy_that_the_settings_say() {
    let mut world = World::with(&[]);
    world.manager.set(Policy::Strong, vec![rule()]);
    world.pass(30.0, &[(1, 1.0)], 0.0);
    assert_eq!((world.policy(1), world.told.len()), (Policy::Strong, 0));
}

#[test]
fn new_rules_move_everybody_back_and_the_same_rules_nobody() {
    let mut world = World::with(&[rule()]);
    world.pass(30.0, &[(1, 1.0)], 0.0);
    world.told.clear();
    world.manager.set(Policy::Gentle, vec![rule()]);
    assert_eq!((world.policy(1), world.manager.poll_change()), (Policy::Httpep, None));
    world.manager.set(Policy::Gentle, Vec::new());
    assert_eq!(world.policy(1), Policy::Gentle);
    assert_eq!(world.manager.poll_change().map(|change| change.policy), Some(Policy::Gentle));
    assert!(world.manager.is_idle());
}

#[test]
fn when_nothing_is_sent_any_more_nothing_is_remembered() {
    let mut world = World::with(&[rule()]);
    world.pass(30.0, &[(1, 1.0)], 0.0);
    world.pass(200.0, &[], 0.0);
    assert_eq!(world.manager.poll_timeout(), None);
    assert!(world.manager.moved(s(world.now)).is_empty());
}

proptest! {
    /// Whatever the load does, a rule turns no more often than its hold allows, and up and back in turn.
    #[test]
    fn rules_turn_in_turn_and_no_sooner_than_they_hold(loads in prop::collection::vec((0.0f64..1.2, 1u32..60), 1..60)) {
        let mut world = World::with(&[rule()]);
        let mut turns = Vec::new();
        for (share, tenths) in loads {
            world.pass(f64::from(tenths) / 10.0, &[(1, share)], 0.0);
            for change in world.told.drain(..) {
                turns.push((world.now, change.policy));
            }
        }
        for pair in turns.windows(2) {
            prop_assert!(pair[0].1 != pair[1].1);
        }
        for (number, (_, policy)) in turns.iter().enumerate() {
            prop_assert_eq!(*policy, if number % 2 == 0 { Policy::Httpep } else { Policy::Gentle });
        }
    }
}
