//! One field section in bytes: instructions that copy, skip and patch the lines of a reference section
//! that both ends hold, lines of the built-in dictionary, and literal strings.
//!
//! An instruction is one byte, then its operands (docs/htotp.md, "Field sections"):
//! `1nnnnnnn` copy n+1 lines · `01nnnnnn` skip n+1 lines · `00iiiiii` i < 58: dictionary line i whole ·
//! 58: the reference's line at an index, wherever the cursor is · 59: dictionary line by varint ·
//! 60: a dictionary line's name with the reference's URL patched · 61: dictionary line patched ·
//! 62: the line at the cursor patched · 63: a literal name and value.
//! A patch is (prefix, suffix, string between).

use bytes::{Buf, Bytes};

use super::{Line, Lines, dictionary, huffman};
use crate::varint;

const SHORT_DICTIONARY: usize = 58;
const REFERENCE_LINE: u8 = 58;
const DICTIONARY: u8 = 59;
const URL_PATCH: u8 = 60;
const DICTIONARY_PATCH: u8 = 61;
const REFERENCE_PATCH: u8 = 62;
const LITERAL: u8 = 63;

/// Limits that an untrusted section may not pass: bytes of all names and values (plus 32 a line, as
/// RFC 9113 §6.5.2 counts), and lines.
#[derive(Debug, Clone, Copy)]
pub struct SectionLimit {
    /// Bytes of names and values, 32 more for each line.
    pub bytes: usize,
    /// Number of lines.
    pub lines: usize,
}

impl SectionLimit {
    /// True for a section that a peer with this limit takes.
    pub fn admits(&self, lines: &Lines) -> bool {
        lines.0.len() <= self.lines && lines.size() <= self.bytes
    }
}

impl Default for SectionLimit {
    fn default() -> Self {
        SectionLimit { bytes: 512 * 1024, lines: 2048 }
    }
}

/// Why bytes are no field section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SectionError {
    /// The bytes end inside an instruction.
    #[error("field section ends inside an instruction")]
    Truncated,
    /// An instruction refers past the end of its reference or of the dictionary.
    #[error("field section refers to a line that does not exist")]
    NoSuchLine,
    /// The reference is to a section that is not, or not any more, held.
    #[error("field section refers to a section that is not held")]
    NoSuchSection,
    /// A section is to be kept that is too long, under an id in use, or one too many.
    #[error("field section cannot be kept as asked")]
    CannotKeep,
    /// A patch keeps more of a value than there is.
    #[error("field section patches more than the value has")]
    BadPatch,
    /// A string is not in the string code.
    #[error("field section holds a string that is not in the code")]
    BadString,
    /// More bytes or lines than the limit.
    #[error("field section is larger than the limit")]
    TooLarge,
}

/// Lengths of the common beginning and, after it, the common end of two values.
pub fn shared_ends(a: &[u8], b: &[u8]) -> (usize, usize) {
    let prefix = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let suffix = a[prefix..].iter().rev().zip(b[prefix..].iter().rev()).take_while(|(x, y)| x == y).count();
    (prefix, suffix)
}

/// Writes `lines` against `reference` (empty when there is none).
pub fn encode(lines: &Lines, reference: &Lines, out: &mut Vec<u8>) {
    let url = reference.url();
    let mut cursor = 0;
    let mut copies = 0usize;
    for line in &lines.0 {
        let ahead = reference.0[cursor..].iter().position(|candidate| candidate.name == line.name);
        let Some(distance) = ahead else {
            flush_copies(&mut copies, out);
            let fresh = smallest_line(line, url.as_deref());
            // Browsers order some fields differently in navigations and in what follows.
            match reference.0[..cursor].iter().position(|held| held == line) {
                Some(index) if fresh.len() > 1 + varint::size(index as u64) => {
                    out.push(REFERENCE_LINE);
                    varint::put(out, index as u64);
                }
                _ => out.extend_from_slice(&fresh),
            }
            continue;
        };
        if distance > 0 {
            flush_copies(&mut copies, out);
            put_run(0x40, 64, distance, out);
            cursor += distance;
        }
        let held = &reference.0[cursor];
        cursor += 1;
        if held.value == line.value {
            copies += 1;
            continue;
        }
        flush_copies(&mut copies, out);
        let fresh = smallest_line(line, url.as_deref());
        let mut patched = vec![REFERENCE_PATCH];
        put_patch(&held.value, &line.value, &mut patched);
        if fresh.len() < patched.len() {
            // The line at the cursor is replaced: it is skipped first.
            put_run(0x40, 64, 1, out);
            out.extend_from_slice(&fresh);
        } else {
            out.extend_from_slice(&patched);
        }
    }
    flush_copies(&mut copies, out);
}

