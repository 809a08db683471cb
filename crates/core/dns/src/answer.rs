//! An answer, kept as it came but for what is between two neighbours.

use std::net::IpAddr;

use crate::query::{Query, Wanted};
use crate::reader::Reader;
use crate::{HEADER, OPT, SOA, code, flag};

/// RFC 8767 §4 caps what is kept at days, RFC 2308 §5 what does not exist at hours.
const LONGEST: u32 = 24 * 3600;
const LONGEST_DENIAL: u32 = 3 * 3600;

/// What a name server has said, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Without its OPT, which is between it and whom it answered.
    message: Vec<u8>,
    /// Where each record's TTL stands.
    ttls: Vec<usize>,
    /// The response code, with the bits that OPT had of it.
    pub code: u16,
    /// Seconds for which it may be kept, if it may.
    pub lifetime: Option<u32>,
    /// Some of it did not fit.
    pub is_truncated: bool,
}

impl Answer {
    /// Reads an answer to this question with this number; `None` for what is none.
    pub fn read(message: &[u8], id: u16, wanted: &Wanted) -> Option<Answer> {
        let mut reader = Reader { message, at: 0 };
        let (own, flags) = (reader.u16()?, reader.u16()?);
        let counts = [reader.u16()?, reader.u16()?, reader.u16()?, reader.u16()?];
        let is_answer = flags & (flag::RESPONSE | flag::OPCODE) == flag::RESPONSE;
        (own == id && is_answer && counts[0] == 1).then_some(())?;
        let (name, kind, class) = (reader.name()?, reader.u16()?, reader.u16()?);
        wanted.is(name, kind, class).then_some(())?;
        let (mut code, is_truncated) = (flags & 0xf, flags & flag::TRUNCATED != 0);
        let (mut ttls, mut denial, mut ends, mut additional) = (Vec::new(), None, None, 0);
        for (section, count) in counts.into_iter().enumerate().skip(1) {
            for _ in 0..count {
                let record = reader.record()?;
                if record.kind == OPT {
                    code |= (record.ttl >> 24 << 4) as u16;
                    // What follows may be left out (RFC 2181 §9), so that nothing points past it.
                    ends = ends.or(Some(record.starts));
                } else if ends.is_none() {
                    ttls.push((record.ttl_at, seconds(record.ttl)));
                    additional += u16::from(section == 3);
                    if section == 2 && record.kind == SOA {
                        // RFC 2308 §5: what is denied is denied for this long.
                        let minimum = message[record.data].last_chunk::<4>()?;
                        denial = Some(seconds(u32::from_be_bytes(*minimum)).min(LONGEST_DENIAL));
                    }
                }
            }
        }
        (reader.at == message.len()).then_some(())?;
        let least = ttls.iter().map(|(_, ttl)| *ttl).min();
        let least = least.map(|least| least.min(denial.unwrap_or(LONGEST)).min(LONGEST));
        let may_be_kept = match code {
            _ if is_truncated => false,
            code::NO_ERROR => counts[1] > 0 || denial.is_some(),
            // Without SOA nobody knows for how long.
            code::NAME_ERROR => denial.is_some(),
            _ => false,
        };
        let mut message = message[..ends.unwrap_or(message.len())].to_vec();
        message[10..HEADER].copy_from_slice(&additional.to_be_bytes());
        let ttls = ttls.into_iter().map(|(at, _)| at).collect();
        let lifetime = least.filter(|least| may_be_kept && *least > 0);
        Some(Answer { message, ttls, code, lifetime, is_truncated })
    }

    /// The answer to `query`, of which this much time has passed, in at most so many bytes: what is longer is to be asked for
    /// over TCP.
    pub fn reply(&self, query: &Query, age_s: u32, most: usize) -> Vec<u8> {
        let said = u16::from_be_bytes([self.message[2], self.message[3]]);
        let authentic = if query.asks_authentic() { said & flag::AUTHENTIC } else { 0 };
        let flags = flag::RECURSION_AVAILABLE | authentic;
        if self.message.len() + query.edns_length() > most {
            return query.begin(flags | flag::TRUNCATED, self.code, 1);
        }
        let mut reply = self.message.clone();
        reply[..2].copy_from_slice(&query.id.to_be_bytes());
        let truncated = said & flag::TRUNCATED;
        // Without AA: who keeps an answer is not its source.
        let flags = flag::RESPONSE | flags | truncated | query.own_flags() | self.code & 0xf;
        reply[2..4].copy_from_slice(&flags.to_be_bytes());
        reply[HEADER..HEADER + query.name().len()].copy_from_slice(query.name());
        for at in &self.ttls {
            // Where it was read as one.
            let Some(ttl) = reply.get_mut(*at..at + 4).and_then(|ttl| ttl.first_chunk_mut::<4>()) else {
                continue;
            };
            *ttl = seconds(u32::from_be_bytes(*ttl)).min(LONGEST).saturating_sub(age_s).to_be_bytes();
        }
        query.put_edns(self.code, &mut reply);
        reply
    }

    /// The addresses that it has for what was asked.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        let answers = u16::from_be_bytes([self.message[6], self.message[7]]);
        self.ttls.iter().take(answers.into()).filter_map(|at| {
            // RFC 1035 §3.2.1: kind and class before the TTL, then the length and what it is of.
            let kind = self.message.get(at - 4..*at)?;
            let data = self.message.get(at + 6..)?;
            match (kind, self.message.get(at + 4..at + 6)?) {
                ([0, 1, 0, 1], [0, 4]) => data.first_chunk::<4>().map(|it| IpAddr::from(*it)),
                ([0, 28, 0, 1], [0, 16]) => data.first_chunk::<16>().map(|it| IpAddr::from(*it)),
                _ => None,
            }
        })
    }

    /// Bytes in memory, about.
    pub(crate) fn size(&self) -> usize {
        self.message.len() + self.ttls.len() * size_of::<usize>() + size_of::<Self>()
    }
}

/// RFC 2181 §8: with its highest bit set it is none.
fn seconds(ttl: u32) -> u32 {
    if ttl >> 31 == 1 { 0 } else { ttl }
}
