//! How two ends find out that both read this layer: each says hello with a token that only they can know, taken
//! from the keys of their connection. An end without the layer drops hellos unseen.

use std::time::Duration;

use crate::wire::{Hello, TOKEN};

/// Hellos that go unanswered before the other end is taken to have no such layer.
const ATTEMPTS: u32 = 6;
/// A hello in use is said again after so long: an end that has lost the layer, or began anew, is found again.
const AGAIN: Duration = Duration::from_secs(20);
/// No shorter pause between two attempts.
const SHORTEST: Duration = Duration::from_millis(100);

/// See the module.
#[derive(Debug)]
pub(crate) struct Greeting {
    own: [u8; TOKEN],
    theirs: [u8; TOKEN],
    /// Their hello is here.
    heard: bool,
    /// Ours is there.
    confirmed: bool,
    attempts: u32,
    due: Option<Duration>,
    said: Duration,
    pause: Duration,
}

impl Greeting {
    /// Begins at once; `rtt` is that of the path.
    pub(crate) fn new(now: Duration, own: [u8; TOKEN], theirs: [u8; TOKEN], rtt: Duration) -> Self {
        let pause = (rtt / 2).max(SHORTEST);
        Greeting {
            own,
            theirs,
            heard: false,
            confirmed: false,
            attempts: 0,
            due: Some(now),
            said: now,
            pause,
        }
    }

    /// Whether the other end reads this layer.
    pub(crate) fn heard(&self) -> bool {
        self.heard
    }

    /// Whether this token is the other end's.
    pub(crate) fn knows(&self, token: &[u8; TOKEN]) -> bool {
        self.theirs == *token
    }

    /// A hello has come; false if it is not the other end's.
    pub(crate) fn handle(&mut self, now: Duration, hello: &Hello) -> bool {
        if !self.knows(&hello.token) {
            return false;
        }
        let first = !std::mem::replace(&mut self.heard, true);
        if hello.heard && !self.confirmed {
            self.confirmed = true;
            self.due = None;
        }
        // Told once more at once: the other end waits for it.
        if first || !hello.heard {
            self.due = Some(now);
        }
        true
    }

    /// The layer carries something.
    pub(crate) fn used(&mut self, now: Duration) {
        if self.confirmed && now.saturating_sub(self.said) >= AGAIN {
            self.due = Some(now);
        }
    }

    /// The hello to be said now.
    pub(crate) fn poll(&mut self, now: Duration) -> Option<Hello> {
        self.due.take_if(|due| *due <= now)?;
        self.said = now;
        self.attempts += 1;
        if !self.confirmed && self.attempts < ATTEMPTS {
            self.due = Some(now + self.pause);
        }
        Some(Hello { heard: self.heard, token: self.own })
    }

    /// When [`Greeting::poll`] has something next.
    pub(crate) fn next_wakeup(&self) -> Option<Duration> {
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(600);

    fn pair() -> (Greeting, Greeting) {
        let (a, b) = ([1; TOKEN], [2; TOKEN]);
        (Greeting::new(Duration::ZERO, a, b, RTT), Greeting::new(Duration::ZERO, b, a, RTT))
    }

    /// Plays both ends over a path that loses what `loses` says; hellos said until none is due.
    fn play(loses: impl Fn(usize) -> bool) -> (Greeting, Greeting, usize) {
        let (mut one, mut two) = pair();
        let mut said = 0;
        let mut air: Vec<(Duration, bool, Hello)> = Vec::new();
        let mut now = Duration::ZERO;
        loop {
            for (to_two, from) in [(true, &mut one), (false, &mut two)] {
                while let Some(hello) = from.poll(now) {
                    said += 1;
                    if !loses(said) {
                        air.push((now + RTT / 2, to_two, hello));
                    }
                }
            }
            let next = air.iter().map(|flight| flight.0);
            let Some(at) = next.chain(one.next_wakeup()).chain(two.next_wakeup()).min() else { break };
            now = now.max(at);
            for (_, to_two, hello) in air.extract_if(.., |flight| flight.0 <= now) {
                assert!(if to_two { &mut two } else { &mut one }.handle(now, &hello));
            }
        }
        (one, two, said)
    }

    #[test]
    fn two_ends_meet_with_few_words_and_fall_silent() {
        let (one, two, said) = play(|_| false);
        assert!(one.heard() && two.heard() && one.confirmed && two.confirmed);
        assert!(said <= 8, "{said}");
    }

    #[test]
    fn lost_hellos_are_made_up_for() {
        for lost in 1..=4 {
            let (one, two, said) = play(|said| said <= lost);
            assert!(one.heard() && two.heard(), "{lost}");
            assert!(said <= 2 * ATTEMPTS as usize + 2, "{said}");
        }
    }

    #[test]
    fn an_end_without_the_layer_is_left_alone_soon() {
        let (one, _, said) = play(|_| true);
        assert!(!one.heard());
        assert_eq!(said, 2 * ATTEMPTS as usize);
    }

    #[test]
    fn strangers_are_not_heard() {
        let (mut one, _) = pair();
        assert!(!one.handle(RTT, &Hello { heard: true, token: [3; TOKEN] }));
        assert!(!one.heard());
    }

    #[test]
    fn what_is_used_for_long_is_greeted_again() {
        let (mut one, ..) = play(|_| false);
        one.used(AGAIN);
        assert_eq!(one.poll(AGAIN).map(|hello| hello.heard), None, "not so soon after the last");
        one.used(2 * AGAIN);
        assert_eq!(one.poll(2 * AGAIN).map(|hello| hello.heard), Some(true));
        one.used(2 * AGAIN);
        assert_eq!(one.poll(2 * AGAIN), None);
    }
}
