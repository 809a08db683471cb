//! The end that makes headers small.

use std::time::Duration;

use crate::generation::Generation;
use crate::header::{Header, LENGTH};
use crate::{MARKER, TIMESTAMP, WHOLE};

/// Whole headers are sent so many times when a context begins: one of them may be lost (RFC 3095 §4.4.1).
const TIMES: u8 = 3;
/// And once each so often, for who has lost them all (§5.3.1.1.1).
const REFRESH: Duration = Duration::from_secs(5);
/// Datagrams in a row that do not follow the context before it is made anew.
const IRREGULAR: u8 = 2;
/// Datagrams that are overtaken by no more than so many belong to what overtook them; others begin anew.
const LATE: i16 = 64;
/// What a context tells lies no further from the datagram that set it up: whichever of its whole headers the other end has heard
/// last, it goes up from them or down as it was meant.
const REACH: u16 = 1 << 14;
/// A stride of what follows from nothing, and is sent with each datagram.
const ALWAYS: u32 = u32::MAX;

/// Makes the headers of one flow's datagrams small that go one way.
#[derive(Debug, Clone, Default)]
pub struct Compressor {
    context: Option<Context>,
}

#[derive(Debug, Clone)]
struct Context {
    generation: Generation,
    /// The number of the datagram that set it up.
    first: u16,
    /// The last whole headers that were sent; all others are told from them.
    base: Header,
    /// What each timestamp has more than the one before it.
    stride: u32,
    /// The datagram before, what it had more than the one before it, and the newest sequence number.
    last: Header,
    last_stride: Option<u32>,
    newest: u16,
    /// Times that whole headers are still to be sent.
    whole: u8,
    irregular: u8,
    refreshed: Duration,
}

impl Compressor {
    /// What crosses in place of `datagram`, or `None` where it has to cross as it is; `now` never goes back.
    pub fn compress(&mut self, now: Duration, datagram: &[u8]) -> Option<Vec<u8>> {
        let (header, payload) = Header::split(datagram)?;
        let context = self.context.get_or_insert_with(|| Context::new(now, &header, Generation::default()));
        if !context.follow(now, &header) {
            return None;
        }
        let mut out = Vec::with_capacity(5 + LENGTH + payload.len());
        if context.whole > 0 {
            context.whole -= 1;
            out.push(WHOLE | context.generation.number());
            out.extend(context.stride.to_be_bytes());
            // It follows from the one before: whichever the other end hears, it tells the same.
            context.base = header;
            out.extend(header.as_bytes());
        } else {
            context.put(&header, &mut out);
        }
        out.extend(payload);
        Some(out)
    }

    /// The other end has not what the next would stand on: it is told anew.
    pub fn refresh(&mut self) {
        self.context.iter_mut().for_each(|context| context.whole = TIMES);
    }
}

impl Context {
    fn new(now: Duration, header: &Header, generation: Generation) -> Context {
        Context {
            generation,
            first: header.sequence(),
            base: *header,
            stride: 0,
            last: *header,
            last_stride: None,
            newest: header.sequence(),
            whole: TIMES,
            irregular: 0,
            refreshed: now,
        }
    }

    /// Forgets what was; `false`, and all is as before, where the next generation's number cannot be told from an earlier one's yet.
    fn begin_anew(&mut self, now: Duration, header: &Header) -> bool {
        let begins = self.generation.advance(now);
        if begins {
            *self = Context::new(now, header, self.generation.clone());
        }
        begins
    }

    /// Sees whether the context still tells this datagram, and sets it up anew where it does not. `false` where it can be neither
    /// told nor set up: it came too late, or too many contexts were set up of late.
    fn follow(&mut self, now: Duration, header: &Header) -> bool {
        let ahead = header.sequence().wrapping_sub(self.newest).cast_signed();
        let is_within = header.sequence().wrapping_sub(self.first).cast_signed().unsigned_abs() < REACH;
        if !self.base.is_same_stream(header) || ahead < -LATE {
            return self.begin_anew(now, header);
        }
        let is_next = header.sequence().wrapping_sub(self.last.sequence()) == 1;
        let stride = is_next.then(|| header.timestamp().wrapping_sub(self.last.timestamp()));
        let is_told = self.timestamp(header).is_none_or(|_| self.stride == ALWAYS);
        if ahead <= 0 && !(is_told && is_within) {
            // Whole headers that were overtaken set nothing up at the other end.
            return self.whole == 0 && is_within;
        }
        self.irregular = if is_told { 0 } else { self.irregular.saturating_add(1) };
        let (other, newest) = (self.other_stride(is_told, stride), self.newest);
        let is_due = is_told && self.whole == 0 && now.saturating_sub(self.refreshed) >= REFRESH;
        let is_other = !is_told && (self.whole > 0 || self.irregular >= IRREGULAR);
        if !is_within || is_other || is_due && other != self.stride {
            if self.begin_anew(now, header) {
                (self.stride, self.newest) = (other, newest);
            } else if !is_within || is_other && self.whole > 0 {
                return false;
            }
        } else if is_due {
            // Who has lost the ones before hears these; who loses these has the ones before.
            (self.whole, self.refreshed) = (1, now);
        }
        if ahead > 0 {
            self.newest = header.sequence();
        }
        (self.last, self.last_stride) = (*header, stride);
        true
    }

    /// What two datagrams in a row have between them the next one will have too, unless the two before had something else.
    fn other_stride(&self, is_told: bool, now: Option<u32>) -> u32 {
        match now {
            Some(now) if now == self.stride || self.last_stride.is_none_or(|last| last == now) => now,
            None if is_told => self.stride,
            _ => ALWAYS,
        }
    }

    /// The timestamp, where the other end has to be told it.
    fn timestamp(&self, header: &Header) -> Option<u32> {
        let mut told = self.base;
        tell(&mut told, header.sequence(), self.stride);
        (self.stride == ALWAYS || told.timestamp() != header.timestamp()).then(|| header.timestamp())
    }

    fn put(&self, header: &Header, out: &mut Vec<u8>) {
        let timestamp = self.timestamp(header);
        let flag = |is: bool, flag: u8| if is { flag } else { 0 };
        let flags = flag(header.marker(), MARKER) | flag(timestamp.is_some(), TIMESTAMP);
        out.push(flags | self.generation.number());
        out.extend(header.sequence().to_be_bytes());
        out.extend(timestamp.iter().flat_map(|it| it.to_be_bytes()));
    }
}

/// Goes from the datagram that set a context up to the one with this sequence number.
pub(crate) fn tell(header: &mut Header, sequence: u16, stride: u32) {
    // Either way round: what was overtaken lies before.
    let steps = sequence.wrapping_sub(header.sequence()).cast_signed();
    let ahead = stride.wrapping_mul(i32::from(steps).cast_unsigned());
    header.set_timestamp(header.timestamp().wrapping_add(ahead));
    header.set_sequence(sequence);
}
