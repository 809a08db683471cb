//! Origins whose handshakes are cut off: most are restarted, or stand behind a balancer that has nobody to ask just then; a few
//! always do so to what they do not like. Only what goes on for minutes says anything of the host.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::host::Host;
use crate::moment::Moment;

/// How often a host must be found so, answering never in between, for it to be its way.
const ENOUGH: u32 = 3;
/// How far apart: a page asks many times in a second, and its user again in a few more.
const APART: Duration = Duration::from_secs(2 * 60);
/// For how long it counts.
const REMEMBERED: Duration = Duration::from_secs(3600);
/// Most that is held.
const MOST: usize = 1024;

/// Where handshakes were cut off lately. It is in memory only.
#[derive(Debug, Clone, Default)]
pub struct Doubts {
    seen: BTreeMap<(Host, u16), (u32, Moment)>,
}

impl Doubts {
    /// Notes that a handshake with `host` was cut off; whether that is its way by now.
    pub fn cut_off(&mut self, host: &Host, port: u16, now: Moment) -> bool {
        self.seen.retain(|_, (_, at)| at.after(REMEMBERED) > now);
        let key = (host.clone(), port);
        let times = match self.seen.get(&key) {
            Some((_, at)) if at.after(APART) > now => return false,
            Some((times, _)) => times + 1,
            None => 1,
        };
        if times >= ENOUGH {
            self.seen.remove(&key);
            return true;
        }
        if self.seen.len() >= MOST && !self.seen.contains_key(&key) {
            let oldest = self.seen.iter().min_by_key(|(_, (_, at))| *at).map(|(key, _)| key.clone());
            if let Some(oldest) = oldest {
                self.seen.remove(&oldest);
            }
        }
        self.seen.insert(key, (times, now));
        false
    }

    /// Notes that `host` has answered: whatever it was, it is over.
    pub fn answered(&mut self, host: &Host, port: u16) {
        self.seen.remove(&(host.clone(), port));
    }

    /// Whether there is any doubt at all.
    pub fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Moment = Moment(1_800_000_000);

    fn host(text: &str) -> Host {
        text.parse().unwrap()
    }

    fn cut_off(doubts: &mut Doubts, minutes: u64) -> bool {
        doubts.cut_off(&host("a.example"), 443, START.after(Duration::from_secs(60 * minutes)))
    }

    #[test]
    fn an_outage_of_a_few_minutes_teaches_nothing_however_many_ask() {
        let mut doubts = Doubts::default();
        assert!((0..100).all(|_| !cut_off(&mut doubts, 0)));
        assert!((0..100).all(|_| !cut_off(&mut doubts, 1)));
        assert!((0..100).all(|_| !cut_off(&mut doubts, 3)));
        doubts.answered(&host("a.example"), 443);
        assert!(doubts.is_empty());
        assert!(!cut_off(&mut doubts, 6), "it has answered in between");
    }

    #[test]
    fn what_goes_on_for_minutes_is_the_hosts_way() {
        let mut doubts = Doubts::default();
        assert!(!cut_off(&mut doubts, 0));
        assert!(!doubts.cut_off(&host("b.example"), 443, START), "another host");
        assert!(!doubts.cut_off(&host("a.example"), 8443, START), "another port");
        assert_eq!([2, 3, 4].map(|at| cut_off(&mut doubts, at)), [false, false, true]);
        assert!(!cut_off(&mut doubts, 6), "it is learned, and counted anew");
        assert_eq!([70, 72, 74].map(|at| cut_off(&mut doubts, at)), [false, false, true], "and lapses");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut doubts = Doubts::default();
        for number in 0..2 * MOST {
            doubts.cut_off(&host(&format!("h{number}.example")), 443, START);
        }
        assert_eq!(doubts.seen.len(), MOST);
    }
}