fn flush_copies(copies: &mut usize, out: &mut Vec<u8>) {
    put_run(0x80, 128, *copies, out);
    *copies = 0;
}

/// Writes a run of `count` as one or more bytes that each hold up to `most`.
fn put_run(tag: u8, most: usize, mut count: usize, out: &mut Vec<u8>) {
    while count > 0 {
        let run = count.min(most);
        out.push(tag | (run - 1) as u8);
        count -= run;
    }
}

fn put_whole(index: usize, out: &mut Vec<u8>) {
    if index < SHORT_DICTIONARY {
        out.push(index as u8);
    } else {
        out.push(DICTIONARY);
        varint::put(out, index as u64);
    }
}

/// The cheapest way to write a line that the reference does not help with, unless by its URL: a `Referer`
/// is mostly the URL of the head before.
fn smallest_line(line: &Line, url: Option<&[u8]>) -> Vec<u8> {
    let mut out = Vec::new();
    if let Some(index) = dictionary::whole(&line.name, &line.value) {
        put_whole(index, &mut out);
        return out;
    }
    let Some(index) = dictionary::nearest(&line.name, &line.value) else {
        out.push(LITERAL);
        put_string(&line.name, &mut out);
        put_string(&line.value, &mut out);
        return out;
    };
    out.push(DICTIONARY_PATCH);
    varint::put(&mut out, index as u64);
    put_patch(dictionary::LINES[index].1.as_bytes(), &line.value, &mut out);
    if let Some(url) = url {
        let mut by_url = vec![URL_PATCH];
        varint::put(&mut by_url, index as u64);
        put_patch(url, &line.value, &mut by_url);
        if by_url.len() < out.len() {
            return by_url;
        }
    }
    out
}

fn put_patch(held: &[u8], value: &[u8], out: &mut Vec<u8>) {
    let (prefix, suffix) = shared_ends(held, value);
    varint::put(out, prefix as u64);
    varint::put(out, suffix as u64);
    put_string(&value[prefix..value.len() - suffix], out);
}

/// A string: length in bytes doubled, plus one when it is in the string code.
pub(crate) fn put_string(text: &[u8], out: &mut Vec<u8>) {
    let coded = huffman::size(text);
    if coded < text.len() {
        varint::put(out, (coded as u64) << 1 | 1);
        huffman::encode(text, out);
    } else {
        varint::put(out, (text.len() as u64) << 1);
        out.extend_from_slice(text);
    }
}

pub(crate) fn take_string(input: &mut Bytes) -> Result<Bytes, SectionError> {
    let header = varint::take(input).ok_or(SectionError::Truncated)?;
    let length = usize::try_from(header >> 1).map_err(|_| SectionError::Truncated)?;
    if input.remaining() < length {
        return Err(SectionError::Truncated);
    }
    let raw = input.split_to(length);
    match header & 1 {
        0 => Ok(raw),
        _ => huffman::decode(&raw).map(Bytes::from).ok_or(SectionError::BadString),
    }
}

/// Reads a section that [`encode`] wrote against the same `reference`.
///
/// # Errors
/// The bytes are malformed or the section passes `limit`.
pub fn decode(mut input: Bytes, reference: &Lines, limit: SectionLimit) -> Result<Lines, SectionError> {
    let mut lines = Vec::new();
    let mut cursor = 0usize;
    let mut spent = 0usize;
    // Made once: a section may patch it a thousand times.
    let mut url = None;
    let mut keep = |lines: &mut Vec<Line>, line: Line| {
        spent += line.size();
        if spent > limit.bytes || lines.len() >= limit.lines {
            return Err(SectionError::TooLarge);
        }
        lines.push(line);
        Ok(())
    };
    while input.has_remaining() {
        let instruction = input.get_u8();
        match instruction {
            0x80.. => {
                let end = cursor + usize::from(instruction & 0x7f) + 1;
                let run = reference.0.get(cursor..end).ok_or(SectionError::NoSuchLine)?;
                for line in run {
                    keep(&mut lines, line.clone())?;
                }
                cursor = end;
            }
            0x40.. => {
                cursor += usize::from(instruction & 0x3f) + 1;
                if cursor > reference.0.len() {
                    return Err(SectionError::NoSuchLine);
                }
            }
            LITERAL => {
                let name = take_string(&mut input)?;
                let value = take_string(&mut input)?;
                keep(&mut lines, Line { name, value })?;
            }
            REFERENCE_PATCH => {
                let held = reference.0.get(cursor).ok_or(SectionError::NoSuchLine)?;
                cursor += 1;
                let value = take_patch(&mut input, &held.value, limit)?;
                keep(&mut lines, Line { name: held.name.clone(), value })?;
            }
            REFERENCE_LINE => {
                let index = varint::take(&mut input).ok_or(SectionError::Truncated)?;
                let index = usize::try_from(index).map_err(|_| SectionError::NoSuchLine)?;
                keep(&mut lines, reference.0.get(index).ok_or(SectionError::NoSuchLine)?.clone())?;
            }
            URL_PATCH => {
                let (name, _) = take_dictionary(&mut input)?;
                if url.is_none() {
                    url = reference.url();
                }
                let url = url.as_deref().ok_or(SectionError::NoSuchLine)?;
                let value = take_patch(&mut input, url, limit)?;
                keep(&mut lines, Line { name: Bytes::from_static(name.as_bytes()), value })?;
            }
            DICTIONARY_PATCH => {
                let (name, held) = take_dictionary(&mut input)?;
                let value = take_patch(&mut input, held.as_bytes(), limit)?;
                keep(&mut lines, Line { name: Bytes::from_static(name.as_bytes()), value })?;
            }
            _ => {
                let (name, value) = match instruction {
                    DICTIONARY => take_dictionary(&mut input)?,
                    index => dictionary::LINES[usize::from(index)],
                };
                let (name, value) = (name.as_bytes(), value.as_bytes());
                keep(&mut lines, Line { name: Bytes::from_static(name), value: Bytes::from_static(value) })?;
            }
        }
    }
    Ok(Lines(lines))
}

