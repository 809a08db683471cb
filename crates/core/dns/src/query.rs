//! A question: read from a client, and asked in the client's place.

use std::sync::Arc;

use crate::reader::Reader;
use crate::{DNSSEC_OK, HEADER, INTERNET, LEAST_UDP, MOST_UDP, OPT, code, flag};

/// Types that are no data (RFC 6895 §3.1) but `ANY`: transfers, and what is between two servers.
const META: std::ops::RangeInclusive<u16> = 128..=254;
/// RFC 6891 §6.1.2: name, type, class, TTL and length of an OPT without options.
const OPT_LENGTH: usize = 11;

/// What an answer depends on: the same for every client that asks so.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Wanted {
    /// As it crosses, in lower case.
    name: Arc<[u8]>,
    /// The type of record.
    pub kind: u16,
    /// Signatures are wanted (RFC 3225).
    pub dnssec_ok: bool,
    /// What does not bear its signatures is wanted, too (RFC 4035 §3.2.2).
    pub checking_disabled: bool,
}

/// A client's question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// The client's number for it.
    pub id: u16,
    /// What is asked.
    pub wanted: Wanted,
    /// The name as the client wrote it: its answer says it so (draft-vixie-dnsext-dns0x20).
    name: Box<[u8]>,
    flags: u16,
    /// Bytes that the client takes over UDP, if it speaks EDNS.
    edns: Option<usize>,
}

impl Query {
    /// Reads what a client has sent.
    ///
    /// # Errors
    /// The refusal to answer with; none for what is no question at all.
    pub fn read(message: &[u8]) -> Result<Query, Option<Vec<u8>>> {
        let mut reader = Reader { message, at: 0 };
        let mut word = || reader.u16().ok_or(None::<Vec<u8>>);
        let (id, flags) = (word()?, word()?);
        let counts = [word()?, word()?, word()?, word()?];
        if flags & flag::RESPONSE != 0 {
            return Err(None);
        }
        let bare = |code| Err(Some(header(id, flags, code, 0).to_vec()));
        if flags & flag::OPCODE != 0 {
            return bare(code::NOT_IMPLEMENTED);
        }
        match Query::body(id, flags, counts, reader) {
            // Its own form is right, and there is no such network here: FORMERR has clients try without EDNS.
            Some((_, class, _)) if class != INTERNET => bare(code::NOT_IMPLEMENTED),
            Some((query, _, 0)) if META.contains(&query.wanted.kind) || query.wanted.kind == OPT => {
                Err(Some(query.refuse(code::NOT_IMPLEMENTED)))
            }
            // Without it only what is held would be told, and so who has asked for what.
            Some((query, _, 0)) if flags & flag::RECURSION_DESIRED == 0 => {
                Err(Some(query.refuse(code::REFUSED)))
            }
            Some((query, _, 0)) => Ok(query),
            // RFC 6891 §6.1.3.
            Some((query, ..)) => Err(Some(query.refuse(code::BAD_VERSION))),
            None => bare(code::FORMAT_ERROR),
        }
    }

    /// The rest of a message, the class that it asks in, and the version of EDNS.
    fn body(id: u16, flags: u16, counts: [u16; 4], mut reader: Reader<'_>) -> Option<(Query, u16, u8)> {
        let [1, 0, 0, more] = counts else { return None };
        let name = reader.name()?;
        let (kind, class) = (reader.u16()?, reader.u16()?);
        let (mut edns, mut dnssec_ok, mut version) = (None, false, 0);
        for _ in 0..more {
            let record = reader.record()?;
            if record.kind == OPT {
                // RFC 6891 §6.1.1: one, and its name is the root's.
                (edns.is_none() && record.is_root).then_some(())?;
                edns = Some(usize::from(record.class).clamp(LEAST_UDP, MOST_UDP));
                dnssec_ok = record.ttl & DNSSEC_OK != 0;
                version = (record.ttl >> 16) as u8;
            }
        }
        (reader.at == reader.message.len()).then_some(())?;
        let checking_disabled = flags & flag::CHECKING_DISABLED != 0;
        let wanted = Wanted { name: name.to_ascii_lowercase().into(), kind, dnssec_ok, checking_disabled };
        Some((Query { id, wanted, name: name.into(), flags, edns }, class, version))
    }

    /// Bytes that an answer over UDP may have.
    pub fn most_udp(&self) -> usize {
        self.edns.unwrap_or(LEAST_UDP)
    }

    /// The client is told whether an answer's signatures were found right (RFC 6840 §5.7).
    pub(crate) fn asks_authentic(&self) -> bool {
        self.wanted.dnssec_ok || self.flags & flag::AUTHENTIC != 0
    }

