//! A CA: its key, its certificate, and for a while after a rotation the word of the one before it.

use std::path::Path;
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PublicKeyData, SerialNumber,
};
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use rustls::pki_types::CertificateDer;

use crate::certificate::{CaCertificate, day};
use crate::error::AuthorityError;
use crate::file;
use crate::permitted::Permitted;

/// How far a CA's validity begins before it was made: clocks of boats and field stations run behind.
const BACKDATED: Duration = Duration::from_secs(30 * 86_400);
/// What the `organizationName` and, with eight digits after it, the `commonName` can hold (RFC 5280, ub-common-name).
const LONGEST_NAME: usize = 48;

/// What a CA is made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// What users read when they install it, such as `MV Aurora`.
    pub name: String,
    /// How long it will be valid.
    pub lifetime: Duration,
    /// The hosts it may vouch for.
    pub permitted: Permitted,
}

impl Default for Terms {
    /// `Farhop`, five years, any host.
    fn default() -> Self {
        let lifetime = Duration::from_secs(5 * 365 * 86_400);
        Terms { name: "Farhop".into(), lifetime, permitted: Permitted::default() }
    }
}

/// The word of the CA before a rotation for the one after it. Sent along with each leaf, it lets those who have
/// installed only the older certificate verify what the newer CA issues.
#[derive(Debug)]
pub struct Bridge {
    /// The certificate of the CA before. Its key is gone.
    pub from: CaCertificate,
    /// The newer CA's name and key, signed by the older.
    pub certificate: CertificateDer<'static>,
    /// When it ends: by then all users need the newer certificate.
    pub until: SystemTime,
}

/// A CA with its key.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CaCertificate,
    bridge: Option<Bridge>,
}

impl Authority {
    /// Makes a CA in `folder`, which is made too where it is not there. The key is readable only by its owner.
    ///
    /// # Errors
    /// There is one already, the name cannot be one, or the system refuses.
    pub fn create(folder: &Path, terms: &Terms) -> Result<Authority, AuthorityError> {
        file::refuse_existing(folder)?;
        let made = Authority::ephemeral(terms)?;
        file::write_new(folder, &made.text())?;
        Ok(made)
    }

    /// The CA that [`Authority::create`] made in `folder`.
    ///
    /// # Errors
    /// There is none, others can read its key, or it is damaged.
    pub fn load(folder: &Path) -> Result<Authority, AuthorityError> {
        let file::Held { key, certificate, bridge } = file::read(folder)?;
        let issuer = Issuer::from_ca_cert_der(certificate.der(), key)?;
        Ok(Authority { issuer, certificate, bridge })
    }

    /// Makes a CA that ends with the process.
    ///
    /// # Errors
    /// The name cannot be one, or the system has no randomness to give.
    pub fn ephemeral(terms: &Terms) -> Result<Authority, AuthorityError> {
        let now = SystemTime::now();
        let key = KeyPair::generate()?;
        let params = params(terms, &key, now - BACKDATED, now + terms.lifetime)?;
        Authority::of(key, params)
    }

