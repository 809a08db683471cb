//! What one end remembers of an exchange or a tunnel, so that it can go on with it on another carrier: what it has said and
//! the peer has not confirmed, and how far it has heard the peer. Pure; which streams carry it is the session's.
//!
//! A **position** counts what was said on a side of a stream after its first frame: one for each byte of a body or tunnel,
//! for each head, for `TUNNEL_OPENED`, and for the end or `FAILURE`. Trailers belong to the end. Promises do not count:
//! they end with their carrier. Nor do urgent marks, which belong to the byte after them.

use std::collections::VecDeque;

use bytes::Bytes;
use http::HeaderMap;

use crate::ResponseHead;
use crate::frame::{Coding, Failure};

/// Bytes shorter than this are joined: each piece costs as much again.
const SMALL: usize = 1024;
/// What a piece takes besides its bytes.
const PIECE: usize = 128;

/// Something that is said on a stream after its first frame.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Said {
    /// Ground: a 1xx head.
    Informed(ResponseHead),
    /// Ground: the response's head.
    Answered { head: ResponseHead, coding: Coding, resumed: Option<u64> },
    /// Ground: the tunnel stands.
    Opened,
    /// Part of a body or tunnel.
    Bytes(Bytes),
    /// The byte of a tunnel that is said next is urgent.
    Urgent,
    /// The side is complete, with trailers if there are any.
    Ended(Option<HeaderMap>),
    /// Ground: there is no (whole) answer.
    Failed(Failure),
}

impl Said {
    fn length(&self) -> u64 {
        match self {
            Said::Bytes(bytes) => bytes.len() as u64,
            Said::Urgent => 0,
            _ => 1,
        }
    }

    fn size(&self) -> usize {
        let fields =
            |fields: &HeaderMap| fields.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        let content: usize = match self {
            Said::Bytes(bytes) => bytes.len(),
            Said::Informed(head) | Said::Answered { head, .. } => fields(&head.fields),
            Said::Ended(trailers) => trailers.as_ref().map_or(0, fields),
            Said::Failed(failure) => failure.detail.len(),
            Said::Opened | Said::Urgent => 0,
        };
        PIECE + content
    }

    fn is_last(&self) -> bool {
        matches!(self, Said::Ended(_) | Said::Failed(_))
    }
}

/// How far the peer was heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hearing {
    /// Remote: no answer has begun.
    Head,
    /// The body, or the tunnel's bytes.
    Body,
    /// All of it is here.
    Done,
}

/// See the module.
#[derive(Debug)]
pub struct Journal {
    said: VecDeque<Said>,
    /// Position of the first of `said`.
    first: u64,
    /// Up to where the peer has it.
    confirmed: u64,
    /// Position of this end's side.
    end: u64,
    size: usize,
    /// This end has said its last.
    over: bool,
    /// The peer wants nothing of this side.
    unwanted: bool,
    heard: u64,
    hearing: Hearing,
}

impl Journal {
    /// Nothing said, and nothing heard but what `hearing` says.
    pub fn new(hearing: Hearing) -> Self {
        let said = VecDeque::new();
        Journal {
            said,
            first: 0,
            confirmed: 0,
            end: 0,
            size: 0,
            over: false,
            unwanted: false,
            heard: 0,
            hearing,
        }
    }

    /// Takes down what is being said.
    pub fn say(&mut self, said: Said) {
        if self.over || self.unwanted {
            return;
        }
        self.end += said.length();
        self.over = said.is_last();
        self.size += said.size();
        match (self.said.back_mut(), said) {
            (Some(Said::Bytes(last)), Said::Bytes(more)) if last.len() + more.len() <= SMALL => {
                *last = [&last[..], &more].concat().into();
                self.size -= PIECE;
            }
            (_, said) => self.said.push_back(said),
        }
    }

    /// The peer has heard this side up to `position`, which is not kept any longer.
    pub fn confirm(&mut self, position: u64) {
        let position = position.min(self.end);
        self.confirmed = self.confirmed.max(position);
        self.forget(position);
    }

    fn forget(&mut self, position: u64) {
        while let Some(oldest) = self.said.front_mut() {
            let heard = position.saturating_sub(self.first);
            if heard == 0 {
                return;
            }
            match oldest {
                Said::Bytes(bytes) if (bytes.len() as u64) > heard => {
                    // Smaller than the piece, so a length.
                    drop(bytes.split_to(heard as usize));
                    self.size -= heard as usize;
                    self.first = position;
                }
                oldest => {
                    self.first += oldest.length();
                    self.size -= oldest.size();
                    self.said.pop_front();
                }
            }
        }
    }

    /// Keeps at most so many bytes: what is oldest goes, and with it the chance to go on from there.
    pub fn bound(&mut self, most: usize) {
        while self.size > most
            && let Some(oldest) = self.said.front()
        {
            self.forget(self.first + oldest.length().max(1));
        }
    }

    /// The peer has not confirmed all that was forgotten: as far as is known here, it cannot go on.
    pub fn has_forgotten(&self) -> bool {
        self.first > self.confirmed
    }

    /// What was said from `position` on; `None` where that is not known any more, or never was said.
    pub fn since(&self, position: u64) -> Option<Vec<Said>> {
        if self.unwanted {
            return Some(Vec::new());
        }
        let mut skip = position.checked_sub(self.first).filter(|_| position <= self.end)?;
        let mut rest = Vec::new();
        for said in &self.said {
            let length = said.length();
            // What has no length goes with what follows it.
            if skip >= length.max(1) {
                skip -= length;
            } else if let Said::Bytes(bytes) = said {
                rest.push(Said::Bytes(bytes.slice(std::mem::take(&mut skip) as usize..)));
            } else {
                rest.push(said.clone());
            }
        }
        Some(rest)
    }

