//! The frames of HTTP/2 (RFC 9113 §4), as who stands before the h2 crate reads and writes them: heads of frames, field blocks
//! ([`hpack`]), and how many frames that carry nothing are honest ([`Empties`]). Pure.

mod empties;
pub mod hpack;

pub use empties::Empties;

use bytes::{Buf, BufMut, BytesMut};

/// What a frame takes beside its content, in bytes.
pub const FRAME_HEADER: usize = 9;
/// SETTINGS_MAX_FRAME_SIZE where nothing is said of it (RFC 9113 §6.5.2), as here.
pub const LONGEST_FRAME: usize = 16_384;

/// Kinds of frames (RFC 9113 §6).
pub mod kind {
    #![allow(missing_docs)] // the names are the RFCs'
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    /// PRIORITY of RFC 7540 §6.3.
    pub const STREAM_PRIORITY: u8 = 2;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
    pub const PRIORITY_UPDATE: u8 = 16;
}

/// Flags of frames (RFC 9113 §6).
pub mod flag {
    #![allow(missing_docs)] // the names are the RFCs'
    pub const ACK: u8 = 1;
    pub const END_STREAM: u8 = 1;
    pub const END_HEADERS: u8 = 4;
    pub const PADDED: u8 = 8;
    pub const PRIORITY: u8 = 32;
}

/// The head of a frame (RFC 9113 §4.1).
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    /// Of its content, in bytes.
    pub length: usize,
    /// One of [`kind`], or another.
    pub kind: u8,
    /// Of [`flag`], and others.
    pub flags: u8,
    /// 0 is the connection.
    pub stream: u32,
}

impl Frame {
    /// `None` while it has not come.
    pub fn read(bytes: &[u8]) -> Option<Frame> {
        let head: [u8; FRAME_HEADER] = bytes.get(..FRAME_HEADER)?.try_into().ok()?;
        let [a, b, c, kind, flags, stream @ ..] = head;
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        // The first bit is reserved.
        let stream = u32::from_be_bytes(stream) & 0x7fff_ffff;
        Some(Frame { length, kind, flags, stream })
    }

    /// RFC 9113 §6.2: the fields of HEADERS, with this content, without padding and the priorities of former days, and the stream that by
    /// those its own depends on; `None` if there is more padding than content.
    pub fn fragment<'a>(&self, mut content: &'a [u8]) -> Option<(&'a [u8], Option<u32>)> {
        let (mut padding, mut dependency) = (0, None);
        if self.flags & flag::PADDED != 0 {
            padding = usize::from(content.try_get_u8().ok()?);
        }
        if self.flags & flag::PRIORITY != 0 {
            dependency = Some(content.try_get_u32().ok()? & 0x7fff_ffff);
            content.try_get_u8().ok()?;
        }
        let length = content.len().checked_sub(padding)?;
        Some((&content[..length], dependency))
    }

    /// Whether the sender sends nothing more on its stream; that of HEADERS is told when they are whole.
    pub fn ends_stream(&self) -> bool {
        self.kind == kind::RST_STREAM || (self.kind == kind::DATA && self.flags & flag::END_STREAM != 0)
    }

    /// Whether it can be left out: data without a byte that end nothing. Padding counts for windows (RFC 9113 §6.1).
    pub fn carries_nothing(&self) -> bool {
        self.kind == kind::DATA && self.length == 0 && self.flags & (flag::END_STREAM | flag::PADDED) == 0
    }
}

/// Writes a frame; `content` is no longer than one may be.
pub fn write_frame(kind: u8, flags: u8, stream: u32, content: &[u8], out: &mut BytesMut) {
    out.put_uint(content.len() as u64, 3);
    out.put_u8(kind);
    out.put_u8(flags);
    out.put_u32(stream);
    out.put_slice(content);
}