    /// Makes a CA under `terms` in the place of the one in `folder`. For `overlap` those who have only the older
    /// certificate are served as before ([`Bridge`]); the older key is gone at once. With an `overlap` of zero, as
    /// after a theft of the key, nothing is carried over, nor of a CA that is over: its certificate serves nobody any more.
    ///
    /// # Errors
    /// As [`Authority::load`]; or the last overlap has not ended, and only one can be carried over at a time; or the older CA is
    /// of the future.
    pub fn rotate(folder: &Path, terms: &Terms, overlap: Duration) -> Result<Authority, AuthorityError> {
        let now = SystemTime::now();
        let older = Authority::load(folder)?;
        let mut newer = Authority::ephemeral(terms)?;
        if !overlap.is_zero() {
            if let Some(running) = older.bridge_at(now) {
                return Err(AuthorityError::Overlapping(day(running.until)));
            }
            match older.is_valid_at(now) {
                Ok(()) => newer.bridge = Some(older.bridge_to(&newer, terms, now + overlap)?),
                Err(AuthorityError::Expired { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        file::replace(folder, &newer.text())?;
        Ok(newer)
    }

    fn of(key: KeyPair, params: CertificateParams) -> Result<Authority, AuthorityError> {
        let der = params.self_signed(&key)?.der().clone();
        // Read back rather than remembered, so that what is said of it is what others read.
        let certificate = CaCertificate::read(der).map_err(|why| AuthorityError::Crypto(why.into()))?;
        let issuer = Issuer::from_ca_cert_der(certificate.der(), key)?;
        Ok(Authority { issuer, certificate, bridge: None })
    }

    fn bridge_to(
        &self,
        newer: &Authority,
        terms: &Terms,
        until: SystemTime,
    ) -> Result<Bridge, AuthorityError> {
        let from = self.certificate.valid_from().max(newer.certificate.valid_from());
        let until = until.min(self.certificate.valid_until()).min(newer.certificate.valid_until());
        let mut params = params(terms, newer.issuer.key(), from, until)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(newer.issuer.key(), &self.issuer)?.der().clone();
        Ok(Bridge { from: self.certificate.clone(), certificate, until })
    }

    fn text(&self) -> String {
        file::text(self.issuer.key(), &self.certificate, self.bridge.as_ref())
    }

    /// Whether it can vouch for anybody now.
    ///
    /// # Errors
    /// The CA is over, or of the future: the clock of this machine is wrong.
    pub fn in_force(&self) -> Result<(), AuthorityError> {
        self.is_valid_at(SystemTime::now())
    }

    /// What users install.
    pub fn certificate(&self) -> &CaCertificate {
        &self.certificate
    }

    /// The word of the CA before, from the last rotation on until the end of its overlap.
    pub fn bridge(&self) -> Option<&Bridge> {
        self.bridge_at(SystemTime::now())
    }

    pub(crate) fn bridge_at(&self, now: SystemTime) -> Option<&Bridge> {
        self.bridge.as_ref().filter(|bridge| now < bridge.until)
    }

    pub(crate) fn issuer(&self) -> &Issuer<'static, KeyPair> {
        &self.issuer
    }

    /// # Errors
    /// The CA is over, or of the future.
    pub(crate) fn is_valid_at(&self, now: SystemTime) -> Result<(), AuthorityError> {
        let (name, from, until) = (
            self.certificate.subject().to_owned(),
            self.certificate.valid_from(),
            self.certificate.valid_until(),
        );
        match now {
            now if now < from => Err(AuthorityError::NotYetValid { name, date: day(from) }),
            now if now >= until => Err(AuthorityError::Expired { name, date: day(until) }),
            _ => Ok(()),
        }
    }
}

/// What the certificate of a CA with this key says (RFC 5280 §4.2.1).
fn params(
    terms: &Terms,
    key: &KeyPair,
    from: SystemTime,
    until: SystemTime,
) -> Result<CertificateParams, AuthorityError> {
    let Terms { name, permitted, .. } = terms;
    let is_name = !name.trim().is_empty() && name.len() <= LONGEST_NAME && !name.contains(char::is_control);
    if !is_name {
        return Err(AuthorityError::Name(name.clone()));
    }
    let of_key = digest(&SHA256, &key.subject_public_key_info());
    let digits: String = of_key.as_ref()[..4].iter().map(|byte| format!("{byte:02x}")).collect();
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, name.as_str());
    params.distinguished_name.push(DnType::CommonName, format!("{name} {digits}"));
    (params.not_before, params.not_after) = (from.into(), until.into());
    params.serial_number = Some(serial()?);
    // One CA below it and no more: its successor, while a rotation is carried over.
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(1));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.name_constraints = permitted.to_extension();
    Ok(params)
}

/// A random positive number of 126 bits: no two certificates of an issuer may share one (RFC 5280 §4.1.2.2).
pub(crate) fn serial() -> Result<SerialNumber, AuthorityError> {
    let mut bytes = [0; 16];
    let failed = |_| AuthorityError::Crypto("the system's random number generator failed".into());
    SystemRandom::new().fill(&mut bytes).map_err(failed)?;
    // Neither negative nor with a leading zero.
    bytes[0] = bytes[0] & 0x3f | 0x40;
    Ok(SerialNumber::from_slice(&bytes))
}
