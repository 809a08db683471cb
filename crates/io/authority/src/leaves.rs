//! Certificates for the hosts whose TLS is answered here: made when first asked for, short-lived, kept for a while. So is the
//! key that they share: whoever gets hold of it can pose as those hosts until it is two weeks old.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
    SanType,
};
use rustls::crypto::ring::sign::any_ecdsa_type;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::sign::{CertifiedKey, SigningKey};

use crate::authority::{Authority, serial};
use crate::cache::Cache;
use crate::error::AuthorityError;
use crate::subject::Subject;

const DAY: Duration = Duration::from_secs(86_400);
/// How far a leaf's validity begins before it is made, for clocks that run behind.
const BACKDATED: Duration = Duration::from_secs(7 * 86_400);
/// How long its leaves are valid from a key's birth on.
const LIFETIME: Duration = Duration::from_secs(14 * 86_400);
/// How long a key and its leaves are given out: whatever is given out is valid for a week more, for connections that last
/// and for clocks that run ahead.
const GIVEN_OUT: Duration = Duration::from_secs(7 * 86_400);
/// Leaves kept, at about 1 KB each.
const KEPT: usize = 4096;

/// Gives out leaf certificates of one CA, all of them of one key until it is a week old.
pub struct Leaves {
    current: Mutex<Current>,
}

/// A CA, the key of its leaves, and what is kept of these.
struct Current {
    authority: Arc<Authority>,
    key: Arc<Key>,
    kept: Cache<Subject, Leaf>,
}

/// The key that leaves share: not the CA's, so that what handles users' connections can do no more than pose as those
/// hosts for some days. Connections that use it when another takes its place keep it to their end.
struct Key {
    pair: KeyPair,
    signing: Arc<dyn SigningKey>,
    born: SystemTime,
}

#[derive(Clone)]
struct Leaf {
    certified: Arc<CertifiedKey>,
    /// When it is given out, within the time of its key. Outside of it, also because the clock was set, a new one is made.
    given_out: Range<SystemTime>,
}

impl Leaves {
    /// Leaves of `authority`, and the first key for them.
    ///
    /// # Errors
    /// The system has no randomness to give.
    pub fn new(authority: Arc<Authority>) -> Result<Leaves, AuthorityError> {
        Leaves::new_at(authority, SystemTime::now())
    }

    fn new_at(authority: Arc<Authority>, now: SystemTime) -> Result<Leaves, AuthorityError> {
        Ok(Leaves { current: Mutex::new(Current::new(authority, now)?) })
    }

    /// The CA they are from.
    pub fn authority(&self) -> Arc<Authority> {
        Arc::clone(&self.current().authority)
    }

    /// Gives out leaves of `authority`, of another key, from now on, as after a rotation.
    ///
    /// # Errors
    /// The system has no randomness to give. All is as before then.
    pub fn renew(&self, authority: Arc<Authority>) -> Result<(), AuthorityError> {
        let renewed = Current::new(authority, SystemTime::now())?;
        *self.current() = renewed;
        Ok(())
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there can be a certificate for `host`, a DNS name or an IP address as URLs and CONNECT write it. None is made.
    ///
    /// # Errors
    /// As those of [`Leaves::for_host`] that are known beforehand.
    pub fn may_vouch_for(&self, host: &str) -> Result<(), AuthorityError> {
        permitted(&self.authority(), &subject(host)?, SystemTime::now())
    }

    /// Certificate and key with which to answer a handshake for `host`, a DNS name or an IP address as URLs and CONNECT
    /// write it.
    ///
    /// # Errors
    /// No certificate can name it ([`AuthorityError::Host`]), the CA may not vouch for it
    /// ([`AuthorityError::NotPermitted`]): such hosts are for passing through. Or the CA is not valid now.
    pub fn for_host(&self, host: &str) -> Result<Arc<CertifiedKey>, AuthorityError> {
        self.for_host_at(host, SystemTime::now())
    }

    fn for_host_at(&self, host: &str, now: SystemTime) -> Result<Arc<CertifiedKey>, AuthorityError> {
        let subject = subject(host)?;
        let (authority, key) = {
            let mut current = self.current();
            if !current.key.given_out().contains(&now) {
                // Under the lock, but once a week, and in less time than a leaf takes: all that ask go on with this one.
                *current = Current::new(Arc::clone(&current.authority), now)?;
            }
            if let Some(leaf) = current.kept.look(&subject).filter(|leaf| leaf.given_out.contains(&now)) {
                return Ok(leaf.certified);
            }
            (Arc::clone(&current.authority), Arc::clone(&current.key))
        };
        // Not under the lock: two that ask at once get one each.
        let leaf = key.issue(&authority, &subject, now)?;
        let certified = Arc::clone(&leaf.certified);
        let mut current = self.current();
        // No other CA without another key.
        if Arc::ptr_eq(&current.key, &key) {
            current.kept.keep(subject, leaf);
        }
        Ok(certified)
    }
}

impl Key {
    fn new(now: SystemTime) -> Result<Key, AuthorityError> {
        let pair = KeyPair::generate()?;
        let der = PrivatePkcs8KeyDer::from(pair.serialize_der());
        let signing =
            any_ecdsa_type(&der.into()).map_err(|error| AuthorityError::Crypto(error.to_string()))?;
        Ok(Key { pair, signing, born: now })
    }

