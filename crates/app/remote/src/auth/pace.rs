//! How fast an address may guess: each failure makes it wait longer before it is listened to again, and its guesses take
//! turns, so that many connections guess no faster than one. Other addresses never wait for it. No I/O.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::known::Digest;

/// The wait after the first failure; it doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// The longest.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// Failures are forgotten after so long without another.
const FORGOTTEN: Duration = Duration::from_secs(900);
/// Most addresses with failures that are remembered.
const MOST: usize = 4096;

/// Held while the credentials of one address are checked.
pub(super) type Turn = Arc<tokio::sync::Mutex<()>>;

/// What addresses have tried.
#[derive(Default)]
pub(super) struct Pace(HashMap<IpAddr, Tries>);

#[derive(Default)]
struct Tries {
    turn: Turn,
    failures: u32,
    last_failure: Duration,
    last_wrong: Option<Digest>,
}

impl Pace {
    /// What has to be held while credentials from `address` are checked.
    pub(super) fn turn(&mut self, address: IpAddr) -> Turn {
        if self.0.len() >= MOST && !self.0.contains_key(&address) {
            // Those who asked and went away before they were answered.
            self.0.retain(|_, tries| tries.failures > 0 || tries.is_in_use());
        }
        Arc::clone(&self.0.entry(address).or_default().turn)
    }

    /// When the next check for `address` may begin; times are since the process began.
    pub(super) fn not_before(&self, address: IpAddr) -> Duration {
        self.0.get(&address).map_or(Duration::ZERO, |tries| tries.last_failure + tries.wait())
    }

    /// Whether this is what `address` tried last, and was wrong.
    pub(super) fn is_refused(&self, address: IpAddr, digest: &Digest) -> bool {
        self.0.get(&address).is_some_and(|tries| tries.last_wrong.as_ref() == Some(digest))
    }

    /// Notes a failure; gives how many that are.
    pub(super) fn failed(&mut self, address: IpAddr, wrong: Option<Digest>, now: Duration) -> u32 {
        self.0.retain(|_, tries| tries.is_in_use() || now < tries.last_failure + FORGOTTEN);
        if self.0.len() > MOST {
            let idle = self.0.iter().filter(|(known, tries)| **known != address && !tries.is_in_use());
            if let Some(oldest) = idle.min_by_key(|(_, tries)| tries.last_failure).map(|(known, _)| *known) {
                self.0.remove(&oldest);
            }
        }
        let tries = self.0.entry(address).or_default();
        if now >= tries.last_failure + FORGOTTEN {
            tries.failures = 0;
        }
        tries.failures = tries.failures.saturating_add(1);
        tries.last_failure = now;
        tries.last_wrong = wrong;
        tries.failures
    }

    /// What was wrong may be right now: passwords were read anew.
    pub(super) fn forget_what_was_wrong(&mut self) {
        self.0.values_mut().for_each(|tries| tries.last_wrong = None);
    }

    /// Notes a success of the holder of `turn`: an address that others guess from as well keeps its failures, one
    /// without any is forgotten.
    pub(super) fn succeeded(&mut self, address: IpAddr, turn: &Turn) {
        // Nobody else waits for it: the map and the caller hold the only two.
        let is_free = Arc::strong_count(turn) <= 2;
        if is_free && self.0.get(&address).is_some_and(|tries| tries.failures == 0) {
            self.0.remove(&address);
        }
    }
}

impl Tries {
    fn wait(&self) -> Duration {
        match self.failures {
            0 => Duration::ZERO,
            failures => FIRST_WAIT.saturating_mul(1 << (failures - 1).min(16)).min(LONGEST_WAIT),
        }
    }

    fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.turn) > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u32) -> IpAddr {
        IpAddr::from(number.to_be_bytes())
    }

    #[test]
    fn each_failure_doubles_the_wait_of_its_address_alone() {
        let mut pace = Pace::default();
        let mut waits = Vec::new();
        let mut now = Duration::from_secs(100);
        for number in 1..=9 {
            assert_eq!(pace.failed(address(1), Some([0; 32]), now), number);
            let until = pace.not_before(address(1));
            waits.push((until - now).as_secs_f64());
            now = until;
        }
        assert_eq!(waits, [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]);
        assert_eq!(pace.not_before(address(2)), Duration::ZERO);
    }

    #[test]
    fn failures_are_forgotten_after_a_quiet_while() {
        let mut pace = Pace::default();
        pace.failed(address(1), Some([0; 32]), Duration::ZERO);
        pace.failed(address(1), Some([1; 32]), Duration::from_secs(1));
        assert_eq!(pace.failed(address(1), Some([2; 32]), Duration::from_secs(1) + FORGOTTEN), 1);
    }

    #[test]
    fn a_success_wipes_no_failures_out() {
        let mut pace = Pace::default();
        pace.failed(address(1), Some([0; 32]), Duration::ZERO);
        let turn = pace.turn(address(1));
        pace.succeeded(address(1), &turn);
        assert_eq!(pace.failed(address(1), Some([1; 32]), Duration::ZERO), 2);
        let turn = pace.turn(address(2));
        pace.succeeded(address(2), &turn);
        assert_eq!(pace.0.len(), 1);
    }

    #[test]
    fn only_the_last_mistake_is_known_again() {
        let mut pace = Pace::default();
        pace.failed(address(1), Some([1; 32]), Duration::ZERO);
        assert!(pace.is_refused(address(1), &[1; 32]) && !pace.is_refused(address(2), &[1; 32]));
        pace.failed(address(1), Some([2; 32]), Duration::ZERO);
        assert!(!pace.is_refused(address(1), &[1; 32]));
    }

    #[test]
    fn who_goes_away_before_an_answer_is_not_remembered_for_long() {
        let mut pace = Pace::default();
        for number in 0..2 * MOST as u32 {
            drop(pace.turn(address(number)));
        }
        assert!(pace.0.len() <= MOST);
    }

    #[test]
    fn no_more_than_so_many_addresses_are_remembered() {
        let mut pace = Pace::default();
        for number in 0..=MOST as u32 + 5 {
            pace.failed(address(number), Some([0; 32]), Duration::from_millis(number.into()));
        }
        assert!(pace.0.len() <= MOST + 1);
        assert_eq!(pace.not_before(address(0)), Duration::ZERO, "the oldest goes first");
    }
}
