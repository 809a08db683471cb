//! The end that makes headers small.

use std::time::Duration;

use crate::generation::Generation;
use crate::packet::Headers;
use crate::{COMPRESSED, CONTEXTS, IDENTIFICATION, MARKER, TIMESTAMP, VERBATIM};

/// Whole headers are sent so many times when a context begins: one of them may be lost (RFC 3095 §4.4.1).
const WHOLE: u8 = 3;
/// And once each so often, for who has lost them all (§5.3.1.1.1).
const REFRESH: Duration = Duration::from_secs(5);
/// Packets in a row that do not follow the context before it is made anew.
const IRREGULAR: u8 = 2;
/// Packets that are overtaken by no more than so many belong to what overtook them; others begin anew.
const LATE: i16 = 64;
/// What a context tells lies no further from the packet that set it up: whichever of its whole headers the other end has heard
/// last, it goes up from them or down as it was meant.
const REACH: u16 = 1 << 14;
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
    generation: Generation,
    /// The number of the packet that set it up.
    first: u16,
    /// The last whole headers that were sent; all others are told from them.
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
        let verbatim = || [&[VERBATIM][..], packet].concat();
        let Some(number) = self.context(now, &headers) else { return verbatim() };
        let context = &mut self.contexts[number];
        context.used = now;
        if !context.follow(now, &headers) {
            return verbatim();
        }
        let mut out = Vec::with_capacity(packet.len());
        if context.whole > 0 {
            context.whole -= 1;
            out.extend([number as u8, context.generation.number()]); // below CONTEXTS
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

    /// The context of this stream: its own, or the one that was left alone for longest. `None` where that cannot be set up anew yet.
    fn context(&mut self, now: Duration, headers: &Headers) -> Option<usize> {
        if let Some(found) = self.contexts.iter().position(|context| context.base.is_same_path(headers)) {
            return Some(found);
        }
        if self.contexts.len() < CONTEXTS {
            self.contexts.push(Context::new(now, headers, Generation::default()));
            return Some(self.contexts.len() - 1);
        }
        let oldest = self.contexts.iter().enumerate().min_by_key(|(_, context)| context.used);
        let number = oldest.map_or(0, |(number, _)| number);
        self.contexts[number].begin_anew(now, headers).then_some(number)
    }
}

impl Context {
    fn new(now: Duration, headers: &Headers, generation: Generation) -> Context {
        Context {
            generation,
            first: headers.sequence(),
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

    /// Forgets what was; `false`, and all is as before, where the next generation's number cannot be told from an earlier one's yet.
    fn begin_anew(&mut self, now: Duration, headers: &Headers) -> bool {
        let begins = self.generation.advance(now);
        if begins {
            *self = Context::new(now, headers, self.generation.clone());
        }
        begins
    }

    /// Sees whether the context still tells this packet, and sets it up anew where it does not. `false` where it can be neither
    /// told nor set up: it came too late, or too many contexts were set up of late.
    fn follow(&mut self, now: Duration, headers: &Headers) -> bool {
        let ahead = headers.sequence().wrapping_sub(self.newest).cast_signed();
        let is_within = headers.sequence().wrapping_sub(self.first).cast_signed().unsigned_abs() < REACH;
        if !self.base.is_same_stream(headers) || ahead < -LATE {
            return self.begin_anew(now, headers);
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
        if ahead <= 0 && !(is_told && is_within) {
            // Whole headers that were overtaken set nothing up at the other end.
            return self.whole == 0 && is_within;
        }
        self.irregular = if is_told { 0 } else { self.irregular.saturating_add(1) };
        let (others, newest) = (self.other_strides(is_told, strides), self.newest);
        let is_due = is_told && self.whole == 0 && now.saturating_sub(self.refreshed) >= REFRESH;
        let is_other = !is_told && (self.whole > 0 || self.irregular >= IRREGULAR);
        if !is_within || is_other || is_due && others != self.strides {
            if self.begin_anew(now, headers) {
                (self.strides, self.newest) = (others, newest);
            } else if !is_within || is_other && self.whole > 0 {
                return false;
            }
        } else if is_due {
            // Who has lost the ones before hears these; who loses these has the ones before.
            (self.whole, self.refreshed) = (1, now);
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
        out.extend([COMPRESSED | number, flags | self.generation.number()]);
        out.extend(headers.sequence().to_be_bytes());
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
