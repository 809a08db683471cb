//! The end that makes headers small.

use std::time::Duration;

use crate::crc::crc8;
use crate::packet::Headers;
use crate::{COMPRESSED, CONTEXTS, GENERATIONS, IDENTIFICATION, MARKER, TIMESTAMP, VERBATIM};

/// Whole headers are sent so many times when a context begins: one of them may be lost (RFC 3095 §4.4.1).
const WHOLE: u8 = 3;
/// And once each so often, for who has lost them all (§5.3.1.1.1).
const REFRESH: Duration = Duration::from_secs(5);
/// Packets in a row that do not follow the context before it is made anew.
const IRREGULAR: u8 = 2;
/// The other end understands eight bits of a sequence number only near the newest that it has seen.
const NEAR: i16 = 64;
/// Strides of what follows from nothing, and is sent with each packet.
const ALWAYS: u32 = u32::MAX;
const ALWAYS_IDENTIFICATION: u8 = u8::MAX;

/// What each packet has more than the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Strides {
    pub(crate) timestamp: u32,
    pub(crate) identification: u8,
}

/// Makes the headers of packets small that go one way.
#[derive(Debug, Clone, Default)]
pub struct Compressor {
    contexts: Vec<Context>,
}

#[derive(Debug, Clone)]
struct Context {
    generation: u8,
    /// The packet that set it up; all others are told from it.
    base: Headers,
    strides: Strides,
    /// The packet before, what it had more than the one before it, and the newest sequence number.
    last: Headers,
    last_strides: Option<(u32, u16)>,
    newest: u16,
    /// Times that whole headers are still to be sent.
    whole: u8,
    irregular: u8,
    refreshed: Duration,
    used: Duration,
}

impl Compressor {
    /// What crosses in place of `packet`, which is an IP packet as it is; `now` never goes back.
    pub fn compress(&mut self, now: Duration, packet: &[u8]) -> Vec<u8> {
        let Some((headers, payload)) = Headers::split(packet) else {
            return [&[VERBATIM][..], packet].concat();
        };
        let number = self.context(now, &headers);
        let context = &mut self.contexts[number];
        context.used = now;
        if !context.follow(now, &headers) {
            return [&[VERBATIM][..], packet].concat();
        }
        let mut out = Vec::with_capacity(packet.len());
        if context.whole > 0 {
            context.whole -= 1;
            out.extend([number as u8, context.generation]); // below CONTEXTS
            out.extend(context.strides.timestamp.to_be_bytes());
            out.push(context.strides.identification);
            // It follows from the one before: whichever the other end hears, it tells the same.
            context.base = headers;
            out.extend(headers.as_bytes());
        } else {
            context.put(number as u8, &headers, &mut out);
        }
        out.extend(payload);
        out
    }

    /// The other end has lost what the next packets would stand on: whole headers are sent again, of all streams.
    pub fn refresh(&mut self) {
        self.contexts.iter_mut().for_each(|context| context.whole = WHOLE);
    }

    /// The context of this stream: its own, or the one that was left alone for longest.
    fn context(&mut self, now: Duration, headers: &Headers) -> usize {
        if let Some(found) = self.contexts.iter().position(|context| context.base.is_same_path(headers)) {
            return found;
        }
        if self.contexts.len() < CONTEXTS {
            self.contexts.push(Context::new(now, headers, 0));
            return self.contexts.len() - 1;
        }
        let oldest = self.contexts.iter().enumerate().min_by_key(|(_, context)| context.used);
        let number = oldest.map_or(0, |(number, _)| number);
        self.contexts[number] = Context::new(now, headers, self.contexts[number].generation + 1);
        number
    }
}

impl Context {
    fn new(now: Duration, headers: &Headers, generation: u8) -> Context {
        Context {
            generation: generation & GENERATIONS,
            base: *headers,
            strides: Strides { timestamp: 0, identification: 0 },
            last: *headers,
            last_strides: None,
            newest: headers.sequence(),
            whole: WHOLE,
            irregular: 0,
            refreshed: now,
            used: now,
        }
    }