    /// When leaves of it are given out. It is born a second time where the clock is set back.
    fn given_out(&self) -> Range<SystemTime> {
        self.born - DAY..self.born + GIVEN_OUT
    }

    fn issue(
        &self,
        authority: &Authority,
        subject: &Subject,
        now: SystemTime,
    ) -> Result<Leaf, AuthorityError> {
        permitted(authority, subject, now)?;
        let ca = authority.certificate();
        let mut params = CertificateParams::default();
        // Never the host: RFC 6125 has it in the SAN alone, and it can be longer than a common name may be.
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, ca.name());
        params.subject_alt_names = vec![match subject {
            Subject::Name(name) => SanType::DnsName(name.as_str().try_into()?),
            Subject::Address(address) => SanType::IpAddress(*address),
        }];
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        params.serial_number = Some(serial()?);
        params.not_before = (now - BACKDATED).max(ca.valid_from()).into();
        params.not_after = (self.born + LIFETIME).min(ca.valid_until()).into();
        let leaf = params.signed_by(&self.pair, authority.issuer())?;

        let mut chain = vec![leaf.der().clone()];
        let Range { start, end } = self.given_out();
        let mut until = end.min(ca.valid_until());
        if let Some(bridge) = authority.bridge_at(now) {
            chain.push(bridge.certificate.clone());
            until = until.min(bridge.until);
        }
        let certified = Arc::new(CertifiedKey::new(chain, Arc::clone(&self.signing)));
        Ok(Leaf { certified, given_out: start..until })
    }
}

fn subject(host: &str) -> Result<Subject, AuthorityError> {
    Subject::parse(host).ok_or_else(|| AuthorityError::Host(host.chars().take(300).collect()))
}

/// # Errors
/// The CA is over, or of the future, or was made for others only.
fn permitted(authority: &Authority, subject: &Subject, now: SystemTime) -> Result<(), AuthorityError> {
    authority.is_valid_at(now)?;
    match authority.certificate().permitted().permits(subject) {
        true => Ok(()),
        false => Err(AuthorityError::NotPermitted(subject.to_string())),
    }
}

impl Current {
    fn new(authority: Arc<Authority>, now: SystemTime) -> Result<Current, AuthorityError> {
        Ok(Current { authority, key: Arc::new(Key::new(now)?), kept: Cache::new(KEPT) })
    }
}

impl std::fmt::Debug for Leaves {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Leaves").field("authority", &self.authority()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authority::Terms;

    fn authority() -> Arc<Authority> {
        Arc::new(Authority::ephemeral(&Terms::default()).unwrap())
    }

    fn leaves() -> Leaves {
        Leaves::new(authority()).unwrap()
    }

    /// The key of a leaf, as its certificate has it: what the CA has vouched for, and nothing else, is signed with.
    fn key(certified: &CertifiedKey) -> Vec<u8> {
        let of_signing = certified.key.public_key().unwrap().to_vec();
        assert!(
            bytes(certified).windows(of_signing.len()).any(|window| window == of_signing),
            "the certificate is the key's"
        );
        of_signing
    }

