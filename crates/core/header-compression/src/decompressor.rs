//! The end that makes headers whole again.

use std::time::Duration;

use crate::compressor::{Strides, tell};
use crate::generation::FORGOTTEN;
use crate::packet::Headers;
use crate::{COMPRESSED, CONTEXTS, GENERATIONS, IDENTIFICATION, MARKER, TIMESTAMP, VERBATIM};

/// Makes headers whole again that a [`crate::Compressor`] made small.
#[derive(Debug, Clone, Default)]
pub struct Decompressor {
    contexts: Vec<Option<Context>>,
}

/// Why nothing came of a packet.
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
    base: Headers,
    strides: Strides,
    /// The newest sequence number seen.
    newest: u16,
    /// When it was last heard of.
    heard: Duration,
}

impl Decompressor {
    /// The IP packet that a compressor was given; `now` never goes back, and need not be the compressor's.
    ///
    /// # Errors
    /// Why it cannot be told; nothing is passed on then.
    pub fn decompress(&mut self, now: Duration, bytes: &[u8]) -> Result<Vec<u8>, Dropped> {
        let (first, rest) = bytes.split_first().ok_or(Dropped::Malformed)?;
        let number = usize::from(first & !COMPRESSED);
        if *first == VERBATIM {
            Ok(rest.to_vec())
        } else if number >= CONTEXTS {
            Err(Dropped::Malformed)
        } else if first & COMPRESSED == 0 {
            self.whole(now, number, rest)
        } else {
            let context = self.contexts.get_mut(number).and_then(Option::as_mut).ok_or(Dropped::NoContext)?;
            context.compressed(now, rest)
        }
    }

    fn whole(&mut self, now: Duration, number: usize, bytes: &[u8]) -> Result<Vec<u8>, Dropped> {
        let [generation, a, b, c, d, identification, packet @ ..] = bytes else {
            return Err(Dropped::Malformed);
        };
        let (headers, _) = Headers::split(packet).ok_or(Dropped::Malformed)?;
        if generation & !GENERATIONS != 0 {
            return Err(Dropped::Malformed);
        }
        if self.contexts.len() <= number {
            self.contexts.resize(number + 1, None);
        }
        let is_of_it = |it: &&Context| !it.is_forgotten(now) && it.base.is_same_stream(&headers);
        let before = self.contexts[number].as_ref().filter(is_of_it);
        let newest = before.map_or(headers.sequence(), |it| newer(it.newest, headers.sequence()));
        // Whole headers that were overtaken do not bring an older context back.
        if before.is_some_and(|it| newest == it.newest && *generation != it.generation) {
            return Ok(packet.to_vec());
        }
        self.contexts[number] = Some(Context {
            generation: *generation,
            base: headers,
            strides: Strides {
                timestamp: u32::from_be_bytes([*a, *b, *c, *d]),
                identification: *identification,
            },
            newest,
            heard: now,
        });
        Ok(packet.to_vec())
    }
}

impl Context {
    /// Its number may stand for another generation by now.
    fn is_forgotten(&self, now: Duration) -> bool {
        now.saturating_sub(self.heard) >= FORGOTTEN
    }

    fn compressed(&mut self, now: Duration, bytes: &[u8]) -> Result<Vec<u8>, Dropped> {
        let [flags, high, low, rest @ ..] = bytes else { return Err(Dropped::Malformed) };
        if flags & GENERATIONS != self.generation || self.is_forgotten(now) {
            return Err(Dropped::NoContext);
        }
        let sequence = u16::from_be_bytes([*high, *low]);
        let mut rest = rest;
        let mut take = |length: usize| {
            let (taken, left) = rest.split_at_checked(length).ok_or(Dropped::Malformed)?;
            rest = left;
            Ok::<_, Dropped>(taken)
        };
        let timestamp = match flags & TIMESTAMP {
            0 => None,
            _ => Some(take(4)?.iter().fold(0, |all, byte| all << 8 | u32::from(*byte))),
        };
        let identification = match flags & IDENTIFICATION {
            0 => None,
            _ => Some(take(2)?.iter().fold(0, |all, byte| all << 8 | u16::from(*byte))),
        };
        let payload = rest;
        let mut headers = self.base;
        tell(&mut headers, sequence, self.strides);
        headers.set_marker(flags & MARKER != 0);
        if let Some(timestamp) = timestamp {
            headers.set_timestamp(timestamp);
        }
        if let Some(identification) = identification {
            headers.set_identification(identification);
        }
        let headers = headers.filled(payload).ok_or(Dropped::Malformed)?;
        self.newest = newer(self.newest, sequence);
        self.heard = now;
        Ok([headers.as_bytes(), payload].concat())
    }
}

/// The newer of two sequence numbers; one that is far off begins anew.
fn newer(newest: u16, number: u16) -> u16 {
    let ahead = number.wrapping_sub(newest).cast_signed();
    if (-64..=0).contains(&ahead) { newest } else { number }
}