    /// Sees whether the context still tells this packet, and sets it up anew where it does not. `false` where the packet came
    /// too late for either.
    fn follow(&mut self, now: Duration, headers: &Headers) -> bool {
        let ahead = headers.sequence().wrapping_sub(self.newest).cast_signed();
        if !self.base.is_same_stream(headers) || !(-NEAR..NEAR).contains(&ahead) {
            *self = Context::new(now, headers, self.generation + 1);
            return true;
        }
        let is_next = headers.sequence().wrapping_sub(self.last.sequence()) == 1;
        let strides = is_next.then(|| {
            let timestamp = headers.timestamp().wrapping_sub(self.last.timestamp());
            (timestamp, headers.identification().wrapping_sub(self.last.identification()))
        });
        let is_told = self.timestamp(headers).is_none_or(|_| self.strides.timestamp == ALWAYS)
            && self
                .identification(headers)
                .is_none_or(|_| self.strides.identification == ALWAYS_IDENTIFICATION);
        if !is_told && ahead <= 0 {
            // Whole headers that were overtaken set nothing up at the other end.
            return self.whole == 0;
        }
        self.irregular = if is_told { 0 } else { self.irregular + 1 };
        let is_due = self.whole == 0 && ahead > 0 && now.saturating_sub(self.refreshed) >= REFRESH;
        if is_due || !is_told && (self.whole > 0 || self.irregular >= IRREGULAR) {
            let others = self.other_strides(is_told, strides);
            let (generation, newest) = (self.generation + 1, self.newest);
            *self = Context { strides: others, newest, ..Context::new(now, headers, generation) };
            if is_told {
                self.whole = 1;
            }
        }
        if ahead > 0 {
            self.newest = headers.sequence();
        }
        (self.last, self.last_strides) = (*headers, strides);
        true
    }

    /// What two packets in a row have between them the next one will have too, unless the two before had something else.
    fn other_strides(&self, is_told: bool, now: Option<(u32, u16)>) -> Strides {
        match (now, self.last_strides) {
            (Some((timestamp, identification)), last) => Strides {
                timestamp: if last.is_none_or(|(last, _)| last == timestamp)
                    || timestamp == self.strides.timestamp
                {
                    timestamp
                } else {
                    ALWAYS
                },
                identification: match identification {
                    0 => 0,
                    1 => 1,
                    _ => ALWAYS_IDENTIFICATION,
                },
            },
            (None, _) if is_told => self.strides,
            (None, _) => Strides { timestamp: ALWAYS, identification: ALWAYS_IDENTIFICATION },
        }
    }

    /// The timestamp, where the other end has to be told it.
    fn timestamp(&self, headers: &Headers) -> Option<u32> {
        let told = self.told(headers).timestamp();
        (self.strides.timestamp == ALWAYS || told != headers.timestamp()).then(|| headers.timestamp())
    }

    /// The identification, where the other end has to be told it.
    fn identification(&self, headers: &Headers) -> Option<u16> {
        let told = self.told(headers).identification();
        let always = self.strides.identification == ALWAYS_IDENTIFICATION;
        (always || told != headers.identification()).then(|| headers.identification())
    }

    /// The headers that the other end would make for this packet's sequence number.
    fn told(&self, headers: &Headers) -> Headers {
        let mut told = self.base;
        tell(&mut told, headers.sequence(), self.strides);
        told
    }

    fn put(&self, number: u8, headers: &Headers, out: &mut Vec<u8>) {
        let (timestamp, identification) = (self.timestamp(headers), self.identification(headers));
        let flag = |is: bool, flag: u8| if is { flag } else { 0 };
        let flags = flag(headers.marker(), MARKER)
            | flag(timestamp.is_some(), TIMESTAMP)
            | flag(identification.is_some(), IDENTIFICATION);
        let [_, sequence] = headers.sequence().to_be_bytes();
        out.extend([COMPRESSED | number, flags | self.generation, sequence, crc8(headers.as_bytes())]);
        out.extend(timestamp.iter().flat_map(|it| it.to_be_bytes()));
        out.extend(identification.iter().flat_map(|it| it.to_be_bytes()));
    }
}

/// Goes from the packet that set a context up to the one with this sequence number.
pub(crate) fn tell(headers: &mut Headers, sequence: u16, strides: Strides) {
    // Either way round: what was overtaken lies before.
    let steps = sequence.wrapping_sub(headers.sequence()).cast_signed();
    let timestamp = strides.timestamp.wrapping_mul(i32::from(steps).cast_unsigned());
    headers.set_timestamp(headers.timestamp().wrapping_add(timestamp));
    let identification = u16::from(strides.identification).wrapping_mul(steps.cast_unsigned());
    headers.set_identification(headers.identification().wrapping_add(identification));
    headers.set_sequence(sequence);
}