    fn bytes(certified: &CertifiedKey) -> Vec<u8> {
        certified.cert[0].to_vec()
    }

    #[test]
    fn a_leaf_is_kept_for_a_week_and_then_made_anew() {
        let now = SystemTime::now();
        let leaves = Leaves::new_at(authority(), now).unwrap();
        let at = |time| bytes(&leaves.for_host_at("example.org", time).unwrap());
        let first = at(now);
        assert_eq!(at(now + DAY), first);
        assert_eq!(bytes(&leaves.for_host_at("EXAMPLE.org.", now + 6 * DAY).unwrap()), first);
        let second = at(now + 7 * DAY);
        assert_ne!(second, first);
        assert_eq!(at(now + 8 * DAY), second);
    }

    #[test]
    fn a_key_is_given_out_for_a_week_whatever_hosts_are_asked_for_and_who_has_it_keeps_it() {
        let born = SystemTime::now();
        let leaves = Leaves::new_at(authority(), born).unwrap();
        let at = |host, time| leaves.for_host_at(host, time).unwrap();
        let first = at("first.example", born);
        let late = at("late.example", born + GIVEN_OUT - DAY);
        assert_eq!(key(&late), key(&first));
        // A leaf made yesterday is no reason to go on with a key that is a week old.
        let second = at("late.example", born + GIVEN_OUT);
        assert_ne!(key(&second), key(&first));
        assert_eq!(key(&at("first.example", born + GIVEN_OUT + 6 * DAY)), key(&second));
        assert_ne!(key(&at("first.example", born + 2 * GIVEN_OUT)), key(&second));
        // A connection that began with the first one can still sign with it.
        let schemes = [rustls::SignatureScheme::ECDSA_NISTP256_SHA256];
        assert!(first.key.choose_scheme(&schemes).unwrap().sign(b"hello").is_ok());
    }

    #[test]
    fn no_certificate_of_a_key_outlives_its_second_week() {
        let born = SystemTime::now();
        let leaves = Leaves::new_at(authority(), born).unwrap();
        for days in 0..7 {
            let certified = leaves.for_host_at(&format!("{days}.example"), born + days * DAY).unwrap();
            let (_, leaf) = x509_parser::parse_x509_certificate(&certified.cert[0]).unwrap();
            let until = Duration::from_secs(leaf.validity().not_after.timestamp().try_into().unwrap());
            let of_birth = SystemTime::UNIX_EPOCH + until;
            assert!(of_birth <= born + LIFETIME && of_birth > born + LIFETIME - Duration::from_secs(2));
        }
    }

    #[test]
    fn a_clock_set_back_gets_a_leaf_of_its_time() {
        let (leaves, now) = (leaves(), SystemTime::now());
        let later = bytes(&leaves.for_host_at("example.org", now).unwrap());
        assert_ne!(bytes(&leaves.for_host_at("example.org", now - 10 * DAY).unwrap()), later);
    }

    #[test]
    fn after_a_rotation_neither_leaf_nor_key_of_the_older_ca_is_given_out() {
        let leaves = leaves();
        let older = leaves.for_host("example.org").unwrap();
        let newer = authority();
        leaves.renew(Arc::clone(&newer)).unwrap();
        assert!(Arc::ptr_eq(&leaves.authority(), &newer));
        assert_ne!(key(&leaves.for_host("example.org").unwrap()), key(&older));
    }

    #[test]
    fn outside_the_cas_time_it_is_said_whose_fault_that_is() {
        let (leaves, now) = (leaves(), SystemTime::now());
        let error = |time| leaves.for_host_at("example.org", time).unwrap_err().to_string();
        assert!(error(now + 6 * 365 * DAY).contains("expired on"), "{}", error(now + 6 * 365 * DAY));
        assert!(error(now - 40 * DAY).contains("the clock of this machine is wrong"));
    }

    #[test]
    fn hosts_that_no_certificate_may_name_are_refused() {
        let leaves = leaves();
        for host in ["", "*.example.org", "a b"] {
            assert!(matches!(leaves.for_host(host), Err(AuthorityError::Host(_))), "{host:?}");
            assert!(matches!(leaves.may_vouch_for(host), Err(AuthorityError::Host(_))), "{host:?}");
        }
    }
}
