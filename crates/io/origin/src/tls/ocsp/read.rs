//! Reads OCSP responses (RFC 6960 §4.2.1) without losing the bytes that are signed. Pure; what is not as it should be
//! reads as `None`.

use x509_parser::asn1_rs::{Any, Class, FromDer, GeneralizedTime, Oid, Tag};

/// id-pkix-ocsp-basic
const BASIC: &str = "1.3.6.1.5.5.7.48.1.1";
/// Certificates of a response that are looked at.
const RESPONDERS: usize = 4;

/// BasicOCSPResponse.
pub(super) struct Basic<'a> {
    /// The part that is signed, as it stands.
    pub(super) signed: &'a [u8],
    /// The signature's algorithm, without the outer header.
    pub(super) algorithm: &'a [u8],
    pub(super) signature: &'a [u8],
    pub(super) certificates: Vec<&'a [u8]>,
}

/// How it stands with a certificate (RFC 6960 §2.2), the worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::tls) enum Status {
    Good,
    /// Whoever answers does not know it.
    Unknown,
    Revoked,
}

/// What a response says of one certificate.
pub(super) struct Answer<'a> {
    pub(super) id: CertId<'a>,
    pub(super) status: Status,
    /// Seconds since 1970.
    pub(super) this_update: u64,
    /// Seconds since 1970.
    pub(super) next_update: Option<u64>,
}

/// Which certificate.
pub(super) struct CertId<'a> {
    /// The hash algorithm, in dots.
    pub(super) hash: String,
    pub(super) issuer_name: &'a [u8],
    pub(super) issuer_key: &'a [u8],
    pub(super) serial: &'a [u8],
}

impl<'a> Basic<'a> {
    /// Out of an OCSPResponse that was successful.
    pub(super) fn read(mut response: &'a [u8]) -> Option<Basic<'a>> {
        let mut response = universal(&mut response, Tag::Sequence)?;
        let status = universal(&mut response, Tag::Enumerated)?;
        let mut bytes = explicit(&mut response, 0)?;
        let mut bytes = universal(&mut bytes, Tag::Sequence)?;
        let kind = Oid::new(universal(&mut bytes, Tag::Oid)?.into());
        if status != [0] || kind.to_id_string() != BASIC {
            return None;
        }
        let mut basic = universal(&mut bytes, Tag::OctetString)?;
        let mut basic = universal(&mut basic, Tag::Sequence)?;
        let signed = whole(&mut basic)?;
        let algorithm = universal(&mut basic, Tag::Sequence)?;
        // The first byte counts the bits that the last one has too many; signatures have none.
        let signature = universal(&mut basic, Tag::BitString)?.strip_prefix(&[0])?;
        let mut certificates = Vec::new();
        if let Some(mut list) = explicit(&mut basic, 0) {
            let mut list = universal(&mut list, Tag::Sequence)?;
            while certificates.len() < RESPONDERS && !list.is_empty() {
                certificates.push(whole(&mut list)?);
            }
        }
        Some(Basic { signed, algorithm, signature, certificates })
    }

    /// What the signed part, a ResponseData, says.
    pub(super) fn answers(&self) -> Option<Vec<Answer<'a>>> {
        let mut rest = self.signed;
        let mut data = universal(&mut rest, Tag::Sequence)?;
        explicit(&mut data, 0); // the version, if it is said
        explicit(&mut data, 1).or_else(|| explicit(&mut data, 2))?; // who answers is seen from the signature
        universal(&mut data, Tag::GeneralizedTime)?;
        let mut list = universal(&mut data, Tag::Sequence)?;
        let mut answers = Vec::new();
        while !list.is_empty() {
            answers.push(Answer::read(universal(&mut list, Tag::Sequence)?)?);
        }
        Some(answers)
    }
}

impl<'a> Answer<'a> {
    /// SingleResponse.
    fn read(mut answer: &'a [u8]) -> Option<Answer<'a>> {
        let id = CertId::read(universal(&mut answer, Tag::Sequence)?)?;
        let choice = element(&mut answer)?.header;
        let status = match choice.tag() {
            _ if choice.class() != Class::ContextSpecific => return None,
            Tag(0) => Status::Good,
            Tag(1) => Status::Revoked,
            _ => Status::Unknown,
        };
        let this_update = time(&mut answer)?;
        let next_update = match explicit(&mut answer, 0) {
            Some(mut next) => Some(time(&mut next)?),
            None => None,
        };
        Some(Answer { id, status, this_update, next_update })
    }
}

impl<'a> CertId<'a> {
    fn read(mut id: &'a [u8]) -> Option<CertId<'a>> {
        let mut algorithm = universal(&mut id, Tag::Sequence)?;
        let hash = Oid::new(universal(&mut algorithm, Tag::Oid)?.into()).to_id_string();
        let issuer_name = universal(&mut id, Tag::OctetString)?;
        let issuer_key = universal(&mut id, Tag::OctetString)?;
        let serial = universal(&mut id, Tag::Integer)?;
        Some(CertId { hash, issuer_name, issuer_key, serial })
    }
}

/// Takes the next element off `input`.
fn element<'a>(input: &mut &'a [u8]) -> Option<Any<'a>> {
    let (rest, element) = Any::from_der(input).ok()?;
    *input = rest;
    Some(element)
}

