//! Whether a queue stands on the path, there or on the reports' way back, which are not told apart. What is lost then is taken to have
//! found no room in it: it says nothing of the path, and repairs of it would add to what overflows, and hide from the controller what it has to hear (RFC 9265 §2).

use std::collections::VecDeque;
use std::time::Duration;

/// Packets whose time is remembered are so many to the round trip, at most.
const FINENESS: u32 = 64;
const REMEMBERED: usize = 512;
/// A queue stands that lasts longer than 3/8 of a round trip: controllers here let a quarter stand or probe by one, and a report
/// may be a quarter late ...
const STANDING: (u32, u32) = (3, 8);
/// ... or as long as a processor or a radio may keep it waiting.
const SLACK: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(crate) struct Queue {
    rtt: Duration,
    /// The shortest time in which a packet came and was reported, or what QUIC says of the empty path.
    least: Duration,
    /// Numbers and times of packets of which no report has told yet.
    sent: VecDeque<(u32, Duration)>,
}

impl Queue {
    pub(crate) fn new(rtt: Duration) -> Self {
        Queue { rtt, least: rtt, sent: VecDeque::new() }
    }

    /// The round trip of the empty path, as QUIC measures it, which hears of every packet: reports may come only while a queue stands.
    pub(crate) fn fit(&mut self, rtt: Duration) {
        self.least = rtt;
    }

    /// A batch that begins with `number` goes out.
    pub(crate) fn sent(&mut self, now: Duration, number: u32) {
        if self.sent.back().is_none_or(|(_, at)| now >= *at + self.rtt / FINENESS) {
            self.sent.push_back((number, now));
            if self.sent.len() > REMEMBERED {
                self.sent.pop_front();
            }
        }
    }

    /// A report is here that left when `newest` was the last to have arrived. The next packet had not come by then: the way to the
    /// other end and back is longer than that is ago.
    pub(crate) fn stands(&mut self, now: Duration, newest: u32) -> bool {
        let has_come = |number: u32| newest.wrapping_sub(number) < 1 << 31;
        while let Some((_, at)) = self.sent.pop_front_if(|(number, _)| has_come(*number)) {
            self.least = self.least.min(now.saturating_sub(at));
        }
        let patience = self.least + self.least * STANDING.0 / STANDING.1 + SLACK;
        self.sent.front().is_some_and(|(_, at)| now.saturating_sub(*at) > patience)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(600);

    /// What is said of a packet each 10 ms for `seconds` after `from`, of which each takes `trip` to be told of.
    fn told(queue: &mut Queue, from: u64, seconds: u64, trip: Duration) -> Vec<bool> {
        let at = |number: u64| Duration::from_millis(10 * number);
        let behind = trip.as_millis() as u32 / 10;
        (from * 100..(from + seconds) * 100)
            .map(|number| {
                queue.sent(at(number), number as u32);
                queue.stands(at(number), (number as u32).wrapping_sub(behind))
            })
            .collect()
    }

    #[test]
    fn a_queue_stands_when_packets_take_half_a_round_trip_longer_and_not_when_a_quarter() {
        let mut queue = Queue::new(RTT);
        assert!(told(&mut queue, 0, 5, RTT).iter().all(|stands| !stands));
        assert!(told(&mut queue, 5, 5, RTT * 5 / 4).iter().all(|stands| !stands));
        assert!(told(&mut queue, 10, 5, RTT * 3 / 2).iter().skip(100).all(|stands| *stands));
        assert!(told(&mut queue, 15, 5, RTT).iter().skip(100).all(|stands| !stands));
    }

    #[test]
    fn a_path_that_has_become_longer_is_no_queue_once_quic_says_so() {
        let mut queue = Queue::new(RTT);
        told(&mut queue, 0, 10, RTT);
        assert!(told(&mut queue, 10, 5, 2 * RTT)[200]);
        queue.fit(2 * RTT);
        assert!(told(&mut queue, 15, 5, 2 * RTT).iter().all(|stands| !stands));
    }

    #[test]
    fn with_nothing_under_way_nothing_is_known() {
        let mut queue = Queue::new(RTT);
        queue.sent(Duration::ZERO, u32::MAX);
        assert!(!queue.stands(Duration::from_secs(9), 3), "it has come");
        assert!(!queue.stands(Duration::from_secs(99), 3));
    }
}
