//! What a certificate says of itself, for judging keys and signatures and for telling people. Pure; whether any of it
//! is true is the verifier's question.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use x509_parser::asn1_rs::{FromDer, SequenceOf};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::public_key::PublicKey;
use x509_parser::x509::X509Version;

/// RSA keys of fewer bits can be broken (NIST SP 800-57 part 1, CA/Browser Forum baseline requirements §6.1.5).
const RSA_BITS: usize = 2048;

/// id-pe-tlsfeature (RFC 7633 §6).
const TLS_FEATURE: &str = "1.3.6.1.5.5.7.1.24";
/// The number of the TLS extension that asks for a stapled response (RFC 6066 §8).
const STATUS_REQUEST: u32 = 5;

/// id-ad-caIssuers (RFC 5280 §4.2.2.1).
const CA_ISSUERS: &str = "1.3.6.1.5.5.7.48.2";

const DSA: &str = "1.2.840.10040.4.1";

/// Curves of fewer than 256 bits that certificates have been seen with.
const SMALL_CURVES: [(&str, &str); 3] =
    [("1.2.840.10045.3.1.1", "P-192"), ("1.3.132.0.33", "P-224"), ("1.3.132.0.8", "secp160r1")];

/// Signatures whose hash can be forged.
const FORGEABLE: [(&str, &str); 6] = [
    ("1.2.840.113549.1.1.2", "RSA with MD2"),
    ("1.2.840.113549.1.1.4", "RSA with MD5"),
    ("1.2.840.113549.1.1.5", "RSA with SHA-1"),
    ("1.3.14.3.2.29", "RSA with SHA-1"),
    ("1.2.840.10040.4.3", "DSA with SHA-1"),
    ("1.2.840.10045.4.1", "ECDSA with SHA-1"),
];

/// A certificate that could be read.
pub(super) struct Facts<'a>(X509Certificate<'a>);

impl<'a> Facts<'a> {
    /// Reads a certificate; `None` if it can't be read.
    pub(super) fn of(der: &'a [u8]) -> Option<Facts<'a>> {
        X509Certificate::from_der(der).ok().map(|(_, certificate)| Facts(certificate))
    }

    /// Whether it names itself as its issuer.
    pub(super) fn is_self_issued(&self) -> bool {
        self.names_as_issuer(self)
    }

    /// Whether `other` may be its issuer, by name.
    pub(super) fn names_as_issuer(&self, other: &Facts<'_>) -> bool {
        self.0.issuer().as_raw() == other.0.subject().as_raw()
    }

    /// Its own name, fit to be shown.
    pub(super) fn subject(&self) -> String {
        shown(&self.0.subject().to_string())
    }

    /// Its issuer's name, fit to be shown.
    pub(super) fn issuer(&self) -> String {
        shown(&self.0.issuer().to_string())
    }

    /// The host names and addresses that it is for (RFC 5280 §4.2.1.6), fit to be shown.
    pub(super) fn names(&self) -> Vec<String> {
        let Ok(Some(names)) = self.0.subject_alternative_name() else { return Vec::new() };
        names.value.general_names.iter().filter_map(name).collect()
    }

    /// The same for people who asked for `host`, with the reason beside those that look like it and are not it.
    pub(super) fn told_names(&self, host: &str) -> Vec<String> {
        let told = |general: &GeneralName<'_>| {
            let name = name(general)?;
            Some(match general {
                GeneralName::DNSName(_) if name.parse::<IpAddr>().is_ok() => {
                    format!("{name} (as a host name, not as an address)")
                }
                GeneralName::DNSName(_) if name.ends_with('.') => {
                    format!("{name} (with a dot at its end, which is wrong there)")
                }
                _ => name,
            })
        };
        let alternative = self.0.subject_alternative_name().ok().flatten();
        let general = alternative.map(|names| names.value.general_names.as_slice()).unwrap_or_default();
        let mut commons = self.0.subject().iter_common_name().filter_map(|name| name.as_str().ok());
        // RFC 9110 §4.3.4.
        let common = commons.find(|name| name.trim_end_matches('.').eq_ignore_ascii_case(host));
        let common = common.map(|_| format!("{host} (by its common name, which does not count)"));
        general.iter().filter_map(told).chain(common).collect()
    }

    /// Whether nobody below a public registry could have been meant by it: `host` is named only by a wildcard that stands
    /// for all names of such a registry, as `*.co.uk` does. Browsers take none like it, nor one for a top-level domain that
    /// nobody knows (CA/Browser Forum baseline requirements §3.2.2.6).
    pub(super) fn names_a_registry(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.');
        let names = self.names();
        let is_named = |wanted: &str| names.iter().any(|name| name.eq_ignore_ascii_case(wanted));
        let Some((_, parent)) = host.split_once('.') else { return false };
        !is_named(host) && is_named(&format!("*.{parent}")) && is_registry(&parent.to_ascii_lowercase())
    }

    /// The first and the last second in which it counts, since 1970.
    pub(super) fn times(&self) -> (i64, i64) {
        let validity = self.0.validity();
        (validity.not_before.timestamp(), validity.not_after.timestamp())
    }