/// Takes the next element off `input`, header and all.
fn whole<'a>(input: &mut &'a [u8]) -> Option<&'a [u8]> {
    let before = *input;
    element(input)?;
    Some(&before[..before.len() - input.len()])
}

/// Takes the contents of the next element off `input`, which is of this type.
fn universal<'a>(input: &mut &'a [u8], tag: Tag) -> Option<&'a [u8]> {
    let element = element(input)?;
    (element.header.class() == Class::Universal && element.header.tag() == tag).then_some(element.data)
}

/// Takes the contents of the next element off `input` if it has this number.
fn explicit<'a>(input: &mut &'a [u8], number: u32) -> Option<&'a [u8]> {
    let mut rest = *input;
    let element = element(&mut rest)?;
    let is = element.header.class() == Class::ContextSpecific && element.header.tag() == Tag(number);
    is.then(|| {
        *input = rest;
        element.data
    })
}

/// Takes a GeneralizedTime off `input`, in seconds since 1970.
fn time(input: &mut &[u8]) -> Option<u64> {
    let (rest, time) = GeneralizedTime::from_der(input).ok()?;
    *input = rest;
    u64::try_from(time.utc_datetime().ok()?.unix_timestamp()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tlv(tag: u8, contents: &[&[u8]]) -> Vec<u8> {
        let contents = contents.concat();
        let length = contents.len();
        let head: &[u8] = if length < 0x80 { &[length as u8] } else { &[0x81, length as u8] };
        [&[tag], head, &contents].concat()
    }

    /// A response about two certificates: number 7 is revoked, number 8 is good.
    fn response() -> Vec<u8> {
        let time = |year: &str| tlv(0x18, &[year.as_bytes(), b"0101000000Z"]);
        let answer = |serial, status: &[u8], next: &[u8]| {
            let algorithm = tlv(0x30, &[&tlv(6, &[&[0x2b, 14, 3, 2, 26]]), &[5, 0]]);
            let id = tlv(0x30, &[&algorithm, &tlv(4, &[b"name"]), &tlv(4, &[b"key"]), &tlv(2, &[&[serial]])]);
            tlv(0x30, &[&id, status, &time("2024"), next])
        };
        let revoked = answer(7, &tlv(0xa1, &[&time("2023")]), &tlv(0xa0, &[&time("2025")]));
        let answers = tlv(0x30, &[&revoked, &answer(8, &[0x80, 0], b"")]);
        let data = tlv(0x30, &[&tlv(0xa2, &[&tlv(4, &[b"key"])]), &time("2024"), &answers]);
        let basic = tlv(0x30, &[&data, &tlv(0x30, &[b"\x06\x01\x2a"]), &tlv(3, &[b"\0signature"])]);
        let kind = tlv(6, &[&[0x2b, 6, 1, 5, 5, 7, 0x30, 1, 1]]);
        let bytes = tlv(0x30, &[&kind, &tlv(4, &[&basic])]);
        tlv(0x30, &[&tlv(10, &[&[0]]), &tlv(0xa0, &[&bytes])])
    }

    #[test]
    fn a_response_is_read() {
        let bytes = response();
        let basic = Basic::read(&bytes).unwrap();
        assert_eq!((basic.algorithm, basic.signature), (&b"\x06\x01\x2a"[..], &b"signature"[..]));
        assert!(basic.certificates.is_empty());
        let answers = basic.answers().unwrap();
        let said: Vec<_> =
            answers.iter().map(|answer| (answer.id.serial, answer.status, answer.next_update)).collect();
        assert_eq!(said, [(&[7][..], Status::Revoked, Some(1_735_689_600)), (&[8][..], Status::Good, None)]);
        let id = &answers[0].id;
        assert_eq!(
            (id.hash.as_str(), id.issuer_name, id.issuer_key),
            ("1.3.14.3.2.26", &b"name"[..], &b"key"[..])
        );
        assert_eq!(answers[0].this_update, 1_704_067_200);
    }

    #[test]
    fn whatever_is_changed_or_cut_it_reads_or_does_not() {
        let whole = response();
        for at in 0..whole.len() {
            assert!(Basic::read(&whole[..at]).is_none(), "cut at {at}");
            for value in 0..=u8::MAX {
                let mut bytes = whole.clone();
                bytes[at] = value;
                // Neither panics.
                let _ = Basic::read(&bytes).and_then(|basic| basic.answers());
            }
        }
    }
}
