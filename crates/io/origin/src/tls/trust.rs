//! What certificates are judged by: root certificates of the system and of the operator, and lists of what was revoked.

use super::crl;
use super::roots::Roots;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use webpki::CertRevocationList;

/// Whom to trust. Clones share what was read.
#[derive(Debug, Clone)]
pub struct Trust {
    pub(super) roots: Arc<Roots>,
    pub(super) revoked: Arc<Vec<CertRevocationList<'static>>>,
}

/// A file of roots or of revocations that can't be used.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// It can't be read.
    #[error("{} can't be read: {cause}", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        cause: std::io::Error,
    },
    /// It holds something else, or nothing.
    #[error("{} holds no {wanted}{cause}: give a file with {wanted}s in PEM, or one in DER", path.display())]
    Unusable {
        /// Which file.
        path: PathBuf,
        /// What should be in it.
        wanted: &'static str,
        /// What is wrong, if anything is there, after a colon.
        cause: String,
    },
    /// It holds a revocation list that can't be judged by.
    #[error("{} {what}: {remedy}, or take it out of 'origin.crls'", path.display())]
    Crl {
        /// Which file.
        path: PathBuf,
        /// What is wrong with the list.
        what: String,
        /// What helps.
        remedy: &'static str,
    },
}

impl Trust {
    /// The roots of the system, and those in the files of `roots`; `crls` are revocation lists. Files hold PEM or DER.
    /// What of the system's is unreadable is told to the log and left out.
    ///
    /// # Errors
    /// A file that was named can't be used.
    pub fn system(roots: &[PathBuf], crls: &[PathBuf]) -> Result<Trust, TrustError> {
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            tracing::warn!(%error, "some root certificates of the system can't be read");
        }
        let mut store = Roots::default();
        for certificate in found.certs {
            if let Err(error) = store.add(certificate) {
                tracing::debug!("a root certificate of the system can't be used: {error}");
            }
        }
        if store.is_empty() && roots.is_empty() {
            tracing::warn!("this system has no root certificates, so no HTTPS origin will be trusted");
        }
        Trust::with(store, roots, crls)
    }

    /// Only the roots in these files.
    ///
    /// # Errors
    /// A file can't be used.
    pub fn only(roots: &[PathBuf], crls: &[PathBuf]) -> Result<Trust, TrustError> {
        Trust::with(Roots::default(), roots, crls)
    }

    fn with(mut store: Roots, roots: &[PathBuf], crls: &[PathBuf]) -> Result<Trust, TrustError> {
        const ROOT: &str = "root certificate";
        const CRL: &str = "certificate revocation list";
        for path in roots {
            for root in items::<CertificateDer<'static>>(path, ROOT)? {
                store.add(root).map_err(|error| unusable(path, ROOT, &error))?;
            }
        }
        let mut revoked = Vec::new();
        for path in crls {
            for list in items::<CertificateRevocationListDer<'static>>(path, CRL)? {
                revoked.push(crl::read(path, &list, SystemTime::now())?);
            }
        }
        Ok(Trust { roots: Arc::new(store), revoked: Arc::new(revoked) })
    }
}

fn unusable(path: &Path, wanted: &'static str, cause: &dyn std::fmt::Display) -> TrustError {
    TrustError::Unusable { path: path.into(), wanted, cause: format!(" that can be used ({cause})") }
}

/// What a file holds, at least one; without a PEM mark it is taken for one item in DER.
fn items<T: PemObject + From<Vec<u8>>>(path: &Path, wanted: &'static str) -> Result<Vec<T>, TrustError> {
    let bytes = std::fs::read(path).map_err(|cause| TrustError::Unreadable { path: path.into(), cause })?;
    if !bytes.windows(10).any(|window| window == b"-----BEGIN") {
        return Ok(vec![T::from(bytes)]);
    }
    let items: Vec<T> = T::pem_slice_iter(&bytes)
        .collect::<Result<_, _>>()
        .map_err(|_| unusable(path, wanted, &"its PEM is damaged or cut short"))?;
    if items.is_empty() {
        return Err(TrustError::Unusable { path: path.into(), wanted, cause: String::new() });
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_hold_no_roots_are_refused_with_a_line_that_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        };
        let key = rcgen::KeyPair::generate().unwrap();
        let root = rcgen::CertificateParams::new(vec![]).unwrap().self_signed(&key).unwrap();
        let good = [file("good.pem", root.pem().as_bytes()), file("good.der", root.der())];
        assert_eq!(Trust::only(&good, &[]).unwrap().roots.len(), 2);

        let said = |path: PathBuf| Trust::only(&[path], &[]).unwrap_err().to_string();
        let missing = said(folder.path().join("missing.pem"));
        assert!(missing.contains("missing.pem can't be read: "), "{missing}");
        for bad in [
            file("empty", b""),
            file("key.pem", key.serialize_pem().as_bytes()),
            file("cut.pem", &root.pem().as_bytes()[..200]),
            file("text", b"hello"),
        ] {
            let line = said(bad);
            assert!(line.contains(" holds no root certificate") && !line.contains('\n'), "{line}");
        }
        let cut = said(file("cut.crl", b"-----BEGIN X509 CRL-----\nMIH1"));
        assert!(cut.contains("(its PEM is damaged or cut short): give a file with "), "{cut}");
        let crl = Trust::only(&[], &good[..1]).unwrap_err().to_string();
        assert!(crl.contains("good.pem holds no certificate revocation list"), "{crl}");
    }
}
