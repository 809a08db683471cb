//! Stapled OCSP responses (RFC 6960, RFC 6066 §8): what the issuer, or whoever it lets speak for it, says of a
//! certificate. A response that can't be read, is not the issuer's, or is out of date says nothing ([`Silence`]). Pure.

mod read;

pub(super) use read::Status;
use read::{Answer, Basic, CertId};
use ring::digest;
use rustls::pki_types::{
    CertificateDer, Der, SignatureVerificationAlgorithm, SubjectPublicKeyInfoDer, TrustAnchor, UnixTime,
};
use webpki::{EndEntityCert, KeyUsage, RawPublicKeyEntity, VerifiedPath};
use x509_parser::asn1_rs::{Any, FromDer, Tag, ToDer};
use x509_parser::x509::SubjectPublicKeyInfo;

/// id-kp-OCSPSigning, as it is encoded.
const OCSP_SIGNING: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 9];

/// How far ahead of this machine's clock a responder's may be, in seconds.
const SKEW: u64 = 300;
/// How long a word counts that does not say so, in seconds: newer word could be had at any time. As NSS has it.
const DAY: u64 = 86_400;

type Algorithms = &'static [&'static dyn SignatureVerificationAlgorithm];

/// What `stapled` proves of the certificate at the end of `path`, at worst.
///
/// # Errors
/// It proves nothing.
pub(super) fn word(
    stapled: &[u8],
    path: &VerifiedPath<'_>,
    algorithms: Algorithms,
    now: UnixTime,
) -> Result<Status, Silence> {
    let issuer = Issuer::of(path).ok_or(Silence::Anothers)?;
    let basic = Basic::read(stapled).ok_or(Silence::Unreadable)?;
    if !issuer.has_signed(&basic, algorithms, now) {
        return Err(Silence::Anothers);
    }
    let serial = path.end_entity().serial();
    let mut answers = basic.answers().ok_or(Silence::Unreadable)?;
    answers.retain(|answer| issuer.is_asked_about(&answer.id, serial));
    let mut word: Result<Status, _> = Err(Silence::AboutAnother);
    for answer in answers {
        // The worst of those that count, or why none does.
        word = match (word, current(&answer, now.as_secs())) {
            (Ok(before), Ok(status)) => Ok(before.max(status)),
            (Ok(before), Err(_)) => Ok(before),
            (Err(_), found) => found,
        };
    }
    word
}

/// Why a stapled response says nothing of the certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Silence {
    /// Or the responder had no word to give.
    Unreadable,
    /// Neither the issuer nor whoever it lets speak for it has signed it.
    Anothers,
    AboutAnother,
    OutOfDate,
    OfTheFuture,
}

/// RFC 6960 §3.2, 5 and 6. A revocation stays one, however old the word of it is.
fn current(answer: &Answer<'_>, now: u64) -> Result<Status, Silence> {
    let until = answer.next_update.unwrap_or_else(|| answer.this_update.saturating_add(DAY));
    match answer.status {
        _ if answer.this_update > now.saturating_add(SKEW) => Err(Silence::OfTheFuture),
        Status::Good | Status::Unknown if now >= until => Err(Silence::OutOfDate),
        status => Ok(status),
    }
}

/// Whether `verify` accepts the signature by an algorithm that it can be of.
fn is_signed(
    basic: &Basic<'_>,
    algorithms: Algorithms,
    verify: impl Fn(&dyn SignatureVerificationAlgorithm, &[u8], &[u8]) -> Result<(), webpki::Error>,
) -> bool {
    let mut named = algorithms.iter().filter(|one| one.signature_alg_id().as_ref() == basic.algorithm);
    named.any(|&one| verify(one, basic.signed, basic.signature).is_ok())
}

/// Who issued the certificate in question.
struct Issuer {
    /// Its name, with the outer header.
    name: Vec<u8>,
    /// Its key as it stands in certificates.
    key: SubjectPublicKeyInfoDer<'static>,
    anchor: TrustAnchor<'static>,
}

