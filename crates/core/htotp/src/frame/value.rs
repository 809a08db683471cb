//! What stands in each frame's value, written and read side by side (docs/htotp.md, "Frames"). Nothing here
//! knows which frame may follow which.

use std::net::IpAddr;

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::{
    Class, Coding, Failure, Frame, FrameError, Hello, PathReport, Priority, Resume, Side, Tunnel, Validating,
    Verdict, kind,
};
use crate::fields::codec;
use crate::mirror::{BodyHash, Bound, Entry, HeldBody, Position, Validators, Word};
use crate::varint;

impl Frame {
    /// The type number.
    pub fn kind(&self) -> u64 {
        match self {
            Frame::Hello(_) => kind::HELLO,
            Frame::Settings(_) => kind::SETTINGS,
            Frame::Ping(_) => kind::PING,
            Frame::Pong(_) => kind::PONG,
            Frame::Saved(_) => kind::SAVED,
            Frame::Retire(_) => kind::RETIRE,
            Frame::Drain => kind::DRAIN,
            Frame::Unwanted { .. } => kind::UNWANTED,
            Frame::Wanted { .. } => kind::WANTED,
            Frame::Prepare { .. } => kind::PREPARE,
            Frame::Reorder { .. } => kind::REORDER,
            Frame::Left { .. } => kind::LEFT,
            Frame::Weight { .. } => kind::WEIGHT,
            Frame::Used { .. } => kind::USED,
            Frame::Answered { .. } => kind::ANSWERED,
            Frame::Request { .. } => kind::REQUEST,
            Frame::Data(_) => kind::DATA,
            Frame::Trailers(_) => kind::TRAILERS,
            Frame::Response { .. } => kind::RESPONSE,
            Frame::Informational(_) => kind::INFORMATIONAL,
            Frame::Promise { .. } => kind::PROMISE,
            Frame::Validating(_) => kind::VALIDATING,
            Frame::Failure(_) => kind::FAILURE,
            Frame::Push { .. } => kind::PUSH,
            Frame::Taken(_) => kind::TAKEN,
            Frame::Rejoin { .. } => kind::REJOIN,
            Frame::Rejoined(_) => kind::REJOINED,
            Frame::Tunnel(_) => kind::TUNNEL,
            Frame::TunnelOpened => kind::TUNNEL_OPENED,
            Frame::Urgent => kind::URGENT,
            Frame::Class(_) => kind::CLASS,
            Frame::Mirror(Word::Reset) => kind::MIRROR,
            Frame::Mirror(Word::Stored(_)) => kind::STORED,
            Frame::Mirror(Word::Evicted(_)) => kind::EVICTED,
            Frame::Mirror(Word::Validators(_)) => kind::VALIDATORS,
            Frame::Mirror(Word::Log(_)) => kind::LOG,
            Frame::Mirror(Word::Summary(_)) => kind::SUMMARY,
            Frame::Heard(_) => kind::HEARD,
            Frame::Differ { .. } => kind::DIFFER,
            Frame::Mirror(Word::Holds(_)) => kind::HOLDS,
            Frame::Mirror(Word::Lacks(_)) => kind::LACKS,
            Frame::Path(_) => kind::PATH,
            Frame::Dictionary { .. } => kind::DICTIONARY,
        }
    }

    /// The frame in bytes.
    pub fn encode(&self) -> Bytes {
        let mut value = Vec::new();
        self.put_value(&mut value);
        let mut out = BytesMut::with_capacity(value.len() + 6);
        varint::put(&mut out, self.kind());
        varint::put(&mut out, value.len() as u64);
        out.put_slice(&value);
        out.freeze()
    }

