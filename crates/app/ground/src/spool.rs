//! The spool between an origin, which is quick, and the hop, which is not: it counts the bytes of bodies that wait, so
//! that origins are read ahead, are free again soon, and memory stays bounded. It moves no bytes itself.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use farhop_settings::ground::SpoolSettings;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What all bodies of a ground share.
#[derive(Debug, Clone)]
pub(crate) struct Spool {
    total: Arc<Semaphore>,
    /// Bytes of one body.
    exchange: usize,
}

/// The waiting bytes of one body.
#[derive(Debug)]
pub(crate) struct Queue {
    spool: Spool,
    pieces: VecDeque<(Bytes, Option<OwnedSemaphorePermit>)>,
    bytes: usize,
}

impl Spool {
    /// A spool with the bounds of the settings.
    pub(crate) fn new(settings: &SpoolSettings) -> Self {
        let total = usize::try_from(settings.total.0).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        let exchange = usize::try_from(settings.exchange.0).unwrap_or(usize::MAX);
        Spool { total: Arc::new(Semaphore::new(total)), exchange }
    }

    /// The empty queue of a body.
    pub(crate) fn queue(&self) -> Queue {
        Queue { spool: self.clone(), pieces: VecDeque::new(), bytes: 0 }
    }
}

impl Queue {
    /// Whether the origin may be read further. Always when nothing waits: a full spool slows every body down to the
    /// pace of its own stream, but none waits for another's.
    pub(crate) fn has_room(&self) -> bool {
        self.pieces.is_empty()
            || (self.bytes < self.spool.exchange && self.spool.total.available_permits() > 0)
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
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
        self.pieces.push_back((bytes, permit));
    }

    /// Takes the oldest piece.
    pub(crate) fn pop(&mut self) -> Option<Bytes> {
        let (bytes, _permit) = self.pieces.pop_front()?;
        self.bytes -= bytes.len();
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_units::Bytes as Size;

    fn spool(exchange: u64, total: u64) -> Spool {
        Spool::new(&SpoolSettings { exchange: Size(exchange), total: Size(total) })
    }

    #[test]
    fn a_body_waits_once_it_has_its_share() {
        let mut queue = spool(10, 100).queue();
        queue.push(Bytes::from_static(b"12345678"));
        assert!(queue.has_room());
        queue.push(Bytes::from_static(b"12"));
        assert!(!queue.has_room());
        assert_eq!(queue.pop().unwrap(), "12345678");
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
    fn bytes_come_out_in_order_and_empty_pieces_not_at_all() {
        let mut queue = spool(100, 100).queue();
        for piece in ["a", "", "b"] {
            queue.push(Bytes::from_static(piece.as_bytes()));
        }
        assert_eq!([queue.pop(), queue.pop(), queue.pop()], [Some("a".into()), Some("b".into()), None]);
        assert!(queue.is_empty());
    }
}
