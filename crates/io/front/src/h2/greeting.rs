//! What this end says first, before all that the h2 crate says: that it has no use for the priorities of RFC 7540
//! (RFC 9218 §2.1), which the crate cannot say. Browsers tell whoever says so when they need something sooner after all.

use super::sieve::{FRAME_HEADER, Frame};
use bytes::{Buf, BufMut, BytesMut};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;

/// RFC 9113 §6.5, and its flag for an acknowledgement.
const SETTINGS: u8 = 4;
const ACK: u8 = 1;
/// SETTINGS_NO_RFC7540_PRIORITIES, 1.
const NO_PRIORITIES: [u8; 6] = [0, 9, 0, 0, 0, 1];

/// See the module.
pub(super) enum Greeting {
    Unsaid,
    /// What is left to write of the first words, and how many bytes of the crate's they are.
    Saying(BytesMut, usize),
    Said,
}

impl Greeting {
    /// Writes the first of `data` to `socket`, with what is added to it; gives the number of bytes of `data` that went. `None`
    /// when there is nothing to add any more.
    pub(super) fn poll_write<S: AsyncWrite + Unpin + ?Sized>(
        &mut self,
        socket: &mut S,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<Option<usize>>> {
        if matches!(self, Greeting::Unsaid) {
            *self = amended(data).map_or(Greeting::Said, |words| Greeting::Saying(words, data.len()));
        }
        let Greeting::Saying(words, taken) = self else { return Poll::Ready(Ok(None)) };
        while words.has_remaining() {
            match ready!(Pin::new(&mut *socket).poll_write(cx, words))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => words.advance(count),
            }
        }
        let taken = *taken;
        *self = Greeting::Said;
        Poll::Ready(Ok(Some(taken)))
    }
}

/// The bytes of a connection's beginning with one setting more; `None` if they do not begin with settings.
fn amended(data: &[u8]) -> Option<BytesMut> {
    let Frame { length, kind, flags, stream } = Frame::read(data)?;
    if (kind, flags & ACK, stream) != (SETTINGS, 0, 0) {
        return None;
    }
    let mut words = BytesMut::with_capacity(data.len() + NO_PRIORITIES.len());
    words.put_uint((length + NO_PRIORITIES.len()) as u64, 3);
    words.put_slice(&data[3..FRAME_HEADER]);
    words.put_slice(&NO_PRIORITIES);
    words.put_slice(&data[FRAME_HEADER..]);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    #[test]
    fn the_first_settings_get_one_more_whatever_the_socket_takes_at_once() {
        let ours = [&[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 100][..], b"window update"].concat();
        let (mut greeting, mut said) = (Greeting::Unsaid, Vec::new());
        let mut cx = Context::from_waker(Waker::noop());
        assert!(
            matches!(greeting.poll_write(&mut said, &mut cx, &ours), Poll::Ready(Ok(Some(n))) if n == ours.len())
        );
        assert_eq!(said[..21], [0, 0, 12, 4, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1, 0, 3, 0, 0, 0, 100]);
        assert_eq!(&said[21..], b"window update");
        assert!(matches!(greeting.poll_write(&mut said, &mut cx, &ours), Poll::Ready(Ok(None))));

        // A socket of five bytes, with the crate having more to say by the time that there is room again.
        let (mut near, _far) = tokio::io::duplex(5);
        let mut greeting = Greeting::Unsaid;
        assert!(greeting.poll_write(&mut near, &mut cx, &ours).is_pending());
        assert!(
            matches!(&greeting, Greeting::Saying(words, taken) if words.len() == ours.len() + 1 && *taken == ours.len())
        );
    }

    #[test]
    fn what_does_not_begin_with_settings_is_left_as_it_is() {
        for data in [&b"HTTP/1.1 400"[..], &[0, 0, 0, 4, 1, 0, 0, 0, 0], &[0, 0, 6, 4]] {
            assert!(amended(data).is_none(), "{data:?}");
        }
    }
}
