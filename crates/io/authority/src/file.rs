//! The one file that a CA is kept in, so that nothing of it can be out of step with the rest:
//!
//! ```text
//! farhop-authority 1
//! <a line for whoever opens it>
//! PEM: the private key (PKCS #8), the CA's certificate and, after a rotation, the older CA's certificate and its bridge
//! ```

use std::fs::{DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use pem::Pem;
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

use crate::authority::Bridge;
use crate::certificate::{CaCertificate, LINES};
use crate::error::AuthorityError;

const NAME: &str = "ca.key";
const TAG: &str = "farhop-authority";
const FORMAT: &str = "1";
/// Longer files are not CAs.
const LONGEST_FILE: u64 = 65_536;

/// What a file holds.
pub(crate) struct Held {
    pub(crate) key: KeyPair,
    pub(crate) certificate: CaCertificate,
    pub(crate) bridge: Option<Bridge>,
}

/// A CA as its file's text.
pub(crate) fn text(key: &KeyPair, certificate: &CaCertificate, bridge: Option<&Bridge>) -> String {
    let mut text = format!(
        "{TAG} {FORMAT}\nWhoever has this file can pose as any web site to its users: it stays here.\n"
    );
    let mut add = |tag: &str, der: &[u8]| text.push_str(&pem::encode_config(&Pem::new(tag, der), LINES));
    add("PRIVATE KEY", key.serialized_der());
    add("CERTIFICATE", certificate.der());
    if let Some(bridge) = bridge {
        add("CERTIFICATE", bridge.from.der());
        add("CERTIFICATE", &bridge.certificate);
    }
    text
}

/// # Errors
/// There is a CA in `folder`.
pub(crate) fn refuse_existing(folder: &Path) -> Result<(), AuthorityError> {
    let file = folder.join(NAME);
    // Also a link that leads nowhere is somebody's.
    if file.symlink_metadata().is_ok() { Err(AuthorityError::Exists(file)) } else { Ok(()) }
}

/// Writes the file of a new CA.
pub(crate) fn write_new(folder: &Path, text: &str) -> Result<(), AuthorityError> {
    let failed = |error| AuthorityError::Folder { folder: folder.into(), error };
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    let file = folder.join(NAME);
    farhop_files::create(&file, text.as_bytes()).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => AuthorityError::Exists(file.clone()),
        _ => failed(error),
    })
}

/// Writes the file of a CA that takes the place of the one there: after a power cut it is the one or the other.
pub(crate) fn replace(folder: &Path, text: &str) -> Result<(), AuthorityError> {
    let file = folder.join(NAME);
    farhop_files::replace(&file, text.as_bytes()).map_err(|error| AuthorityError::Io { file, error })
}

/// Reads the CA in `folder`.
pub(crate) fn read(folder: &Path) -> Result<Held, AuthorityError> {
    let file = folder.join(NAME);
    let text = secret_text(&file)?;
    let mode = folder.metadata().map_err(|error| AuthorityError::Io { file: folder.into(), error })?;
    let mode = mode.permissions().mode() & 0o7777;
    // In a folder with the sticky bit nobody replaces the files of others.
    if mode & 0o1002 == 0o0002 {
        return Err(AuthorityError::Replaceable { folder: folder.into(), mode });
    }
    let first = text.lines().next().unwrap_or("");
    match first.strip_prefix(TAG) {
        Some(format) if format.trim() == FORMAT => {}
        Some(format) => {
            return Err(AuthorityError::Format { file, found: format.trim().chars().take(16).collect() });
        }
        None => return Err(AuthorityError::Foreign(file)),
    }
    parse(&text).map_err(|why| AuthorityError::Damaged { file, why })
}

fn secret_text(file: &Path) -> Result<String, AuthorityError> {
    let owned = || PathBuf::from(file);
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => AuthorityError::Missing(owned()),
        _ => AuthorityError::Io { file: owned(), error },
    };
    let opened = File::open(file).map_err(failed)?;
    // Asked of the open file, so that what was checked is what is read.
    let mode = opened.metadata().map_err(failed)?.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(AuthorityError::Exposed { file: owned(), mode });
    }
    let mut bytes = Vec::new();
    opened.take(LONGEST_FILE).read_to_end(&mut bytes).map_err(failed)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn parse(text: &str) -> Result<Held, &'static str> {
    let parts = pem::parse_many(text).map_err(|_| "its PEM cannot be read")?;
    let certificates = match parts.split_first() {
        Some((key, rest))
            if key.tag() == "PRIVATE KEY" && rest.iter().all(|it| it.tag() == "CERTIFICATE") =>
        {
            rest
        }
        _ => return Err("it does not hold a private key and certificates"),
    };
    let key = PrivatePkcs8KeyDer::from(parts[0].contents());
    let key = KeyPair::from_pkcs8_der_and_sign_algo(&key, &PKCS_ECDSA_P256_SHA256)
        .map_err(|_| "its private key cannot be read")?;
    let der = |part: &Pem| CertificateDer::from(part.contents().to_vec());
    let (own, carried) = match certificates {
        [own] => (own, None),
        [own, from, bridge] => (own, Some((from, bridge))),
        _ => return Err("it holds the wrong number of certificates"),
    };
    let certificate = CaCertificate::read(der(own))?;
    if !certificate.is_of_key(&key.subject_public_key_info()) {
        return Err("its certificate is not that of its key");
    }
    let bridge = match carried {
        None => None,
        Some((from, bridge)) => {
            let (from, bridge) = (CaCertificate::read(der(from))?, der(bridge));
            let until =
                certificate.bridged(&bridge, &from).ok_or("its bridge is not between its certificates")?;
            Some(Bridge { from, certificate: bridge, until })
        }
    };
    Ok(Held { key, certificate, bridge })
}