    fn put_value(&self, out: &mut Vec<u8>) {
        match self {
            Frame::Hello(hello) => {
                varint::put(out, hello.versions.len() as u64);
                hello.versions.iter().for_each(|version| varint::put(out, *version));
                varint::put(out, hello.epoch);
                codec::put_string(hello.profile.as_bytes(), out);
                codec::put_string(hello.agent.as_bytes(), out);
            }
            Frame::Settings(pairs) | Frame::Taken(pairs) => pairs.iter().for_each(|(number, value)| {
                varint::put(out, *number);
                varint::put(out, *value);
            }),
            Frame::Rejoin { carrier, exchange, position } => {
                [carrier, exchange, position].into_iter().for_each(|number| varint::put(out, *number));
            }
            Frame::Rejoined(verdict) => match verdict {
                Verdict::GoesOn(position) => {
                    out.push(0);
                    varint::put(out, *position);
                }
                Verdict::NotKept => out.push(1),
                Verdict::NeverCame => out.push(2),
            },
            Frame::Ping(n)
            | Frame::Pong(n)
            | Frame::Saved(n)
            | Frame::Retire(n)
            | Frame::Push { promise: n } => {
                varint::put(out, *n);
            }
            Frame::Unwanted { promise, more } | Frame::Used { promise, more } => {
                varint::put(out, *promise);
                if *more > 0 {
                    varint::put(out, *more);
                }
            }
            Frame::Answered { page, entries } => {
                varint::put(out, *page);
                for (entry, after) in entries {
                    varint::put(out, *entry);
                    varint::put(out, *after);
                }
            }
            Frame::Wanted { promise: number, priority } | Frame::Reorder { exchange: number, priority } => {
                varint::put(out, *number);
                out.push(flags(Class::Web, *priority, false));
            }
            Frame::Prepare { user, scheme, host, port } => {
                varint::put(out, *user);
                codec::put_string(scheme.as_bytes(), out);
                codec::put_string(host.as_bytes(), out);
                out.put_u16(*port);
            }
            Frame::Left { user, connection } => {
                varint::put(out, *user);
                codec::put_string(connection.as_bytes(), out);
            }
            Frame::Weight { user, hundredths } => {
                varint::put(out, *user);
                varint::put(out, *hundredths);
            }
            Frame::Drain | Frame::TunnelOpened | Frame::Urgent | Frame::Mirror(Word::Reset) => {}
            Frame::Class(class) => out.push(flags(*class, Priority::default(), false)),
            Frame::Mirror(Word::Stored(entries)) => entries.iter().for_each(|entry| put_entry(entry, out)),
            Frame::Mirror(Word::Holds(bodies) | Word::Lacks(bodies)) => {
                bodies.iter().for_each(|body| put_body(body, out));
            }
            Frame::Path(PathReport { arriving, lost }) => {
                varint::put(out, *arriving);
                varint::put(out, *lost);
            }
            Frame::Mirror(Word::Evicted(numbers)) => {
                numbers.iter().for_each(|number| varint::put(out, *number));
            }
            Frame::Mirror(Word::Validators(all)) => all.iter().for_each(|it| put_validators(it, out)),
            Frame::Mirror(Word::Log(position)) | Frame::Heard(position) => {
                varint::put(out, position.log);
                varint::put(out, position.next);
            }
            Frame::Mirror(Word::Summary(sums)) => sums.iter().for_each(|sum| out.put_u32(*sum)),
            Frame::Differ { of, buckets } => {
                varint::put(out, *of);
                buckets.iter().for_each(|bucket| varint::put(out, *bucket));
            }
            Frame::Dictionary { hash, length } => {
                out.extend_from_slice(&hash.0);
                varint::put(out, *length);
            }
            Frame::Validating(Validating { promise, entry, request }) => {
                [promise, entry, request].into_iter().for_each(|number| varint::put(out, *number));
            }
            Frame::Request { exchange, user, class, priority, resume, section } => {
                varint::put(out, *exchange);
                varint::put(out, *user);
                out.push(flags(*class, *priority, resume.is_some()));
                if let Some(resume) = resume {
                    varint::put(out, resume.offset);
                    out.extend_from_slice(&resume.prefix);
                }
                out.extend_from_slice(section);
            }
            Frame::Data(bytes) | Frame::Trailers(bytes) | Frame::Informational(bytes) => {
                out.extend_from_slice(bytes)
            }
            Frame::Response { coding, resumed, section } => {
                let number = match coding {
                    Coding::Identity => 0,
                    Coding::Zstd => 1,
                    Coding::Dictionary(_) => 2,
                    Coding::Delta(_) => 3,
                    Coding::Brotli => 4,
                    Coding::Gzip => 5,
                };
                out.push(number << 1 | u8::from(resumed.is_some()));
                if let Coding::Dictionary(BodyHash(base)) | Coding::Delta(BodyHash(base)) = coding {
                    out.extend_from_slice(base);
                }
                if let Some(offset) = resumed {
                    varint::put(out, *offset);
                }
                out.extend_from_slice(section);
            }
            Frame::Promise { promise, priority, section } => {
                varint::put(out, *promise);
                out.push(flags(Class::Web, *priority, false));
                out.extend_from_slice(section);
            }
            Frame::Failure(failure) => {
                out.push(failure.side as u8);
                out.put_u16(failure.status);
                codec::put_string(failure.token.as_bytes(), out);
                codec::put_string(failure.detail.as_bytes(), out);
            }
            Frame::Tunnel(Tunnel { tunnel, user, class, host, port, client, marked }) => {
                varint::put(out, *tunnel);
                varint::put(out, *user);
                let priority = Priority { incremental: *marked, ..Priority::default() };
                out.push(flags(*class, priority, client.is_some()));
                codec::put_string(host.as_bytes(), out);
                out.put_u16(*port);
                match client {
                    Some(IpAddr::V4(address)) => out.extend_from_slice(&address.octets()),
                    Some(IpAddr::V6(address)) => out.extend_from_slice(&address.octets()),
                    None => {}
                }
            }
        }
    }

