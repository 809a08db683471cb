//! How many DATA frames without a byte are honest. They are legal (RFC 9113 §6.1), and servers send them while they have nothing
//! to say; who sends nothing else wants to keep this end busy (CVE-2019-9518). The h2 crate counts a hundred for the whole
//! life of a connection, whatever lies between them. Pure.

use std::time::{Duration, Instant};

/// So many at once. A frame of nothing costs less than one of data.
const MOST: u32 = 10_000;
/// Each is forgiven after so long.
const EACH: Duration = Duration::from_millis(1);

/// Those of a connection that are not forgiven yet.
#[derive(Debug, Default)]
pub struct Empties {
    count: u32,
    /// Up to when they were forgiven.
    until: Option<Instant>,
}

impl Empties {
    /// One has come: whether it can be left out. The others are for the h2 crate to count.
    pub fn handle(&mut self, now: Instant) -> bool {
        let until = *self.until.get_or_insert(now);
        let forgiven = now.saturating_duration_since(until).as_millis() / EACH.as_millis();
        let forgiven = u32::try_from(forgiven).unwrap_or(u32::MAX).min(self.count);
        self.count -= forgiven;
        // What is left of a step counts for the next one.
        self.until = Some(if self.count == 0 { now } else { until + EACH * forgiven });
        let is_honest = self.count < MOST;
        self.count += u32::from(is_honest);
        is_honest
    }

    /// Data have come, or the end of a stream: what lay before it was no flood.
    pub fn forgive(&mut self) {
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of `count` are left out that come as long after each other as `every`.
    fn left_out(empties: &mut Empties, start: Instant, count: u32, every: Duration) -> u32 {
        (0..count).map(|number| u32::from(empties.handle(start + every * number))).sum()
    }

    #[test]
    fn a_flood_is_bounded_and_forgiven_by_time_and_by_data() {
        let (mut empties, start) = (Empties::default(), Instant::now());
        assert_eq!(left_out(&mut empties, start, 50_000, Duration::ZERO), MOST);
        assert_eq!(left_out(&mut empties, start + Duration::from_secs(1), 50_000, Duration::ZERO), 1000);
        empties.forgive();
        assert_eq!(left_out(&mut empties, start + Duration::from_secs(1), 50_000, Duration::ZERO), MOST);
    }

    #[test]
    fn what_comes_now_and_then_comes_for_ever() {
        let (mut empties, start) = (Empties::default(), Instant::now());
        assert_eq!(left_out(&mut empties, start, 100_000, EACH), 100_000);
        let twice_as_often = left_out(&mut empties, start + EACH * 100_000, 100_000, EACH / 2);
        assert!((59_990..=60_010).contains(&twice_as_often), "{twice_as_often}");
    }
}