fn take_dictionary(input: &mut Bytes) -> Result<(&'static str, &'static str), SectionError> {
    let index = varint::take(input).ok_or(SectionError::Truncated)?;
    let index = usize::try_from(index).map_err(|_| SectionError::NoSuchLine)?;
    dictionary::LINES.get(index).copied().ok_or(SectionError::NoSuchLine)
}

fn take_patch(input: &mut Bytes, held: &[u8], limit: SectionLimit) -> Result<Bytes, SectionError> {
    let prefix = varint::take(input).ok_or(SectionError::Truncated)?;
    let suffix = varint::take(input).ok_or(SectionError::Truncated)?;
    let middle = take_string(input)?;
    if prefix.checked_add(suffix).is_none_or(|kept| kept > held.len() as u64) {
        return Err(SectionError::BadPatch);
    }
    let (prefix, suffix) = (prefix as usize, suffix as usize);
    if prefix + suffix + middle.len() > limit.bytes {
        return Err(SectionError::TooLarge);
    }
    Ok([&held[..prefix], &middle, &held[held.len() - suffix..]].concat().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines() -> impl Strategy<Value = Lines> {
        let name = prop_oneof![
            proptest::sample::select(vec![
                ":scheme",
                ":authority",
                ":path",
                "accept",
                "cookie",
                "referer",
                "etag",
                "x-own"
            ])
            .prop_map(String::from),
            "[a-z-]{1,12}"
        ];
        let value =
            prop_oneof!["[ -~]{0,40}", Just("*/*".to_string()), Just("http://site.test/a/b".to_string())];
        proptest::collection::vec((name, value), 0..20).prop_map(|all| {
            Lines(all.into_iter().map(|(n, v)| Line { name: n.into(), value: v.into() }).collect())
        })
    }

    proptest! {
        #[test]
        fn a_section_comes_back_whatever_its_reference(section in lines(), reference in lines()) {
            let mut out = Vec::new();
            encode(&section, &reference, &mut out);
            prop_assert_eq!(decode(out.into(), &reference, SectionLimit::default()), Ok(section));
        }

        #[test]
        fn any_bytes_decode_or_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300), reference in lines()) {
            let _ = decode(bytes.into(), &reference, SectionLimit { bytes: 4096, lines: 64 });
        }
    }

    #[test]
    fn an_equal_section_costs_one_byte() {
        let section = Lines(vec![Line::new("accept", "*/*"), Line::new("x-own", "value")]);
        let mut out = Vec::new();
        encode(&section, &section, &mut out);
        assert_eq!(out, [0x81]);
    }

    #[test]
    fn what_counts_against_the_limit_is_the_new_value_and_not_the_old() {
        let long = |letter: &str| Lines(vec![Line::new("x-own", &letter.repeat(3000))]);
        let mut out = Vec::new();
        encode(&long("b"), &long("a"), &mut out);
        let limit = SectionLimit { bytes: 4096, lines: 64 };
        assert_eq!(decode(out.into(), &long("a"), limit), Ok(long("b")));
    }

    #[test]
    fn a_section_beyond_its_limit_is_refused() {
        let section = Lines(vec![Line::new("x-own", &"v".repeat(5000))]);
        let mut out = Vec::new();
        encode(&section, &Lines::default(), &mut out);
        let limit = SectionLimit { bytes: 4096, lines: 64 };
        assert_eq!(decode(out.into(), &Lines::default(), limit), Err(SectionError::TooLarge));
    }
}
