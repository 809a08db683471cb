//! Datagrams in halves. A path may stop carrying large datagrams and tell nobody (RFC 8899 §1.1), and QUIC finds that out
//! only from acknowledgements, which it does not get where all that it sends is large. Whoever has waited in vain for an
//! acknowledgement sends in halves, which any path carries. Pure; when it is done is the socket's to decide.

use std::collections::VecDeque;

use crate::wire::{Datagram, Half};

/// Bytes of the largest datagram that is sent whole in any case: what IPv6 carries over any path (RFC 8200 §5), less its
/// headers and those of UDP.
pub const LARGEST_WHOLE: usize = 1280 - 48;

/// Halves that wait for their others; the two come one after the other, unless one is lost.
const WAITING: usize = 64;

/// Both halves of `datagram`, under a number that those sent shortly before do not have.
pub fn halve(datagram: &[u8], number: u16) -> [Vec<u8>; 2] {
    let (first, second) = datagram.split_at(datagram.len() / 2);
    [(false, first), (true, second)].map(|(is_second, bytes)| {
        let mut half = Vec::new();
        Datagram::Half(Half { number, is_second, bytes }).encode(&mut half);
        half
    })
}

/// Puts halves together that come from senders known by `K`.
#[derive(Debug)]
pub struct Joiner<K> {
    /// Oldest first.
    waiting: VecDeque<Waiting<K>>,
}

#[derive(Debug)]
struct Waiting<K> {
    from: K,
    number: u16,
    is_second: bool,
    bytes: Vec<u8>,
}

impl<K> Default for Joiner<K> {
    fn default() -> Self {
        Joiner { waiting: VecDeque::new() }
    }
}

impl<K: PartialEq> Joiner<K> {
    /// Takes a half; gives the datagram if the other half is there.
    pub fn join(&mut self, from: K, half: &Half<'_>) -> Option<Vec<u8>> {
        let Half { number, is_second, bytes } = *half;
        if bytes.len() > LARGEST_WHOLE {
            return None; // nobody cuts anything for that
        }
        let is_other = |other: &Waiting<K>| other.from == from && other.number == number;
        let Some(place) = self.waiting.iter().position(is_other) else {
            if self.waiting.len() == WAITING {
                self.waiting.pop_front();
            }
            self.waiting.push_back(Waiting { from, number, is_second, bytes: bytes.to_vec() });
            return None;
        };
        if self.waiting[place].is_second == is_second {
            // The same once more, or the number has come round.
            self.waiting[place].bytes = bytes.to_vec();
            return None;
        }
        let other = self.waiting.remove(place)?;
        Some(if is_second { [&other.bytes, bytes].concat() } else { [bytes, &other.bytes].concat() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(datagram: &[u8]) -> Half<'_> {
        let Some(Datagram::Half(half)) = Datagram::decode(datagram) else { panic!("no half") };
        half
    }

    #[test]
    fn halves_make_the_whole_in_either_order_and_none_is_large() {
        let datagram: Vec<u8> = (0..1453_u16).map(|byte| byte as u8).collect();
        let halves = halve(&datagram, 9);
        assert!(halves.iter().all(|half| half.len() < LARGEST_WHOLE));
        for order in [[0, 1], [1, 0]] {
            let mut joiner = Joiner::default();
            assert_eq!(joiner.join(1, &read(&halves[order[0]])), None);
            assert_eq!(joiner.join(1, &read(&halves[order[0]])), None, "twice the same");
            assert_eq!(joiner.join(1, &read(&halves[order[1]])).as_ref(), Some(&datagram));
            assert!(joiner.waiting.is_empty());
        }
    }

    #[test]
    fn halves_of_different_datagrams_or_senders_are_not_joined() {
        let (one, other) = (halve(&[1; 1400], 1), halve(&[2; 1400], 2));
        let mut joiner = Joiner::default();
        assert_eq!(joiner.join('a', &read(&one[0])), None);
        assert_eq!(joiner.join('a', &read(&other[1])), None);
        assert_eq!(joiner.join('b', &read(&one[1])), None);
        assert_eq!(joiner.join('a', &read(&one[1])), Some(vec![1; 1400]));
    }

    #[test]
    fn halves_that_stay_alone_are_forgotten() {
        let mut joiner = Joiner::default();
        for number in 0..1000 {
            assert_eq!(joiner.join((), &read(&halve(&[7; 1400], number)[1])), None);
        }
        assert_eq!(joiner.waiting.len(), WAITING);
        assert_eq!(joiner.join((), &read(&halve(&[7; 1400], 999)[0])), Some(vec![7; 1400]));
        assert_eq!(joiner.join((), &read(&halve(&[7; 1400], 1)[0])), None);
        let large = halve(&[7; 9000], 5);
        assert_eq!(large.map(|half| joiner.join((), &read(&half))), [None, None]);
    }
}
