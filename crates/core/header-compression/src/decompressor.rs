//! The end that makes headers whole again.

use std::time::Duration;

use crate::compressor::tell;
use crate::generation::FORGOTTEN;
use crate::header::Header;
use crate::{GENERATIONS, MARKER, TIMESTAMP, WHOLE};

/// Makes headers whole again that a [`crate::Compressor`] made small. One for each flow and direction, as of that.
#[derive(Debug, Clone, Default)]
pub struct Decompressor {
    context: Option<Context>,
}

/// Why nothing came of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    /// It is none that a compressor makes.
    Malformed,
    /// The whole headers that it stands on have not come: a refresh will bring them.
    NoContext,
}

#[derive(Debug, Clone, Copy)]
struct Context {
    generation: u8,
    base: Header,
    stride: u32,
    /// The newest sequence number seen.
    newest: u16,
    /// When it was last heard of.
    heard: Duration,
}

impl Decompressor {
    /// The datagram that the compressor was given; `now` never goes back, and need not be the compressor's.
    ///
    /// # Errors
    /// Why it cannot be told; nothing is passed on then.
    pub fn decompress(&mut self, now: Duration, bytes: &[u8]) -> Result<Vec<u8>, Dropped> {
        let (flags, rest) = bytes.split_first().ok_or(Dropped::Malformed)?;
        if flags & WHOLE != 0 {
            return self.whole(now, flags & !WHOLE, rest);
        }
        self.context.as_mut().ok_or(Dropped::NoContext)?.compressed(now, *flags, rest)
    }

    fn whole(&mut self, now: Duration, generation: u8, bytes: &[u8]) -> Result<Vec<u8>, Dropped> {
        let (stride, datagram) = bytes.split_first_chunk().ok_or(Dropped::Malformed)?;
        let (header, _) = Header::split(datagram).ok_or(Dropped::Malformed)?;
        if generation & !GENERATIONS != 0 {
            return Err(Dropped::Malformed);
        }
        let is_of_it = |it: &&Context| !it.is_forgotten(now) && it.base.is_same_stream(&header);
        let before = self.context.as_ref().filter(is_of_it);
        let newest = before.map_or(header.sequence(), |it| newer(it.newest, header.sequence()));
        // Whole headers that were overtaken do not bring an older context back.
        if before.is_some_and(|it| newest == it.newest && generation != it.generation) {
            return Ok(datagram.to_vec());
        }
        let stride = u32::from_be_bytes(*stride);
        self.context = Some(Context { generation, base: header, stride, newest, heard: now });
        Ok(datagram.to_vec())
    }
}

impl Context {
    /// Its number may stand for another generation by now.
    fn is_forgotten(&self, now: Duration) -> bool {
        now.saturating_sub(self.heard) >= FORGOTTEN
    }

    fn compressed(&mut self, now: Duration, flags: u8, bytes: &[u8]) -> Result<Vec<u8>, Dropped> {
        let (sequence, rest) = bytes.split_first_chunk().ok_or(Dropped::Malformed)?;
        if flags & GENERATIONS != self.generation || self.is_forgotten(now) {
            return Err(Dropped::NoContext);
        }
        let sequence = u16::from_be_bytes(*sequence);
        let mut header = self.base;
        tell(&mut header, sequence, self.stride);
        header.set_marker(flags & MARKER != 0);
        let payload = if flags & TIMESTAMP == 0 {
            rest
        } else {
            let (timestamp, payload) = rest.split_first_chunk().ok_or(Dropped::Malformed)?;
            header.set_timestamp(u32::from_be_bytes(*timestamp));
            payload
        };
        self.newest = newer(self.newest, sequence);
        self.heard = now;
        Ok([header.as_bytes(), payload].concat())
    }
}

/// The newer of two sequence numbers; one that is far off begins anew.
fn newer(newest: u16, number: u16) -> u16 {
    let ahead = number.wrapping_sub(newest).cast_signed();
    if (-64..=0).contains(&ahead) { newest } else { number }
}
