//! Certificate revocation lists (RFC 5280 §5) out of files: read, or refused with what is wrong with them.

use super::trust::TrustError;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use webpki::{CertRevocationList, Error, OwnedCertRevocationList};
use x509_parser::asn1_rs::FromDer;
use x509_parser::revocation_list::CertificateRevocationList;
use x509_parser::x509::X509Version;

/// Reads the list that the file at `path` holds. Of one that is out of date the log tells: what it lists stays refused, and
/// what was revoked since is not in it.
///
/// # Errors
/// It can't be judged by.
pub(super) fn read(
    path: &Path,
    der: &[u8],
    now: SystemTime,
) -> Result<CertRevocationList<'static>, TrustError> {
    let list = OwnedCertRevocationList::from_der(der).map_err(|error| {
        let (what, remedy) = wrong(der, error);
        TrustError::Crl { path: path.into(), what, remedy }
    })?;
    if let Some(since) = out_of_date(der, now) {
        tracing::warn!(
            "{} is out of date since {since}: what it revokes stays refused, what was revoked since then is not known; fetch it again",
            path.display()
        );
    }
    Ok(list.into())
}

/// What is wrong with a list, and what helps.
fn wrong(der: &[u8], error: Error) -> (String, &'static str) {
    let Ok((_, list)) = CertificateRevocationList::from_der(der) else {
        return ("holds a revocation list that is damaged or cut short".into(), "fetch it again");
    };
    let kind = match error {
        // webpki looks for what version 2 must have and version 1 has not before it knows the version.
        _ if list.version().is_none_or(|version| version == X509Version::V1) => {
            let what = "holds a revocation list of version 1, and only version 2 (RFC 5280 §5.1.2.1) can be judged by";
            return (
                what.into(),
                "have its authority make one with a CRL number (with OpenSSL: 'crl_extensions')",
            );
        }
        Error::UnsupportedDeltaCrl => "has only what changed since another list",
        Error::UnsupportedIndirectCrl => "is of other authorities' certificates too",
        Error::UnsupportedRevocationReasonsPartitioning => "is of some reasons for revocation only",
        Error::UnsupportedCrlIssuingDistributionPoint => {
            "is of a place of distribution that is not named in full"
        }
        // RFC 5280 §5.2.3.
        Error::InvalidCrlNumber => "has no CRL number as it should be",
        _ if list.crl_number().is_none() => "has no CRL number as it should be",
        other => {
            return (
                format!("holds a revocation list that can't be judged by ({other:?})"),
                "ask its authority for another",
            );
        }
    };
    (
        format!("holds a revocation list that {kind}, and can't be judged by"),
        "ask its authority for a complete one",
    )
}

/// Since when there should be a newer list (RFC 5280 §5.1.2.5), as HTTP writes dates.
fn out_of_date(der: &[u8], now: SystemTime) -> Option<String> {
    let (_, list) = CertificateRevocationList::from_der(der).ok()?;
    let seconds = u64::try_from(list.next_update()?.timestamp()).ok()?;
    let next = UNIX_EPOCH + Duration::from_secs(seconds);
    (next <= now).then(|| httpdate::fmt_http_date(next))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{
        BasicConstraints, CertificateParams, CertificateRevocationListParams, IsCa, Issuer, KeyIdMethod,
        KeyPair, SerialNumber, date_time_ymd,
    };

    fn tlv(tag: u8, contents: &[&[u8]]) -> Vec<u8> {
        let contents = contents.concat();
        [&[tag, contents.len() as u8][..], &contents].concat()
    }

    /// A list of version 1: neither a version nor extensions.
    fn of_version_1() -> Vec<u8> {
        without_extensions(&[])
    }

    fn without_extensions(version: &[u8]) -> Vec<u8> {
        let algorithm = tlv(0x30, &[&tlv(6, &[&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2]])]);
        let list = tlv(0x30, &[version, &algorithm, &tlv(0x30, &[]), &tlv(0x17, &[b"240101000000Z"])]);
        tlv(0x30, &[&list, &algorithm, &tlv(3, &[b"\0signature"])])
    }

    fn of_version_2() -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = Issuer::new(params, KeyPair::generate().unwrap());
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2024, 1, 2),
            next_update: date_time_ymd(2024, 2, 2),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: vec![],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        list.signed_by(&issuer).unwrap().der().to_vec()
    }

    fn refusal(der: &[u8]) -> String {
        read(Path::new("/etc/old.crl"), der, SystemTime::now()).unwrap_err().to_string()
    }

    #[test]
    fn a_list_of_version_1_is_refused_with_what_to_do() {
        let line = refusal(&of_version_1());
        assert!(line.starts_with("/etc/old.crl holds a revocation list of version 1, "), "{line}");
        assert!(
            line.contains("crl_extensions") && line.ends_with("or take it out of 'origin.crls'"),
            "{line}"
        );
    }

    #[test]
    fn a_list_without_a_number_is_refused_with_what_it_lacks() {
        let line = refusal(&without_extensions(&tlv(2, &[&[1]])));
        assert!(line.contains(" has no CRL number as it should be, "), "{line}");
    }

    #[test]
    fn a_damaged_list_is_named_so() {
        let whole = of_version_2();
        for end in [0, 1, whole.len() / 2, whole.len() - 1] {
            let line = refusal(&whole[..end]);
            assert!(line.contains(" is damaged or cut short: fetch it again, or "), "{end}: {line}");
        }
    }

    #[test]
    fn a_list_out_of_date_is_taken_and_told_of() {
        let (list, at) = (of_version_2(), |seconds| UNIX_EPOCH + Duration::from_secs(seconds));
        assert!(read(Path::new("x"), &list, SystemTime::now()).is_ok());
        // 2 February 2024.
        assert_eq!(out_of_date(&list, at(1_706_831_999)), None);
        assert_eq!(out_of_date(&list, at(1_706_832_000)).as_deref(), Some("Fri, 02 Feb 2024 00:00:00 GMT"));
    }
}
