//! The spool between an origin, which is quick, and the hop, which is not: it counts the bytes of bodies that wait, so
//! that origins are read ahead, are free again soon, and memory stays bounded. It moves no bytes itself.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use farhop_settings::ground::SpoolSettings;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Pieces shorter than this are copied, and gathered while others wait: a few bytes from an origin may be a view of all that
/// was read with them, and an origin that trickles would so take many times what is counted.
const SMALL: usize = 4 * 1024;
/// While the link is cut bodies leave this part of the spool to what has been said and not been heard, and to bodies that begin.
const SPARE: usize = 4;

/// What all bodies of a ground share.
#[derive(Debug, Clone)]
pub(crate) struct Spool {
    total: Arc<Semaphore>,
    /// Bytes of one body.
    exchange: usize,
    /// Bytes that bodies leave to others while the link is cut.
    spare: usize,
}

/// The waiting bytes of one body.
#[derive(Debug)]
pub(crate) struct Queue {
    spool: Spool,
    pieces: VecDeque<Piece>,
    /// Small pieces that came last.
    gathered: BytesMut,
    gathered_permit: Option<OwnedSemaphorePermit>,
    bytes: usize,
}

type Piece = (Bytes, Option<OwnedSemaphorePermit>);

/// Room in the spool for something else, until it is dropped.
pub(crate) struct Shelter {
    pub(crate) bytes: usize,
    _permit: OwnedSemaphorePermit,
}

impl Spool {
    /// A spool with the bounds of the settings.
    pub(crate) fn new(settings: &SpoolSettings) -> Self {
        let total = usize::try_from(settings.total.0).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        let exchange = usize::try_from(settings.exchange.0).unwrap_or(usize::MAX);
        Spool { total: Arc::new(Semaphore::new(total)), exchange, spare: total / SPARE }
    }

    /// Room for what was under way on a carrier that has ended: so many bytes, or what is left.
    pub(crate) fn shelter(&self, bytes: usize) -> Shelter {
        loop {
            let bytes = u32::try_from(bytes.min(self.total.available_permits())).unwrap_or(u32::MAX);
            // Another may have taken what was left.
            if let Ok(permit) = Arc::clone(&self.total).try_acquire_many_owned(bytes) {
                return Shelter { bytes: permit.num_permits(), _permit: permit };
            }
        }
    }

    /// The empty queue of a body.
    pub(crate) fn queue(&self) -> Queue {
        let (pieces, gathered) = (VecDeque::new(), BytesMut::new());
        Queue { spool: self.clone(), pieces, gathered, gathered_permit: None, bytes: 0 }
    }
}

impl Queue {
    /// Whether the origin may be read further. Always when nothing waits: a full spool slows every body down to the
    /// pace of its own stream, but none waits for another's.
    pub(crate) fn has_room(&self) -> bool {
        self.is_empty() || (self.bytes < self.spool.exchange && self.spool.total.available_permits() > 0)
    }

    /// Whether the origin may be read further while the link is cut: it may not wait for the link's return, so a body may
    /// take what is left, but for what all that is under way on the carrier needs to go on.
    pub(crate) fn has_shelter(&self) -> bool {
        self.spool.total.available_permits() > self.spool.spare
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Adds a piece, even beyond the bounds: it has been read. The next asks [`Queue::has_room`] first.
    pub(crate) fn push(&mut self, bytes: Bytes) {
        if bytes.is_empty() {
            return;
        }
        let left = self.spool.total.available_permits();
        let counted = u32::try_from(bytes.len().min(left)).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.spool.total).try_acquire_many_owned(counted).ok();
        self.bytes += bytes.len();
        if self.gathered.len() + bytes.len() > SMALL {
            self.close_gathered();
        }
        if bytes.len() > SMALL {
            return self.pieces.push_back((bytes, permit));
        }
        self.gathered.extend_from_slice(&bytes);
        match (&mut self.gathered_permit, permit) {
            (Some(all), Some(permit)) => all.merge(permit),
            (all, permit) => *all = all.take().or(permit),
        }
    }