impl Issuer {
    fn of(path: &VerifiedPath<'_>) -> Option<Issuer> {
        let (subject, key) = match path.intermediate_certificates().next() {
            Some(issuer) => {
                let key = issuer.subject_public_key_info();
                (issuer.subject().to_vec(), Any::from_der(&key).ok()?.1.data.to_vec())
            }
            None => (path.anchor().subject.to_vec(), path.anchor().subject_public_key_info.to_vec()),
        };
        let name = sequence(&subject)?;
        let whole_key = SubjectPublicKeyInfoDer::from(sequence(&key)?);
        let anchor = TrustAnchor {
            subject: Der::from(subject),
            subject_public_key_info: Der::from(key),
            name_constraints: None,
        };
        Some(Issuer { name, key: whole_key, anchor })
    }

    /// RFC 6960 §4.2.2.2: signed by the issuer itself, or by one whom it has given a certificate for just that.
    fn has_signed(&self, basic: &Basic<'_>, algorithms: Algorithms, now: UnixTime) -> bool {
        let itself = RawPublicKeyEntity::try_from(&self.key).is_ok_and(|key| {
            is_signed(basic, algorithms, |algorithm, data, signature| {
                key.verify_signature(algorithm, data, signature)
            })
        });
        let by_another = |der: &&[u8]| {
            let der = CertificateDer::from(*der);
            EndEntityCert::try_from(&der).is_ok_and(|responder| {
                self.lets_respond(&responder, algorithms, now)
                    && is_signed(basic, algorithms, |algorithm, data, signature| {
                        responder.verify_signature(algorithm, data, signature)
                    })
            })
        };
        itself || basic.certificates.iter().any(by_another)
    }

    fn lets_respond(&self, responder: &EndEntityCert<'_>, algorithms: Algorithms, now: UnixTime) -> bool {
        let anchors = std::slice::from_ref(&self.anchor);
        let usage = KeyUsage::required(OCSP_SIGNING);
        responder.verify_for_usage(algorithms, anchors, &[], now, usage, None, None).is_ok()
    }

    /// Whether `id` is that of the certificate with this serial number that this issuer has issued.
    fn is_asked_about(&self, id: &CertId<'_>, serial: &[u8]) -> bool {
        let algorithm = match id.hash.as_str() {
            "1.3.14.3.2.26" => &digest::SHA1_FOR_LEGACY_USE_ONLY,
            "2.16.840.1.101.3.4.2.1" => &digest::SHA256,
            "2.16.840.1.101.3.4.2.2" => &digest::SHA384,
            "2.16.840.1.101.3.4.2.3" => &digest::SHA512,
            _ => return false,
        };
        let Ok((_, key)) = SubjectPublicKeyInfo::from_der(&self.key) else { return false };
        let is = |given: &[u8], bytes: &[u8]| given == digest::digest(algorithm, bytes).as_ref();
        id.serial == serial
            && is(id.issuer_name, &self.name)
            && is(id.issuer_key, &key.subject_public_key.data)
    }
}

/// `contents` as a SEQUENCE.
fn sequence(contents: &[u8]) -> Option<Vec<u8>> {
    Any::from_tag_and_data(Tag::Sequence, contents).to_der_vec().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_good_word_counts_until_there_is_to_be_another_or_for_a_day_and_a_revocation_for_ever() {
        const THEN: u64 = 1_704_067_200;
        let counts = |status, next_update, now| {
            let id = CertId { hash: String::new(), issuer_name: b"", issuer_key: b"", serial: b"" };
            current(&Answer { id, status, this_update: THEN, next_update }, now).is_ok()
        };
        let week = Some(THEN + 7 * DAY);
        for (next_update, until) in [(week, THEN + 7 * DAY), (None, THEN + DAY)] {
            for status in [Status::Good, Status::Unknown] {
                assert!(counts(status, next_update, until - 1) && !counts(status, next_update, until));
            }
            assert!(counts(Status::Revoked, next_update, until + 1000 * DAY));
            // The responder's clock may be a little ahead, and no more.
            for status in [Status::Good, Status::Revoked] {
                assert!(counts(status, next_update, THEN - SKEW));
                assert!(!counts(status, next_update, THEN - SKEW - 1));
            }
        }
    }
}