    /// Whether it says that it issues certificates (RFC 5280 §4.2.1.9). Before version 3 there was no word for it.
    pub(super) fn is_issuer(&self) -> bool {
        match self.0.basic_constraints() {
            Ok(Some(constraints)) => constraints.value.ca,
            Ok(None) => self.0.version() != X509Version::V3,
            Err(_) => false,
        }
    }

    /// How many issuers may stand below it, if it says that (RFC 5280 §4.2.1.9).
    pub(super) fn issuers_below(&self) -> Option<u32> {
        self.0.basic_constraints().ok()??.value.path_len_constraint
    }

    /// Whether what it has signed counts (RFC 5280 §6.1.4 (n)): if it says what its key is for, then for that, too.
    pub(super) fn may_sign_certificates(&self) -> bool {
        self.0.key_usage().is_ok_and(|usage| usage.is_none_or(|usage| usage.value.key_cert_sign()))
    }

    /// The same for handshakes: with ephemeral keys, the only ones spoken here, a server signs (RFC 8446 §4.4.2.2, RFC 8422
    /// §5.3).
    pub(super) fn may_sign_handshakes(&self) -> bool {
        self.0.key_usage().is_ok_and(|usage| usage.is_none_or(|usage| usage.value.digital_signature()))
    }

    /// Whether it is for servers, or does not say what it is for.
    pub(super) fn is_for_servers(&self) -> bool {
        let usage = self.0.extended_key_usage();
        usage.is_ok_and(|usage| usage.is_none_or(|usage| usage.value.any || usage.value.server_auth))
    }

    /// The URL from which its issuer's certificate can be had, if it says one (RFC 5280 §4.2.2.1). Within TLS an issuer might have to be
    /// fetched for fetching one.
    pub(super) fn issuer_at(&self) -> Option<String> {
        let said = self.0.extensions().iter().find_map(|extension| match extension.parsed_extension() {
            ParsedExtension::AuthorityInfoAccess(access) => Some(access),
            _ => None,
        });
        said?.iter().find_map(|told| match told.access_location {
            GeneralName::URI(url) if told.access_method.to_id_string() == CA_ISSUERS => {
                url.starts_with("http://").then(|| url.to_owned())
            }
            _ => None,
        })
    }

    /// What its key is, if that is weak.
    pub(super) fn weak_key(&self) -> Option<String> {
        let key = self.0.public_key();
        if key.algorithm.algorithm.to_id_string() == DSA {
            return Some("DSA".into());
        }
        match key.parsed().ok()? {
            PublicKey::RSA(key) => {
                let bits = bits(key.modulus);
                (bits < RSA_BITS).then(|| format!("RSA with {bits} bits"))
            }
            PublicKey::EC(_) => {
                let curve = key.algorithm.parameters.as_ref()?.as_oid().ok()?.to_id_string();
                let small = SMALL_CURVES.iter().find(|(known, _)| *known == curve)?;
                Some(format!("the elliptic curve {}", small.1))
            }
            _ => None,
        }
    }

    /// Whether it counts only with a stapled OCSP response (RFC 7633 §4.2.3): servers that it is for have to show one to
    /// who asks for it, as every client of this crate does.
    pub(super) fn must_staple(&self) -> bool {
        let features =
            self.0.extensions().iter().find(|extension| extension.oid.to_id_string() == TLS_FEATURE);
        features.is_some_and(|extension| {
            SequenceOf::<u32>::from_der(extension.value)
                .is_ok_and(|(_, features)| features.contains(&STATUS_REQUEST))
        })
    }

    /// What its signature is, if that is weak.
    pub(super) fn weak_signature(&self) -> Option<&'static str> {
        let used = self.0.signature_algorithm.algorithm.to_id_string();
        FORGEABLE.iter().find(|(algorithm, _)| *algorithm == used).map(|(_, name)| *name)
    }
}

/// Whether anybody can register a name below `domain`; what only its owner lets others have names in is none.
fn is_registry(domain: &str) -> bool {
    psl::suffix(domain.as_bytes()).is_some_and(|suffix| {
        suffix.as_bytes() == domain.as_bytes() && suffix.typ() != Some(psl::Type::Private)
    })
}

fn name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some(shown(name)),
        GeneralName::IPAddress(bytes) => {
            let v4 = <[u8; 4]>::try_from(*bytes).map(|octets| Ipv4Addr::from(octets).to_string());
            v4.or_else(|_| <[u8; 16]>::try_from(*bytes).map(|octets| Ipv6Addr::from(octets).to_string())).ok()
        }
        _ => None,
    }
}

/// `text` of a stranger without what could break a line.
fn shown(text: &str) -> String {
    text.chars().filter(|char| !char.is_control()).collect()
}

/// The size of a number.
fn bits(number: &[u8]) -> usize {
    let zeros = number.iter().take_while(|&&byte| byte == 0).count();
    let number = &number[zeros..];
    number.len() * 8 - number.first().map_or(0, |first| first.leading_zeros() as usize)
}
