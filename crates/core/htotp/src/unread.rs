//! How far this end may run ahead of what the other has taken, so that clients that do not read fill nobody's memory and take
//! nobody's room. Pure; who waits is woken by whoever keeps this.
//!
//! The room is shared by what is left of it: a user may have as much under way as nobody uses, a stream as much as its user
//! may have beyond that. So one stream alone may have a third of all, and a hundred that are not read, of one user, half of it
//! together (dynamic thresholds: Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory packet switches",
//! 1998). Each may have a little in any case: who comes last goes on, too.

use std::collections::HashMap;

/// What any stream may have under way, in bytes, …
const LEAST: u64 = 64 * 1024;
/// … and where three quarters of the room are full.
const LEAST_WHERE_FULL: u64 = 16 * 1024;
const FULL: (u64, u64) = (3, 4);

/// What is sent and not taken on the streams of a carrier, in bytes.
#[derive(Debug, Default)]
pub struct Unread {
    all: u64,
    users: HashMap<u64, u64>,
}

impl Unread {
    /// A stream of `user` has so many under way, and had so many `before`.
    pub fn change(&mut self, user: u64, before: u64, now: u64) {
        self.all = self.all - before + now;
        let own = self.users.entry(user).or_default();
        *own = *own - before + now;
        if *own == 0 {
            self.users.remove(&user);
        }
    }

    /// Whether a stream of `user` that has so many under way may go on, where all streams together may have `most`.
    pub fn admits(&self, user: u64, under_way: u64, most: u64) -> bool {
        let of_user = most.saturating_sub(self.all);
        let of_stream = of_user.saturating_sub(self.users.get(&user).copied().unwrap_or(0));
        let least = if self.all < most * FULL.0 / FULL.1 { LEAST } else { LEAST_WHERE_FULL };
        under_way < of_stream.max(least)
    }

    /// The sum of all.
    pub fn all(&self) -> u64 {
        self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: u64 = 64 << 20;
    const PIECE: u64 = 16 * 1024;

    /// Streams by user that nobody reads, filled piece by piece in turn until none may go on; what each has then.
    fn filled(streams: &[u64]) -> (Unread, Vec<u64>) {
        let mut unread = Unread::default();
        let mut has = vec![0; streams.len()];
        let mut moved = true;
        while std::mem::take(&mut moved) {
            for (stream, user) in streams.iter().enumerate() {
                if unread.admits(*user, has[stream], MOST) {
                    unread.change(*user, has[stream], has[stream] + PIECE);
                    has[stream] += PIECE;
                    moved = true;
                }
            }
        }
        (unread, has)
    }

    #[test]
    fn one_stream_alone_may_have_a_third_of_all() {
        let (unread, has) = filled(&[1]);
        assert!(has[0].abs_diff(MOST / 3) <= PIECE, "{has:?}");
        assert_eq!(unread.all(), has[0]);
    }

    #[test]
    fn a_user_who_reads_nothing_leaves_half_to_others_and_something_to_the_next_stream() {
        let (unread, has) = filled(&[1; 100]);
        assert!(unread.all() <= MOST / 2 + 100 * PIECE, "{}", unread.all());
        assert!(
            has.iter().max().unwrap() - has.iter().min().unwrap() <= PIECE,
            "equals have as much: {has:?}"
        );
        let next = |user, under_way| unread.admits(user, under_way, MOST);
        assert!(next(1, LEAST - 1) && !next(1, 1 << 20));
        assert!(next(2, MOST / 3));
    }

    #[test]
    fn what_all_have_is_bounded_and_a_stream_that_has_nothing_goes_on() {
        let users: Vec<u64> = (0..2000).map(|stream| stream % 50).collect();
        let (unread, has) = filled(&users);
        assert!(unread.all() <= MOST, "{}", unread.all());
        assert!(has.iter().all(|has| *has >= LEAST_WHERE_FULL));
        assert!(unread.admits(1, 0, MOST) && unread.admits(99, 0, MOST));
    }

    #[test]
    fn streams_that_come_one_after_the_other_leave_some_to_the_last() {
        let mut unread = Unread::default();
        let last = (0..100).map(|_| {
            let mut has = 0;
            while unread.admits(1, has, MOST) {
                unread.change(1, has, has + PIECE);
                has += PIECE;
            }
            has
        });
        assert!(last.last().unwrap() >= LEAST);
        assert!(unread.all() <= MOST * 3 / 4 + PIECE, "{}", unread.all());
    }

    #[test]
    fn what_is_taken_makes_room_again() {
        let (mut unread, has) = filled(&[1; 10]);
        assert!(!unread.admits(1, has[0], MOST));
        unread.change(1, has[9], 0);
        assert!(unread.admits(1, has[0], MOST));
        has[..9].iter().for_each(|has| unread.change(1, *has, 0));
        assert_eq!((unread.all(), unread.users.len()), (0, 0));
    }
}
