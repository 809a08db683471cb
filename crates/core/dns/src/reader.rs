//! Walks through a message. Names are stepped over and never followed: what is asked has none that point elsewhere, and
//! what is answered is passed on as it is.

use std::ops::Range;

/// RFC 1035 §3.1: bytes of a name, and of a label.
const LONGEST_NAME: usize = 255;
const LONGEST_LABEL: u8 = 63;

/// A message and how far it is read.
pub(crate) struct Reader<'a> {
    pub(crate) message: &'a [u8],
    pub(crate) at: usize,
}

/// A resource record, by where it stands.
pub(crate) struct Record {
    pub(crate) starts: usize,
    /// Its name is the root's.
    pub(crate) is_root: bool,
    pub(crate) kind: u16,
    pub(crate) class: u16,
    pub(crate) ttl_at: usize,
    pub(crate) ttl: u32,
    pub(crate) data: Range<usize>,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let taken = self.message.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(taken)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    /// A name that is written out; its bytes with lengths and root.
    pub(crate) fn name(&mut self) -> Option<&'a [u8]> {
        let starts = self.at;
        loop {
            match self.take(1)?[0] {
                0 => break,
                length if length <= LONGEST_LABEL => drop(self.take(usize::from(length))?),
                _ => return None,
            }
        }
        let name = &self.message[starts..self.at];
        (name.len() <= LONGEST_NAME).then_some(name)
    }

    /// Steps over a name that may end in a pointer (RFC 1035 §4.1.4), which only points back.
    fn skip_name(&mut self) -> Option<()> {
        let starts = self.at;
        loop {
            match self.take(1)?[0] {
                0 => break,
                length if length <= LONGEST_LABEL => drop(self.take(usize::from(length))?),
                high if high >= 0xc0 => {
                    let target = usize::from(high & 0x3f) << 8 | usize::from(self.take(1)?[0]);
                    (target < starts).then_some(())?;
                    break;
                }
                _ => return None,
            }
        }
        (self.at - starts <= LONGEST_NAME + 1).then_some(())
    }

    pub(crate) fn record(&mut self) -> Option<Record> {
        let starts = self.at;
        self.skip_name()?;
        let is_root = self.at == starts + 1;
        let (kind, class) = (self.u16()?, self.u16()?);
        let (ttl_at, ttl) = (self.at, self.u32()?);
        let length = usize::from(self.u16()?);
        let data = self.at..self.at + length;
        self.take(length)?;
        Some(Record { starts, is_root, kind, class, ttl_at, ttl, data })
    }
}
