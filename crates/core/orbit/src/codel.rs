//! Controlled delay (RFC 8289): drops, or marks, at the head of a queue in which packets have stood too long for too long. The
//! law alone; the packets are the caller's.

use farhop_units::Bytes;
use std::time::Duration;

use crate::CoDel;

/// The queue that the law governs.
pub(crate) trait Queue {
    type Item;

    /// The packet at the head, when it came, and the bytes left behind it.
    fn pop(&mut self) -> Option<(Self::Item, Duration, Bytes)>;

    /// Drops a packet; gives it back where it could be marked instead.
    fn drop_or_mark(&mut self, item: Self::Item) -> Option<Self::Item>;
}

/// The state of RFC 8289 §5.3, by the names of its pseudo-code.
#[derive(Debug, Default)]
pub(crate) struct Law {
    /// When the delay will have been above target for an interval; `None` while it is below.
    first_above: Option<Duration>,
    drop_next: Duration,
    count: u32,
    last_count: u32,
    dropping: bool,
}

/// RFC 8289 §5.6: with no more than one packet behind there is nothing to control.
const MAXPACKET: Bytes = Bytes(1500);

impl Law {
    /// The packet to send at `now`, after those that have to go before it (§5.5, `dequeue`).
    pub(crate) fn dequeue<Q: Queue>(
        &mut self,
        codel: &CoDel,
        now: Duration,
        queue: &mut Q,
    ) -> Option<Q::Item> {
        let (mut item, mut above) = self.pop(codel, now, queue)?;
        if self.dropping {
            self.dropping = above;
            while self.dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                if let Some(marked) = queue.drop_or_mark(item) {
                    self.drop_next = control_law(codel, self.drop_next, self.count);
                    return Some(marked);
                }
                (item, above) = self.pop(codel, now, queue)?;
                self.dropping = above;
                if above {
                    self.drop_next = control_law(codel, self.drop_next, self.count);
                }
            }
        } else if above {
            self.dropping = true;
            // If the dropping state was left only a while ago, the rate that controlled the queue then is a good start.
            let delta = self.count.saturating_sub(self.last_count);
            let recent = now.saturating_sub(self.drop_next) < 16 * codel.interval;
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.drop_next = control_law(codel, now, self.count);
            self.last_count = self.count;
            if let Some(marked) = queue.drop_or_mark(item) {
                return Some(marked);
            }
            (item, _) = self.pop(codel, now, queue)?;
        }
        Some(item)
    }

    /// §5.6, `dodequeue`: the next packet, and whether the delay has been above target for an interval.
    fn pop<Q: Queue>(&mut self, codel: &CoDel, now: Duration, queue: &mut Q) -> Option<(Q::Item, bool)> {
        let Some((item, came, left)) = queue.pop() else {
            self.first_above = None;
            self.dropping = false;
            return None;
        };
        if now.saturating_sub(came) < codel.target || left <= MAXPACKET {
            self.first_above = None;
            return Some((item, false));
        }
        let first_above = *self.first_above.get_or_insert(now + codel.interval);
        Some((item, now >= first_above))
    }
}

/// RFC 8289 §5.4.
fn control_law(codel: &CoDel, from: Duration, count: u32) -> Duration {
    from + codel.interval.div_f64(f64::from(count.max(1)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    const MS: Duration = Duration::from_millis(1);
    const CODEL: CoDel =
        CoDel { target: Duration::from_millis(5), interval: Duration::from_millis(100), ecn: false };

    /// Packets of 1,000 bytes, by when they came.
    #[derive(Default)]
    struct Line {
        came: VecDeque<Duration>,
        dropped: Vec<Duration>,
        marks: bool,
    }

    impl Queue for Line {
        type Item = Duration;
        fn pop(&mut self) -> Option<(Duration, Duration, Bytes)> {
            let came = self.came.pop_front()?;
            Some((came, came, Bytes(1000 * self.came.len() as u64)))
        }
        fn drop_or_mark(&mut self, came: Duration) -> Option<Duration> {
            self.dropped.push(came);
            self.marks.then_some(came)
        }
    }

    /// Sends a packet every millisecond from a queue whose packets stand for 50 ms; gives when something was dropped.
    fn drops(law: &mut Law, millis: std::ops::Range<u32>, marks: bool) -> Vec<u32> {
        let mut dropped = Vec::new();
        for now in millis {
            let came = (now * MS).saturating_sub(50 * MS);
            let mut line = Line { came: [came; 60].into(), marks, ..Line::default() };
            assert!(law.dequeue(&CODEL, now * MS, &mut line).is_some());
            dropped.extend(line.dropped.iter().map(|_| now));
        }
        dropped
    }

    #[test]
    fn a_standing_queue_loses_packets_ever_faster_by_the_square_root() {
        // Above target since 100 ms: first at 200, then + 100, + 100/√2, + 100/√3, … each at the next whole millisecond.
        let expected = [200, 300, 371, 429, 479, 524, 564, 602];
        for marks in [false, true] {
            assert_eq!(drops(&mut Law::default(), 100..610, marks), expected, "marks: {marks}");
        }
    }

    #[test]
    fn delay_below_target_ends_the_dropping_and_it_goes_on_from_there_soon_after() {
        let mut law = Law::default();
        assert_eq!(drops(&mut law, 100..500, false).len(), 5);
        let mut short = Line { came: [500 * MS; 60].into(), ..Line::default() };
        assert!(law.dequeue(&CODEL, 501 * MS, &mut short).is_some());
        assert!(!law.dropping);
        // An interval later it drops again, at the rate of count 5 − 1 = 4: after 100/√4.
        assert_eq!(drops(&mut law, 510..670, false), [610, 660]);
    }

    #[test]
    fn the_last_packets_are_never_dropped() {
        let mut law = Law::default();
        for now in 0..1000u32 {
            let mut line = Line { came: [Duration::ZERO; 2].into(), ..Line::default() };
            assert!(law.dequeue(&CODEL, now * MS, &mut line).is_some());
            assert_eq!(line.dropped, []);
        }
    }
}
