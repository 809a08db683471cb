//! Datagrams that have arrived at one end of the in-process link and are not yet read. It knows
//! neither time nor path.

use std::collections::VecDeque;
use std::task::Waker;

use bytes::Bytes;

/// What a socket holds unread, like the receive buffer of a real one.
pub(super) const INBOX: usize = 4 << 20;
/// Datagrams handed over at once in either direction; more gain nothing.
pub(super) const SEGMENTS: usize = 16;

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    datagrams: VecDeque<Bytes>,
    pub(super) bytes: usize,
    pub(super) overflowed: u64,
    pub(super) reader: Option<Waker>,
    /// Senders waiting for room.
    pub(super) writers: Vec<Waker>,
}

impl Inbox {
    /// Takes a datagram in, or drops it as the kernel does when nobody reads; gives who waits for it.
    pub(super) fn push(&mut self, datagram: Bytes) -> Option<Waker> {
        if self.bytes + datagram.len() > INBOX {
            self.overflowed += 1;
            return None;
        }
        self.bytes += datagram.len();
        self.datagrams.push_back(datagram);
        self.reader.take()
    }

    /// Copies the first datagrams into `buf`: as many of one size as fit, the last of them possibly
    /// shorter. Gives the length filled and the size of one, `None` if there are none.
    pub(super) fn fill(&mut self, buf: &mut [u8]) -> Option<(usize, usize)> {
        let stride = self.datagrams.front()?.len();
        let mut len = 0;
        for _ in 0..SEGMENTS {
            let fits = |next: &mut Bytes| next.len() <= stride && len + next.len() <= buf.len();
            let Some(datagram) = self.datagrams.pop_front_if(fits) else { break };
            self.bytes -= datagram.len();
            buf[len..len + datagram.len()].copy_from_slice(&datagram);
            len += datagram.len();
            if datagram.len() < stride {
                break;
            }
        }
        if len == 0 {
            // Larger than the buffer: a real socket truncates it, and QUIC would discard the rest.
            self.bytes -= self.datagrams.pop_front().map_or(0, |datagram| datagram.len());
        }
        Some((len, stride))
    }
}
