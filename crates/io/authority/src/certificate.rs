//! The certificate of a CA: what users install, and what it says of itself.

use std::time::SystemTime;

use pem::{EncodeConfig, LineEnding, Pem};
use ring::digest::{SHA256, digest};
use rustls::pki_types::CertificateDer;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

use crate::permitted::Permitted;
use crate::profile::profile;

/// A CA's certificate. It holds nothing secret.
#[derive(Debug, Clone, PartialEq)]
pub struct CaCertificate {
    der: CertificateDer<'static>,
    name: String,
    subject: String,
    valid: (SystemTime, SystemTime),
    permitted: Permitted,
    /// The public key, as SubjectPublicKeyInfo.
    key: Vec<u8>,
}

impl CaCertificate {
    /// Reads a certificate that a CA of this crate gave itself.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn read(der: CertificateDer<'static>) -> Result<Self, &'static str> {
        let parsed = parse(&der)?;
        if !parsed.is_ca() || parsed.subject().as_raw() != parsed.issuer().as_raw() {
            return Err("its certificate is not that of a CA");
        }
        let text = |part: Option<&x509_parser::x509::AttributeTypeAndValue<'_>>| {
            part.and_then(|part| part.as_str().ok()).map(str::to_owned).ok_or("its certificate has no name")
        };
        let (name, subject) = (
            text(parsed.subject().iter_organization().next())?,
            text(parsed.subject().iter_common_name().next())?,
        );
        let constraints = parsed.name_constraints().map_err(|_| "its name constraints cannot be read")?;
        let permitted =
            match constraints.and_then(|constraints| constraints.value.permitted_subtrees.as_deref()) {
                Some(subtrees) => {
                    Permitted::from_extension(subtrees).ok_or("its name constraints are of a strange kind")?
                }
                None => Permitted::default(),
            };
        let validity = parsed.validity();
        let valid = (validity.not_before.to_datetime().into(), validity.not_after.to_datetime().into());
        let key = parsed.public_key().raw.to_vec();
        Ok(CaCertificate { name, subject, valid, permitted, key, der })
    }

    /// DER.
    pub fn der(&self) -> &CertificateDer<'static> {
        &self.der
    }

    /// PEM (RFC 7468), lines ended by a line feed.
    pub fn pem(&self) -> String {
        pem::encode_config(&Pem::new("CERTIFICATE", self.der.to_vec()), LINES)
    }

    /// An Apple configuration profile that installs it (`.mobileconfig`, XML).
    pub fn profile(&self) -> String {
        profile(self)
    }

    /// What the operator called the CA.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name by which systems list the certificate: the CA's and eight digits of its key, so that a successor is
    /// told from it.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// SHA-256 of the certificate as systems show it: pairs of upper-case hexadecimal digits with colons between.
    pub fn fingerprint(&self) -> String {
        let pairs: Vec<_> = self.digest().iter().map(|byte| format!("{byte:02X}")).collect();
        pairs.join(":")
    }

    pub(crate) fn digest(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest(&SHA256, &self.der).as_ref());
        bytes
    }

    /// From when on it is valid.
    pub fn valid_from(&self) -> SystemTime {
        self.valid.0
    }

    /// Until when it is valid.
    pub fn valid_until(&self) -> SystemTime {
        self.valid.1
    }

    /// The hosts it may vouch for.
    pub fn permitted(&self) -> &Permitted {
        &self.permitted
    }

    pub(crate) fn is_of_key(&self, key: &[u8]) -> bool {
        self.key == key
    }

    /// When `bridge` ends, if it is `by`'s word for this CA.
    pub(crate) fn bridged(&self, bridge: &CertificateDer<'_>, by: &CaCertificate) -> Option<SystemTime> {
        let (bridge, own, other) = (parse(bridge).ok()?, parse(&self.der).ok()?, parse(&by.der).ok()?);
        let is_bridge = bridge.subject().as_raw() == own.subject().as_raw()
            && bridge.issuer().as_raw() == other.subject().as_raw()
            && bridge.public_key().raw == self.key;
        is_bridge.then(|| bridge.validity().not_after.to_datetime().into())
    }
}

/// How this crate writes PEM, on every system.
pub(crate) const LINES: EncodeConfig = EncodeConfig::new().set_line_ending(LineEnding::LF);

fn parse<'a>(der: &'a CertificateDer<'_>) -> Result<X509Certificate<'a>, &'static str> {
    match X509Certificate::from_der(der) {
        Ok(([], parsed)) => Ok(parsed),
        _ => Err("its certificate cannot be read"),
    }
}

/// The day of `time` in UTC, as 2026-11-22.
pub fn day(time: SystemTime) -> String {
    time::OffsetDateTime::from(time).date().to_string()
}
