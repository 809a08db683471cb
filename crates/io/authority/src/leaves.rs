//! Certificates for the hosts whose TLS is answered here: made when first asked for, short-lived, kept for a while.

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
/// How long a leaf is valid from then on.
const LIFETIME: Duration = Duration::from_secs(14 * 86_400);
/// How long it is given out: whatever is given out is valid for a week more, for connections that last and for clocks
/// that run ahead.
const GIVEN_OUT: Duration = Duration::from_secs(7 * 86_400);
/// Leaves kept, at about 1 KB each.
const KEPT: usize = 4096;

/// Gives out leaf certificates of one CA, all of them of one key that lives as long as this.
pub struct Leaves {
    key: KeyPair,
    signing: Arc<dyn SigningKey>,
    current: Mutex<Current>,
}

/// A CA and what is kept of its leaves.
struct Current {
    authority: Arc<Authority>,
    kept: Cache<Subject, Leaf>,
}

#[derive(Clone)]
struct Leaf {
    certified: Arc<CertifiedKey>,
    /// When it is given out. Outside of it, also because the clock was set, a new one is made.
    given_out: Range<SystemTime>,
}

impl Leaves {
    /// Makes the key that all leaves share: not the CA's, so that what handles users' connections can do no more than
    /// pose as those hosts for some days.
    ///
    /// # Errors
    /// The system has no randomness to give.
    pub fn new(authority: Arc<Authority>) -> Result<Leaves, AuthorityError> {
        let key = KeyPair::generate()?;
        let der = PrivatePkcs8KeyDer::from(key.serialize_der());
        let signing =
            any_ecdsa_type(&der.into()).map_err(|error| AuthorityError::Crypto(error.to_string()))?;
        Ok(Leaves { key, signing, current: Mutex::new(Current::new(authority)) })
    }

    /// The CA they are from.
    pub fn authority(&self) -> Arc<Authority> {
        Arc::clone(&self.current().authority)
    }

    /// Gives out leaves of `authority` from now on, as after a rotation.
    pub fn renew(&self, authority: Arc<Authority>) {
        *self.current() = Current::new(authority);
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
        let authority = {
            let mut current = self.current();
            if let Some(leaf) = current.kept.look(&subject).filter(|leaf| leaf.given_out.contains(&now)) {
                return Ok(leaf.certified);
            }
            Arc::clone(&current.authority)
        };
        // Not under the lock: two that ask at once get one each.
        let leaf = self.issue(&authority, &subject, now)?;
        let certified = Arc::clone(&leaf.certified);
        let mut current = self.current();
        if Arc::ptr_eq(&current.authority, &authority) {
            current.kept.keep(subject, leaf);
        }
        Ok(certified)
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
        params.not_after = (now + LIFETIME).min(ca.valid_until()).into();
        let leaf = params.signed_by(&self.key, authority.issuer())?;

        let mut chain = vec![leaf.der().clone()];
        let mut until = (now + GIVEN_OUT).min(ca.valid_until());
        if let Some(bridge) = authority.bridge_at(now) {
            chain.push(bridge.certificate.clone());
            until = until.min(bridge.until);
        }
        let certified = Arc::new(CertifiedKey::new(chain, Arc::clone(&self.signing)));
        Ok(Leaf { certified, given_out: now - DAY..until })
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
    fn new(authority: Arc<Authority>) -> Current {
        Current { authority, kept: Cache::new(KEPT) }
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

    fn leaves() -> Leaves {
        Leaves::new(Arc::new(Authority::ephemeral(&Terms::default()).unwrap())).unwrap()
    }

    fn bytes(certified: &CertifiedKey) -> Vec<u8> {
        certified.cert[0].to_vec()
    }

    #[test]
    fn a_leaf_is_kept_for_a_week_and_then_made_anew() {
        let (leaves, now) = (leaves(), SystemTime::now());
        let at = |time| bytes(&leaves.for_host_at("example.org", time).unwrap());
        let first = at(now);
        assert_eq!(at(now + DAY), first);
        assert_eq!(bytes(&leaves.for_host_at("EXAMPLE.org.", now + 6 * DAY).unwrap()), first);
        let second = at(now + 7 * DAY);
        assert_ne!(second, first);
        assert_eq!(at(now + 8 * DAY), second);
    }

    #[test]
    fn a_clock_set_back_gets_a_leaf_of_its_time() {
        let (leaves, now) = (leaves(), SystemTime::now());
        let later = bytes(&leaves.for_host_at("example.org", now).unwrap());
        assert_ne!(bytes(&leaves.for_host_at("example.org", now - 10 * DAY).unwrap()), later);
    }

    #[test]
    fn after_a_rotation_no_leaf_of_the_older_ca_is_given_out() {
        let leaves = leaves();
        let older = bytes(&leaves.for_host("example.org").unwrap());
        let newer = Arc::new(Authority::ephemeral(&Terms::default()).unwrap());
        leaves.renew(Arc::clone(&newer));
        assert!(Arc::ptr_eq(&leaves.authority(), &newer));
        assert_ne!(bytes(&leaves.for_host("example.org").unwrap()), older);
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
