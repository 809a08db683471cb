//! When who expects something says so: at once when there is more, again while it lasts, once more when it is over; and less and less
//! often to someone who does not answer.
//!
//! ```text
//!   quiet ──expect──► speaking ──all sent──► last word ──► quiet
//!                        │  every REPEAT, or every PAUSE when there is more
//!                        ├──UNHEARD without an answer──► every SELDOM
//!                        └──refused──► silent for SELDOM
//! ```

use std::time::Duration;

use crate::{Answer, Expect};

/// Between two datagrams though there is more: a superframe of the shortest kind has one or two.
const PAUSE: Duration = Duration::from_millis(15);
/// What stands is said again so often: it is a datagram, and may get lost.
const REPEAT: Duration = Duration::from_millis(200);
/// To who does not answer, or has refused.
const SELDOM: Duration = Duration::from_secs(30);
/// So many in a row without an answer are none.
const UNHEARD: u32 = 5;

/// What an end expects to send, and what it has said of it.
#[derive(Debug)]
pub struct Asker {
    terminal: Option<u16>,
    most: u64,
    /// Bytes that are to be sent.
    expected: u64,
    /// What was said last, and when.
    said: Option<(u64, Duration)>,
    number: u32,
    unanswered: u32,
    /// Refused: nothing is said before.
    silent_until: Duration,
}

impl Asker {
    /// One that never asks for more than `most` bytes at a time: what is asked for and cannot be sent so soon is taken from others.
    pub fn new(most: u64, terminal: Option<u16>) -> Self {
        Asker {
            terminal,
            most,
            expected: 0,
            said: None,
            number: 0,
            unanswered: 0,
            silent_until: Duration::ZERO,
        }
    }

    /// So many bytes more are to be sent.
    pub fn expect(&mut self, bytes: u64) {
        self.expected = self.expected.saturating_add(bytes);
    }

    /// So many bytes of what was expected were handed over, or will not come.
    pub fn sent(&mut self, bytes: u64) {
        self.expected = self.expected.saturating_sub(bytes);
    }

    /// Bytes that are to be sent.
    pub fn expected(&self) -> u64 {
        self.expected
    }

    /// The next datagram by `now`, if there is one.
    pub fn poll_transmit(&mut self, now: Duration) -> Option<Expect> {
        if self.next_wakeup().is_none_or(|at| at > now) {
            return None;
        }
        let bytes = self.wanted();
        self.said = Some((bytes, now));
        self.number = self.number.wrapping_add(1);
        self.unanswered = self.unanswered.saturating_add(1);
        Some(Expect { number: self.number, bytes, terminal: self.terminal })
    }

    /// When [`Asker::poll_transmit`] has something next.
    pub fn next_wakeup(&self) -> Option<Duration> {
        let wanted = self.wanted();
        let pause = match self.said {
            None | Some((0, _)) if wanted == 0 => return None,
            None => return Some(self.silent_until),
            _ if self.unanswered >= UNHEARD => SELDOM,
            Some((said, _)) if wanted > said || wanted == 0 => PAUSE,
            Some(_) => REPEAT,
        };
        self.said.map(|(_, at)| (at + pause).max(self.silent_until))
    }

    /// Takes an answer in; one to something else says nothing.
    pub fn handle_answer(&mut self, now: Duration, answer: &Answer) {
        // Late ones are answers too: somebody is there.
        if self.number.wrapping_sub(answer.number()) >= UNHEARD.max(self.unanswered) {
            return;
        }
        self.unanswered = 0;
        if matches!(answer, Answer::Refused { .. }) {
            self.silent_until = now + SELDOM;
        }
    }

    fn wanted(&self) -> u64 {
        self.expected.min(self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// The datagrams of so long, as (ms, bytes), where `each` may change things every millisecond.
    fn said(asker: &mut Asker, lasts: u32, mut each: impl FnMut(u32, &mut Asker)) -> Vec<(u32, u64)> {
        let mut said = Vec::new();
        for now in 0..lasts {
            each(now, asker);
            while let Some(expect) = asker.poll_transmit(now * MS) {
                said.push((now, expect.bytes));
            }
        }
        said
    }

    fn noted(asker: &mut Asker, now: u32) {
        let number = asker.number;
        asker.handle_answer(now * MS, &Answer::Noted { number });
    }

    #[test]
    fn what_is_expected_is_said_at_once_repeated_and_taken_back() {
        let mut asker = Asker::new(64_000, None);
        let course = said(&mut asker, 1000, |now, asker| {
            noted(asker, now);
            match now {
                100 => asker.expect(10_000),
                105 => asker.expect(5_000),
                400 => asker.sent(9_000),
                600 => asker.sent(6_000),
                _ => {}
            }
        });
        assert_eq!(course, [(100, 10_000), (115, 15_000), (315, 15_000), (515, 6_000), (600, 0)]);
        assert_eq!((asker.expected(), asker.next_wakeup()), (0, None));
    }

    #[test]
    fn never_more_than_the_most_is_asked_for() {
        let mut asker = Asker::new(1_000, Some(2));
        asker.expect(1 << 40);
        let first = asker.poll_transmit(MS).unwrap();
        assert_eq!((first.bytes, first.terminal), (1_000, Some(2)));
        asker.sent(1 << 39);
        assert_eq!(asker.poll_transmit(20 * MS), None, "as much is still wanted");
    }

    #[test]
    fn who_does_not_answer_is_asked_seldom_and_at_once_again_when_it_does() {
        let mut asker = Asker::new(64_000, None);
        asker.expect(1_000);
        let silent = said(&mut asker, 40_000, |_, _| {});
        let times: Vec<u32> = silent.iter().map(|(at, _)| *at).collect();
        assert_eq!(times, [0, 200, 400, 600, 800, 30_800]);
        noted(&mut asker, 40_000);
        assert_eq!(asker.next_wakeup(), Some(31_000 * MS));
    }

    #[test]
    fn who_refuses_is_left_alone_for_a_while() {
        let mut asker = Asker::new(64_000, None);
        asker.expect(1_000);
        let number = asker.poll_transmit(Duration::ZERO).unwrap().number;
        asker.handle_answer(10 * MS, &Answer::Refused { number, reason: "not entitled".into() });
        let course = said(&mut asker, 40_000, |now, asker| {
            if now == 100 {
                asker.expect(1_000);
            }
            noted(asker, now);
        });
        assert_eq!(course.first(), Some(&(30_010, 2_000)));
    }

    #[test]
    fn answers_to_what_was_never_asked_say_nothing() {
        let mut asker = Asker::new(64_000, None);
        asker.expect(1_000);
        let number = asker.poll_transmit(Duration::ZERO).unwrap().number;
        let foreign = Answer::Refused { number: number.wrapping_add(1), reason: "x".into() };
        asker.handle_answer(Duration::ZERO, &foreign);
        assert_eq!(asker.next_wakeup(), Some(200 * MS));
    }
}