    /// Reads the value of a frame; `Ok(None)` for an unknown type that may be skipped.
    pub(super) fn decode(kind: u64, mut value: Bytes) -> Result<Option<Frame>, FrameError> {
        if !kind::is_known(kind) {
            return if kind & 1 == 1 { Err(FrameError::UnknownCritical(kind)) } else { Ok(None) };
        }
        let frame = Self::read_value(kind, &mut value).ok_or(FrameError::Malformed(kind))?;
        if value.has_remaining() {
            return Err(FrameError::Malformed(kind));
        }
        Ok(Some(frame))
    }

    fn read_value(kind: u64, value: &mut Bytes) -> Option<Frame> {
        Some(match kind {
            kind::HELLO => {
                let count = varint::take(value)?;
                if count > 64 {
                    return None;
                }
                let versions = (0..count).map(|_| varint::take(value)).collect::<Option<Vec<_>>>()?;
                let epoch = varint::take(value)?;
                Frame::Hello(Hello { versions, epoch, profile: text(value)?, agent: text(value)? })
            }
            kind::SETTINGS => Frame::Settings(read_pairs(value)?),
            kind::TAKEN => Frame::Taken(read_pairs(value)?),
            kind::REJOIN => {
                let (carrier, exchange) = (varint::take(value)?, varint::take(value)?);
                Frame::Rejoin { carrier, exchange, position: varint::take(value)? }
            }
            kind::REJOINED => Frame::Rejoined(match byte(value)? {
                0 => Verdict::GoesOn(varint::take(value)?),
                1 => Verdict::NotKept,
                2 => Verdict::NeverCame,
                _ => return None,
            }),
            kind::PING => Frame::Ping(varint::take(value)?),
            kind::PONG => Frame::Pong(varint::take(value)?),
            kind::SAVED => Frame::Saved(varint::take(value)?),
            kind::RETIRE => Frame::Retire(varint::take(value)?),
            kind::UNWANTED => {
                let (promise, more) = run(value)?;
                Frame::Unwanted { promise, more }
            }
            kind::USED => {
                let (promise, more) = run(value)?;
                Frame::Used { promise, more }
            }
            kind::ANSWERED => {
                let (page, mut entries) = (varint::take(value)?, Vec::new());
                while value.has_remaining() {
                    entries.push((varint::take(value)?, varint::take(value)?));
                }
                Frame::Answered { page, entries }
            }
            kind::WANTED => {
                let promise = varint::take(value)?;
                let (_, priority, _) = read_flags(value)?;
                Frame::Wanted { promise, priority }
            }
            kind::PREPARE => {
                let (user, scheme, host) = (varint::take(value)?, text(value)?, text(value)?);
                Frame::Prepare { user, scheme, host, port: port(value)? }
            }
            kind::REORDER => {
                let exchange = varint::take(value)?;
                let (_, priority, _) = read_flags(value)?;
                Frame::Reorder { exchange, priority }
            }
            kind::LEFT => Frame::Left { user: varint::take(value)?, connection: text(value)? },
            kind::WEIGHT => Frame::Weight { user: varint::take(value)?, hundredths: varint::take(value)? },
            kind::PUSH => Frame::Push { promise: varint::take(value)? },
            kind::DRAIN => Frame::Drain,
            kind::TUNNEL_OPENED => Frame::TunnelOpened,
            kind::URGENT => Frame::Urgent,
            kind::CLASS => Frame::Class(read_flags(value)?.0),
            kind::REQUEST => {
                let (exchange, user) = (varint::take(value)?, varint::take(value)?);
                let (class, priority, resumes) = read_flags(value)?;
                let resume = if resumes { Some(read_resume(value)?) } else { None };
                Frame::Request { exchange, user, class, priority, resume, section: rest(value) }
            }
            kind::MIRROR => Frame::Mirror(Word::Reset),
            kind::STORED => {
                let mut entries = Vec::new();
                while value.has_remaining() {
                    entries.push(read_entry(value)?);
                }
                Frame::Mirror(Word::Stored(entries))
            }
            kind::HOLDS => Frame::Mirror(Word::Holds(read_bodies(value)?)),
            kind::LACKS => Frame::Mirror(Word::Lacks(read_bodies(value)?)),
            kind::PATH => {
                let arriving = varint::take(value)?;
                Frame::Path(PathReport { arriving, lost: varint::take(value)? })
            }
            kind::DICTIONARY => Frame::Dictionary { hash: read_hash(value)?, length: varint::take(value)? },
            kind::EVICTED => {
                let mut numbers = Vec::new();
                while value.has_remaining() {
                    numbers.push(varint::take(value)?);
                }
                Frame::Mirror(Word::Evicted(numbers))
            }
            kind::VALIDATORS => {
                let mut all = Vec::new();
                while value.has_remaining() {
                    all.push(read_validators(value)?);
                }
                Frame::Mirror(Word::Validators(all))
            }
            kind::LOG => Frame::Mirror(Word::Log(read_position(value)?)),
            kind::HEARD => Frame::Heard(read_position(value)?),
            kind::SUMMARY => {
                let mut sums = Vec::new();
                while value.has_remaining() {
                    sums.push((value.remaining() >= 4).then(|| value.get_u32())?);
                }
                Frame::Mirror(Word::Summary(sums))
            }
            kind::DIFFER => {
                let (of, mut buckets) = (varint::take(value)?, Vec::new());
                while value.has_remaining() {
                    buckets.push(varint::take(value)?);
                }
                Frame::Differ { of, buckets }
            }
            kind::VALIDATING => {
                let (promise, entry) = (varint::take(value)?, varint::take(value)?);
                Frame::Validating(Validating { promise, entry, request: varint::take(value)? })
            }
            kind::TRAILERS => Frame::Trailers(rest(value)),
            kind::INFORMATIONAL => Frame::Informational(rest(value)),
            kind::RESPONSE => {
                let flags = byte(value)?;
                let coding = match flags >> 1 {
                    0 => Coding::Identity,
                    1 => Coding::Zstd,
                    2 => Coding::Dictionary(read_hash(value)?),
                    3 => Coding::Delta(read_hash(value)?),
                    4 => Coding::Brotli,
                    5 => Coding::Gzip,
                    _ => return None,
                };
                let resumed = if flags & 1 == 1 { Some(varint::take(value)?) } else { None };
                Frame::Response { coding, resumed, section: rest(value) }
            }
            kind::PROMISE => {
                let promise = varint::take(value)?;
                let (_, priority, _) = read_flags(value)?;
                Frame::Promise { promise, priority, section: rest(value) }
            }
            kind::FAILURE => {
                let side = match byte(value)? {
                    0 => Side::User,
                    1 => Side::Link,
                    _ => Side::Origin,
                };
                let status = (value.remaining() >= 2).then(|| value.get_u16())?;
                Frame::Failure(Failure { side, status, token: text(value)?, detail: text(value)? })
            }
            kind::TUNNEL => {
                let (tunnel, user) = (varint::take(value)?, varint::take(value)?);
                let (class, priority, names_client) = read_flags(value)?;
                let (host, port) = (text(value)?, port(value)?);
                let client = if names_client { Some(read_address(value)?) } else { None };
                let marked = priority.incremental;
                Frame::Tunnel(Tunnel { tunnel, user, class, host, port, client, marked })
            }
            _ => return None,
        })
    }
}

