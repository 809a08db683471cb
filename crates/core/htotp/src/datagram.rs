//! Datagrams of flows beside the streams of a carrier (RFC 9221): how they are told from each other, and how long one may wait.
//! Which goes next is the scheduler's.

use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};

use crate::frame::Class;
use crate::varint;

/// How a datagram of a flow crosses: its first byte. A question for a sign of life is a zero by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Form {
    /// As it is.
    Plain = 1,
    /// RTP with a header made small, for an end that says that it makes it whole again
    /// ([`setting::SMALL_HEADERS`](crate::frame::setting::SMALL_HEADERS)).
    Small = 2,
}

/// How long a datagram of this class may wait for the carrier. Speech that is later than a listener's buffer is worth
/// nothing (G.114: 150 ms are not noticed), and whoever sends the rest has sent it again by then.
pub fn patience(class: Class) -> Duration {
    Duration::from_millis(match class {
        Class::Expedited => 100,
        Class::Interactive => 250,
        Class::Web => 500,
        Class::Streaming | Class::Bulk => 1000,
        Class::Background | Class::Backups | Class::PeerToPeer => 2000,
    })
}

/// Bytes that the number of a flow takes in front of what it carries.
pub fn overhead(flow: u64) -> usize {
    1 + varint::size(flow)
}

/// A datagram as it crosses.
pub fn encode(flow: u64, form: Form, payload: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(payload.len() + 9);
    out.put_u8(form as u8);
    varint::put(&mut out, flow);
    out.put_slice(payload);
    out.freeze()
}

/// The flow that a datagram is of, and what it carries in which form; `None` for what is no flow's.
pub fn decode(mut datagram: Bytes) -> Option<(u64, Form, Bytes)> {
    let first = datagram.first()?;
    let form = [Form::Plain, Form::Small].into_iter().find(|form| *form as u8 == *first)?;
    let mut rest = datagram.split_off(1);
    let flow = varint::take(&mut rest)?;
    Some((flow, form, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_datagram_reads_as_it_was_written(flow in 0..varint::MAX, small: bool, payload: Vec<u8>) {
            let form = if small { Form::Small } else { Form::Plain };
            let encoded = encode(flow, form, &payload);
            prop_assert_eq!(encoded.len(), payload.len() + overhead(flow));
            prop_assert_eq!(decode(encoded), Some((flow, form, payload.into())));
        }

        #[test]
        fn no_datagram_is_too_much(bytes: Vec<u8>) {
            let _ = decode(bytes.into());
        }
    }
}