    /// Takes the oldest piece.
    pub(crate) fn pop(&mut self) -> Option<Bytes> {
        if self.pieces.is_empty() {
            self.close_gathered();
        }
        let (bytes, _permit) = self.pieces.pop_front()?;
        self.bytes -= bytes.len();
        Some(bytes)
    }

    /// What is gathered is a piece like any other.
    fn close_gathered(&mut self) {
        if !self.gathered.is_empty() {
            let gathered = std::mem::take(&mut self.gathered).freeze();
            self.pieces.push_back((gathered, self.gathered_permit.take()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_units::Bytes as Size;

    fn spool(exchange: u64, total: u64) -> Spool {
        let keep = std::time::Duration::ZERO;
        Spool::new(&SpoolSettings { exchange: Size(exchange), total: Size(total), keep })
    }

    #[test]
    fn a_body_waits_once_it_has_its_share() {
        let mut queue = spool(10_000, 100_000).queue();
        queue.push(vec![1; 8_000].into());
        assert!(queue.has_room());
        queue.push(vec![2; 2_000].into());
        assert!(!queue.has_room());
        assert_eq!(queue.pop().unwrap(), [1; 8_000][..]);
        assert!(queue.has_room());
    }

    #[test]
    fn a_full_spool_holds_back_those_that_have_something_waiting_and_nobody_else() {
        let spool = spool(100, 10);
        let (mut greedy, mut modest) = (spool.queue(), spool.queue());
        greedy.push(Bytes::from_static(b"123456789012345"));
        assert!(!greedy.has_room());
        assert!(modest.has_room());
        modest.push(Bytes::from_static(b"1"));
        assert!(!modest.has_room());
        drop(greedy);
        assert!(modest.has_room(), "what was dropped counts no more");
    }

    #[test]
    fn while_the_link_is_cut_an_endless_body_leaves_room_for_what_is_under_way() {
        let spool = spool(100, 1_000);
        let mut endless = spool.queue();
        while endless.has_shelter() {
            endless.push(vec![0; 50].into());
        }
        assert_eq!(spool.shelter(200).bytes, 200);
        assert_eq!(spool.shelter(2_000).bytes, 250, "what is left");
        let all = spool.shelter(usize::MAX);
        assert_eq!((all.bytes, spool.shelter(1).bytes), (250, 0));
    }

    #[test]
    fn bytes_come_out_in_order_whatever_the_pieces() {
        let mut queue = spool(1 << 20, 1 << 20).queue();
        let (mut came, mut taken) = (Vec::new(), Vec::new());
        for (number, length) in [1, 0, 5000, 7, 4096, 1, 4095, 1, 1, 9000, 2].into_iter().enumerate() {
            let piece = vec![number as u8; length];
            came.extend_from_slice(&piece);
            queue.push(piece.into());
            // Now and then one is taken.
            if number % 3 == 2 {
                taken.extend_from_slice(&queue.pop().unwrap());
            }
        }
        while let Some(piece) = queue.pop() {
            assert!(!piece.is_empty());
            taken.extend_from_slice(&piece);
        }
        assert_eq!(taken, came);
        assert!(queue.is_empty() && queue.has_room());
    }

    #[test]
    fn a_body_that_trickles_keeps_nothing_of_the_buffers_that_it_came_in() {
        let spool = spool(1 << 20, 1 << 20);
        let mut queue = spool.queue();
        let buffers: Vec<Bytes> = (0..1000).map(|_| Bytes::from(vec![7; 8192])).collect();
        buffers.iter().for_each(|buffer| queue.push(buffer.slice(..5)));
        assert!(buffers.iter().all(Bytes::is_unique), "a piece is a view of its buffer");
        assert_eq!(spool.total.available_permits(), (1 << 20) - 5000);
        assert_eq!([queue.pop().unwrap().len(), queue.pop().unwrap().len()], [4095, 905]);
        assert_eq!(spool.total.available_permits(), 1 << 20);
    }
}