fn flags(class: Class, priority: Priority, resumes: bool) -> u8 {
    (class as u8) << 5 | (priority.urgency & 7) << 2 | u8::from(priority.incremental) << 1 | u8::from(resumes)
}

fn read_flags(value: &mut Bytes) -> Option<(Class, Priority, bool)> {
    let flags = byte(value)?;
    let priority = Priority { urgency: flags >> 2 & 7, incremental: flags & 2 == 2 };
    Some((Class::from_bits(flags >> 5), priority, flags & 1 == 1))
}

fn read_resume(value: &mut Bytes) -> Option<Resume> {
    let offset = varint::take(value)?;
    let prefix = (value.remaining() >= 32).then(|| value.split_to(32))?;
    Some(Resume { offset, prefix: <[u8; 32]>::try_from(&prefix[..]).ok()? })
}

fn read_pairs(value: &mut Bytes) -> Option<Vec<(u64, u64)>> {
    let mut pairs = Vec::new();
    while value.has_remaining() {
        pairs.push((varint::take(value)?, varint::take(value)?));
    }
    Some(pairs)
}

fn put_entry(entry: &Entry, out: &mut Vec<u8>) {
    varint::put(out, entry.number);
    varint::put(out, entry.user.map_or(0, |user| user + 1));
    out.push(entry.bound.bits());
    varint::put(out, entry.fresh_s.min(varint::MAX));
    out.put_u64(entry.fingerprint);
}