    /// An answer that says nothing but this code.
    pub fn refuse(&self, code: u16) -> Vec<u8> {
        self.begin(flag::RECURSION_AVAILABLE, code, 1)
    }

    /// Header, question and EDNS of an answer without records.
    pub(crate) fn begin(&self, flags: u16, code: u16, questions: u16) -> Vec<u8> {
        let mut reply = header(self.id, self.flags, code, flags).to_vec();
        reply[5] = questions as u8;
        self.wanted.put_question(&self.name, &mut reply);
        self.put_edns(code, &mut reply);
        reply
    }

    /// RFC 6891 §7: who asks with OPT is answered with OPT, and nobody else.
    pub(crate) fn put_edns(&self, code: u16, reply: &mut Vec<u8>) {
        if self.edns.is_some() {
            put_opt(code, self.wanted.dnssec_ok, reply);
        }
    }

    /// Bytes that [`Query::put_edns`] adds.
    pub(crate) fn edns_length(&self) -> usize {
        if self.edns.is_some() { OPT_LENGTH } else { 0 }
    }

    /// The name as the client wrote it.
    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    /// What an answer's header takes over from the question: the number, and these bits.
    pub(crate) fn own_flags(&self) -> u16 {
        self.flags & (flag::RECURSION_DESIRED | flag::CHECKING_DISABLED)
    }
}

impl Wanted {
    /// The question in a message that has nothing of whoever asks it.
    pub fn to_message(&self, id: u16) -> Vec<u8> {
        let disabled = if self.checking_disabled { flag::CHECKING_DISABLED } else { 0 };
        // RFC 6840 §5.7: `AD` in a question asks for `AD` in its answer.
        let flags = flag::RECURSION_DESIRED | flag::AUTHENTIC | disabled;
        let mut message = [id, flags, 1, 0, 0, 0].map(u16::to_be_bytes).concat();
        self.put_question(&self.name, &mut message);
        put_opt(code::NO_ERROR, self.dnssec_ok, &mut message);
        message
    }

    /// The name as people write it, without its last dot; bytes that are none of a host's name as `\DDD` (RFC 1035 §5.1).
    pub fn name(&self) -> String {
        let (mut text, mut at) = (String::new(), 0);
        while let Some(length) =
            self.name.get(at).map(|length| usize::from(*length)).filter(|length| *length > 0)
        {
            if !text.is_empty() {
                text.push('.');
            }
            for byte in &self.name[at + 1..=at + length] {
                match byte {
                    b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => text.push(char::from(*byte)),
                    other => text.push_str(&format!("\\{other:03}")),
                }
            }
            at += 1 + length;
        }
        text
    }

    /// Whether a question as it stands in an answer is this one.
    pub(crate) fn is(&self, name: &[u8], kind: u16, class: u16) -> bool {
        self.name.eq_ignore_ascii_case(name) && (self.kind, INTERNET) == (kind, class)
    }

    /// Bytes in memory, about.
    pub(crate) fn size(&self) -> usize {
        self.name.len() + size_of::<Self>()
    }

    fn put_question(&self, name: &[u8], message: &mut Vec<u8>) {
        message.extend_from_slice(name);
        message.extend_from_slice(&self.kind.to_be_bytes());
        message.extend_from_slice(&INTERNET.to_be_bytes());
    }
}

/// A header without records, of an answer to what had these flags.
fn header(id: u16, asked: u16, code: u16, flags: u16) -> [u8; HEADER] {
    let taken_over = asked & (flag::OPCODE | flag::RECURSION_DESIRED | flag::CHECKING_DISABLED);
    let mut header = [0; HEADER];
    header[..2].copy_from_slice(&id.to_be_bytes());
    header[2..4].copy_from_slice(&(flag::RESPONSE | taken_over | flags | code & 0xf).to_be_bytes());
    header
}

/// Adds an OPT without options, and counts it.
fn put_opt(code: u16, dnssec_ok: bool, message: &mut Vec<u8>) {
    let count = u16::from_be_bytes([message[10], message[11]]).saturating_add(1);
    message[10..HEADER].copy_from_slice(&count.to_be_bytes());
    message.push(0);
    message.extend_from_slice(&OPT.to_be_bytes());
    message.extend_from_slice(&(MOST_UDP as u16).to_be_bytes());
    let dnssec_ok = if dnssec_ok { DNSSEC_OK } else { 0 };
    message.extend_from_slice(&(u32::from(code >> 4) << 24 | dnssec_ok).to_be_bytes());
    message.extend_from_slice(&[0, 0]);
}
