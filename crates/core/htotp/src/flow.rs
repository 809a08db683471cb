//! What is said on the stream of a flow of UDP: where it leads, datagrams that no datagram of the carrier holds, and why
//! nothing arrives. The flow lasts as long as the stream.

use std::net::{IpAddr, SocketAddr};

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use farhop_packets::Complaint;

use crate::varint;

/// The largest payload of UDP.
pub const LARGEST: usize = 65_535;

/// A record on a flow's stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// The remote's first: where datagrams are to go.
    To(SocketAddr),
    /// A datagram.
    Datagram(Bytes),
    /// Ground's: one was sent in vain.
    Trouble(Complaint),
    /// What comes with small headers cannot be told: whole ones are wanted.
    Refresh,
}

mod kind {
    pub(super) const TO: u8 = 0;
    pub(super) const DATAGRAM: u8 = 1;
    pub(super) const TROUBLE: u8 = 2;
    pub(super) const REFRESH: u8 = 3;
}

/// What comes is no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is no record of a flow")]
pub struct Malformed;

impl Record {
    /// The record in bytes: kind (u8), length of the value (varint), value.
    pub fn encode(&self) -> Bytes {
        let (kind, mut value) = (self.kind(), BytesMut::new());
        match self {
            Record::To(to) => {
                match to.ip() {
                    IpAddr::V4(address) => value.put_slice(&address.octets()),
                    IpAddr::V6(address) => value.put_slice(&address.octets()),
                }
                value.put_u16(to.port());
            }
            Record::Datagram(payload) => value.put_slice(payload),
            Record::Trouble(Complaint::PortUnreachable) => value.put_u8(0),
            Record::Trouble(Complaint::HostUnreachable) => value.put_u8(1),
            Record::Trouble(Complaint::TooBig(size)) => {
                value.put_u8(2);
                value.put_u16(*size);
            }
            Record::Refresh => {}
        }
        let mut out = BytesMut::with_capacity(value.len() + 5);
        out.put_u8(kind);
        varint::put(&mut out, value.len() as u64);
        out.put_slice(&value);
        out.freeze()
    }

    fn kind(&self) -> u8 {
        match self {
            Record::To(_) => kind::TO,
            Record::Datagram(_) => kind::DATAGRAM,
            Record::Trouble(_) => kind::TROUBLE,
            Record::Refresh => kind::REFRESH,
        }
    }

    fn decode(kind: u8, mut value: Bytes) -> Option<Record> {
        let record = match kind {
            kind::TO => {
                let address = value.split_to(value.len().checked_sub(2)?);
                let four = <[u8; 4]>::try_from(&address[..]).map(IpAddr::from);
                let address = four.or_else(|_| <[u8; 16]>::try_from(&address[..]).map(IpAddr::from)).ok()?;
                Record::To(SocketAddr::new(address, value.get_u16()))
            }
            kind::DATAGRAM => Record::Datagram(std::mem::take(&mut value)),
            kind::TROUBLE => Record::Trouble(match value.has_remaining().then(|| value.get_u8())? {
                0 => Complaint::PortUnreachable,
                1 => Complaint::HostUnreachable,
                2 => Complaint::TooBig((value.remaining() >= 2).then(|| value.get_u16())?),
                _ => return None,
            }),
            kind::REFRESH => Record::Refresh,
            _ => return None,
        };
        value.is_empty().then_some(record)
    }
}

/// Cuts a stream into records.
#[derive(Debug, Default)]
pub struct Reader(BytesMut);

impl Reader {
    /// Adds what has come.
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// The next record that is whole.
    ///
    /// # Errors
    /// What comes is none.
    pub fn take(&mut self) -> Result<Option<Record>, Malformed> {
        let mut rest = Bytes::copy_from_slice(&self.0[..self.0.len().min(9)]);
        if !rest.has_remaining() {
            return Ok(None);
        }
        let kind = rest.get_u8();
        if kind > kind::REFRESH {
            return Err(Malformed);
        }
        let had = rest.remaining();
        let Some(length) = varint::take(&mut rest) else { return Ok(None) };
        let length = usize::try_from(length).ok().filter(|length| *length <= LARGEST).ok_or(Malformed)?;
        let head = 1 + had - rest.remaining();
        if self.0.len() < head + length {
            return Ok(None);
        }
        let mut record = self.0.split_to(head + length).freeze();
        Record::decode(kind, record.split_off(head)).ok_or(Malformed).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all() -> Vec<Record> {
        vec![
            Record::To("192.0.2.7:53".parse().unwrap()),
            Record::To("[2001:db8::7]:443".parse().unwrap()),
            Record::Datagram(Bytes::new()),
            Record::Datagram(vec![7; 40_000].into()),
            Record::Trouble(Complaint::PortUnreachable),
            Record::Trouble(Complaint::HostUnreachable),
            Record::Trouble(Complaint::TooBig(1280)),
            Record::Refresh,
        ]
    }

    #[test]
    fn records_read_as_they_were_written_however_they_are_cut() {
        let bytes: Vec<u8> = all().iter().flat_map(|record| record.encode().to_vec()).collect();
        for piece in [1, 7, 1000, bytes.len()] {
            let (mut reader, mut read) = (Reader::default(), Vec::new());
            for piece in bytes.chunks(piece) {
                reader.push(piece);
                while let Some(record) = reader.take().unwrap() {
                    read.push(record);
                }
            }
            assert_eq!(read, all(), "by {piece}");
        }
    }

    #[test]
    fn what_is_no_record_is_refused() {
        for bytes in [
            &[4, 0][..],
            &[3, 1, 0],
            &[0, 1, 9],
            &[0, 5, 1, 2, 3, 4, 5],
            &[2, 0],
            &[2, 1, 9],
            &[2, 2, 0, 0],
            &[2, 2, 2, 1],
        ] {
            let mut reader = Reader::default();
            reader.push(bytes);
            assert_eq!(reader.take(), Err(Malformed), "{bytes:?}");
        }
        let mut reader = Reader::default();
        reader.push(&[1, 0x80, 1, 0, 0]);
        assert_eq!(reader.take(), Err(Malformed), "longer than any datagram");
    }

    proptest! {
        #[test]
        fn no_input_is_too_much(bytes: Vec<u8>) {
            let mut reader = Reader::default();
            reader.push(&bytes);
            while let Ok(Some(record)) = reader.take() {
                let mut again = Reader::default();
                again.push(&record.encode());
                prop_assert_eq!(again.take(), Ok(Some(record)));
            }
        }
    }
}