fn read_entry(value: &mut Bytes) -> Option<Entry> {
    let (number, user) = (varint::take(value)?, varint::take(value)?.checked_sub(1));
    let (bound, fresh_s) = (Bound::from_bits(byte(value)?)?, varint::take(value)?);
    let fingerprint = (value.remaining() >= 8).then(|| value.get_u64())?;
    Some(Entry { number, user, bound, fresh_s, fingerprint })
}

fn read_position(value: &mut Bytes) -> Option<Position> {
    Some(Position { log: varint::take(value)?, next: varint::take(value)? })
}

fn put_validators(validators: &Validators, out: &mut Vec<u8>) {
    varint::put(out, validators.number);
    codec::put_string(&validators.tag, out);
    varint::put(out, validators.modified.min(varint::MAX));
}

fn read_validators(value: &mut Bytes) -> Option<Validators> {
    let (number, tag) = (varint::take(value)?, codec::take_string(value).ok()?);
    Some(Validators { number, tag: tag.to_vec().into(), modified: varint::take(value)? })
}

fn put_body(body: &HeldBody, out: &mut Vec<u8>) {
    varint::put(out, body.user.map_or(0, |user| user + 1));
    out.extend_from_slice(&body.hash.0);
}

fn read_bodies(value: &mut Bytes) -> Option<Vec<HeldBody>> {
    let mut bodies = Vec::new();
    while value.has_remaining() {
        let user = varint::take(value)?.checked_sub(1);
        bodies.push(HeldBody { user, hash: read_hash(value)? });
    }
    Some(bodies)
}

fn read_hash(value: &mut Bytes) -> Option<BodyHash> {
    let hash = (value.remaining() >= BodyHash::LENGTH).then(|| value.split_to(BodyHash::LENGTH))?;
    Some(BodyHash(<[u8; BodyHash::LENGTH]>::try_from(&hash[..]).ok()?))
}

fn byte(value: &mut Bytes) -> Option<u8> {
    value.has_remaining().then(|| value.get_u8())
}

fn port(value: &mut Bytes) -> Option<u16> {
    (value.remaining() >= 2).then(|| value.get_u16())
}

/// The rest of the value: an address of either family.
fn read_address(value: &mut Bytes) -> Option<IpAddr> {
    let address = rest(value);
    let four = <[u8; 4]>::try_from(&address[..]).map(IpAddr::from);
    four.or_else(|_| <[u8; 16]>::try_from(&address[..]).map(IpAddr::from)).ok()
}

/// A number, and how many of those after it are meant as well.
fn run(value: &mut Bytes) -> Option<(u64, u64)> {
    let first = varint::take(value)?;
    Some((first, if value.has_remaining() { varint::take(value)? } else { 0 }))
}

fn text(value: &mut Bytes) -> Option<String> {
    String::from_utf8(codec::take_string(value).ok()?.to_vec()).ok()
}

fn rest(value: &mut Bytes) -> Bytes {
    value.split_to(value.remaining())
}