    /// The peer wants nothing of this side, said or to be said.
    pub fn silence(&mut self) {
        self.unwanted = true;
        self.said.clear();
        (self.size, self.first, self.confirmed) = (0, self.end, self.end);
    }

    /// Whether the peer wants nothing of this side.
    pub fn is_silenced(&self) -> bool {
        self.unwanted
    }

    /// The peer has said a head that more follows, or that the tunnel stands (`last`: the body comes next).
    pub fn heard_head(&mut self, last: bool) {
        self.heard += 1;
        if last {
            self.hearing = Hearing::Body;
        }
    }

    /// The peer has said so many bytes.
    pub fn heard_bytes(&mut self, count: usize) {
        self.heard += count as u64;
    }

    /// The peer has said its last: the end, or that there is none.
    pub fn heard_end(&mut self) {
        if self.hearing != Hearing::Done {
            self.heard += 1;
            self.hearing = Hearing::Done;
        }
    }

    /// The position of the peer's side.
    pub fn heard(&self) -> u64 {
        self.heard
    }

    /// What of the peer's side comes next.
    pub fn hearing(&self) -> Hearing {
        self.hearing
    }

    /// This end has said its last.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// All of this side has been said, and the peer has it.
    pub fn is_confirmed(&self) -> bool {
        self.over && self.first == self.end
    }

    /// What was said and the peer has not confirmed, kept or not, as positions count.
    pub fn unconfirmed(&self) -> u64 {
        self.end - self.confirmed
    }

    /// Whether the peer has yet to confirm bytes; heads alone it does not confirm.
    pub fn owes_bytes(&self) -> bool {
        self.said.iter().any(|said| matches!(said, Said::Bytes(_)))
    }

    /// Bytes of memory that are kept.
    pub fn size(&self) -> usize {
        self.size
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(said: &[Said]) -> Vec<u8> {
        said.iter()
            .flat_map(|said| if let Said::Bytes(bytes) = said { bytes.to_vec() } else { Vec::new() })
            .collect()
    }

    proptest! {
        #[test]
        fn what_was_said_is_said_again_from_any_position_that_is_kept(
            pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..1500), 0..12),
            confirmed in 0u64..20_000, from in 0u64..20_000,
        ) {
            let mut journal = Journal::new(Hearing::Head);
            journal.say(Said::Opened);
            pieces.iter().for_each(|piece| journal.say(Said::Bytes(piece.clone().into())));
            journal.say(Said::Ended(None));
            let all = pieces.concat();
            let end = all.len() as u64 + 2;
            let confirmed = confirmed.min(end);
            journal.confirm(confirmed);
            match journal.since(from) {
                Some(rest) => {
                    prop_assert!((confirmed..=end).contains(&from));
                    let begin = from.saturating_sub(1).min(all.len() as u64) as usize;
                    prop_assert_eq!(bytes(&rest), &all[begin..]);
                    prop_assert_eq!(rest.contains(&Said::Opened), from == 0);
                    prop_assert_eq!(rest.contains(&Said::Ended(None)), from < end);
                }
                None => prop_assert!(from < confirmed || from > end),
            }
            journal.confirm(end);
            prop_assert!(journal.is_confirmed() && journal.size() == 0);
        }
    }

    #[test]
    fn a_journal_that_grows_too_long_forgets_its_beginning_and_says_so() {
        let mut journal = Journal::new(Hearing::Body);
        (0..10).for_each(|number| journal.say(Said::Bytes(vec![number; 2000].into())));
        journal.bound(5 * (2000 + PIECE));
        assert_eq!(journal.since(9_999), None);
        assert_eq!(bytes(&journal.since(10_000).unwrap())[..1], [5]);
        assert!(journal.size() <= 5 * (2000 + PIECE));
        assert_eq!(journal.unconfirmed(), 20_000, "what is forgotten is not taken");
        assert!(journal.has_forgotten());
        journal.confirm(15_000);
        journal.confirm(14_000);
        assert_eq!(journal.unconfirmed(), 5_000);
        assert!(!journal.has_forgotten(), "the peer has what is gone");
    }

    #[test]
    fn a_mark_is_said_again_with_its_byte_and_forgotten_with_it() {
        let mut journal = Journal::new(Hearing::Body);
        let said = [Said::Bytes("before".into()), Said::Urgent, Said::Bytes("!".into())];
        said.iter().for_each(|said| journal.say(said.clone()));
        assert_eq!(journal.since(0).unwrap(), said);
        assert_eq!(journal.since(6).unwrap(), said[1..]);
        journal.confirm(6);
        assert_eq!(journal.since(6).unwrap(), said[1..]);
        assert_eq!(journal.since(7).unwrap(), []);
        journal.bound(0);
        assert_eq!((journal.size(), journal.since(7)), (0, Some(Vec::new())));
    }

    #[test]
    fn bytes_that_trickle_take_little_more_than_themselves() {
        let mut journal = Journal::new(Hearing::Body);
        (0..10_000).for_each(|_| journal.say(Said::Bytes(Bytes::from_static(b"x"))));
        assert!(journal.size() < 10_000 * 5 / 4, "{}", journal.size());
        assert_eq!(bytes(&journal.since(1).unwrap()).len(), 9_999);
    }

    #[test]
    fn a_failure_and_the_end_after_it_count_once() {
        let mut journal = Journal::new(Hearing::Head);
        journal.heard_head(false);
        journal.heard_head(true);
        journal.heard_bytes(5);
        journal.heard_end();
        journal.heard_end();
        assert_eq!((journal.heard(), journal.hearing()), (8, Hearing::Done));
    }
}
