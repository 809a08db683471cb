//! Who an end is: an Ed25519 key pair kept in a file, and the public half as one line of text for
//! the other end's settings. It must not know TLS or QUIC; `tls` turns these keys into handshakes.
//!
//! ```text
//! farhop-ed25519 <64 hexadecimal digits> [comment]           public, for the peer's settings
//! farhop-ed25519-secret <64 hexadecimal digits> [comment]    secret, in a file of mode 0600
//! ```

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{Ed25519KeyPair, KeyPair};

const PUBLIC_TAG: &str = "farhop-ed25519";
const SECRET_TAG: &str = "farhop-ed25519-secret";
/// Longer files are not keys: one line and a comment fit many times.
const LONGEST_FILE: u64 = 4096;

/// The public half of an identity: what peers pin and settings list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// The key with these 32 bytes (RFC 8032 §5.1.5).
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        PublicKey(bytes)
    }

    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for PublicKey {
    /// The line that settings take, without a comment.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PUBLIC_TAG} {}", hex(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a text is no key. The messages never repeat a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// It begins with something else than the tag of a key.
    #[error("not a key: expected '{expected} <64 hexadecimal digits>', as 'farhop keygen' prints it")]
    Tag {
        /// The tag that should stand first.
        expected: &'static str,
    },
    /// A secret key stands where a public one belongs.
    #[error(
        "this is a secret key, which must not leave its machine: use the public line that 'farhop keygen' printed"
    )]
    SecretInPublicPlace,
    /// A public key stands where a secret one belongs.
    #[error("this is a public key, the secret key file made by 'farhop keygen' is needed here")]
    PublicInSecretPlace,
    /// The digits are too few, too many or no digits.
    #[error("key is damaged: 64 hexadecimal digits expected after '{tag}', characters found: {found}")]
    Digits {
        /// The tag before the digits.
        tag: &'static str,
        /// How long the damaged text is.
        found: usize,
    },
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(line: &str) -> Result<Self, KeyError> {
        match line.split_whitespace().next() {
            Some(SECRET_TAG) => Err(KeyError::SecretInPublicPlace),
            _ => digits(line, PUBLIC_TAG).map(PublicKey),
        }
    }
}

/// An identity of this machine: the secret seed (RFC 8032 §5.1.5) and what follows from it.
#[derive(Clone)]
pub struct Identity {
    seed: [u8; 32],
    public: PublicKey,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({}, secret not shown)", self.public)
    }
}

/// Why an identity file was not read or written; each names the file and what to do.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// It is not there.
    #[error("identity file {} does not exist, make one with 'farhop keygen {}'", .0.display(), .0.display())]
    Missing(PathBuf),
    /// Others may read it, so it is no secret.
    #[error(
        "identity file {} can be read by other users (mode {mode:04o}), run 'chmod 600 {}'",
        file.display(),
        file.display()
    )]
    Exposed {
        /// The file.
        file: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Its text is no secret key.
    #[error("identity file {}: {error}", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        error: KeyError,
    },
    /// Saving would replace a key that peers may know.
    #[error("{} exists already and is not overwritten, choose another name or move it away", .0.display())]
    Exists(PathBuf),
    /// The system refused.
    #[error("identity file {}: {error}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The system's random number generator failed.
    #[error("no identity made: the system's random number generator failed")]
    Random,
}

impl Identity {
    /// A new identity from the system's random numbers.
    ///
    /// # Errors
    /// [`IdentityError::Random`].
    pub fn generate() -> Result<Self, IdentityError> {
        let mut seed = [0; 32];
        SystemRandom::new().fill(&mut seed).map_err(|_| IdentityError::Random)?;
        Ok(Identity::from_seed(seed))
    }

    /// The identity with this secret seed; equal seeds give equal identities.
    pub fn from_seed(seed: [u8; 32]) -> Self {
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).expect("every 32 bytes are an Ed25519 seed");
        let mut public = [0; 32];
        public.copy_from_slice(pair.public_key().as_ref());
        Identity { seed, public: PublicKey(public) }
    }

    /// The public half.
    pub fn public(&self) -> PublicKey {
        self.public
    }

    /// The secret seed, for those who sign or derive keys with it.
    pub(crate) fn seed(&self) -> &[u8; 32] {
        &self.seed
    }

    /// Reads an identity from `file`.
    ///
    /// # Errors
    /// The file is missing, readable by other users, or holds no secret key.
    pub fn load(file: &Path) -> Result<Self, IdentityError> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => IdentityError::Missing(file.into()),
            _ => IdentityError::Io { file: file.into(), error },
        };
        let opened = File::open(file).map_err(failed)?;
        // Asked of the open file, so that what was checked is what is read.
        let mode = opened.metadata().map_err(failed)?.permissions().mode() & 0o7777;
        if mode & 0o077 != 0 {
            return Err(IdentityError::Exposed { file: file.into(), mode });
        }
        let mut bytes = Vec::new();
        opened.take(LONGEST_FILE).read_to_end(&mut bytes).map_err(failed)?;
        let text = String::from_utf8_lossy(&bytes);
        Identity::parse(&text).map_err(|error| IdentityError::Malformed { file: file.into(), error })
    }

    fn parse(text: &str) -> Result<Self, KeyError> {
        let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("");
        match line.split_whitespace().next() {
            Some(PUBLIC_TAG) => Err(KeyError::PublicInSecretPlace),
            _ => digits(line, SECRET_TAG).map(Identity::from_seed),
        }
    }

    /// Writes the identity to a new `file` that only its owner can read.
    ///
    /// # Errors
    /// The file exists already or cannot be written.
    pub fn save(&self, file: &Path) -> Result<(), IdentityError> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::AlreadyExists => IdentityError::Exists(file.into()),
            _ => IdentityError::Io { file: file.into(), error },
        };
        // A key whose public half is already in a peer's settings must survive a power cut.
        farhop_files::create(file, format!("{SECRET_TAG} {}\n", hex(&self.seed)).as_bytes()).map_err(failed)
    }
}

/// The 32 bytes of a line `tag <digits> [comment]`.
fn digits(line: &str, tag: &'static str) -> Result<[u8; 32], KeyError> {
    let mut words = line.split_whitespace();
    if words.next() != Some(tag) {
        return Err(KeyError::Tag { expected: tag });
    }
    let digits = words.next().unwrap_or("");
    let damaged = || KeyError::Digits { tag, found: digits.chars().count() };
    // Checked before slicing, so that every index below falls between two characters.
    if digits.len() != 64 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(damaged());
    }
    let mut bytes = [0; 32];
    for (byte, start) in bytes.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(&digits[start..start + 2], 16).map_err(|_| damaged())?;
    }
    Ok(bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    #[test]
    fn the_public_key_is_that_of_rfc_8032() {
        // RFC 8032 §7.1, test 1.
        let seed = digits("x 9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60", "x");
        let expected = "farhop-ed25519 d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
        assert_eq!(Identity::from_seed(seed.unwrap()).public().to_string(), expected);
    }

    #[test]
    fn what_is_saved_loads_again_and_only_its_owner_reads_it() {
        let folder = folder();
        let file = folder.path().join("ground.key");
        let identity = Identity::generate().unwrap();
        identity.save(&file).unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(Identity::load(&file).unwrap().public(), identity.public());
    }

    #[test]
    fn a_key_is_never_overwritten() {
        let folder = folder();
        let file = folder.path().join("ground.key");
        let first = Identity::generate().unwrap();
        first.save(&file).unwrap();
        let error = Identity::generate().unwrap().save(&file).unwrap_err();
        assert!(error.to_string().contains("exists already and is not overwritten"), "{error}");
        assert_eq!(Identity::load(&file).unwrap().public(), first.public());
    }

    #[test]
    fn a_key_that_others_can_read_is_refused_with_the_remedy() {
        let folder = folder();
        let file = folder.path().join("ground.key");
        Identity::generate().unwrap().save(&file).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
        let error = Identity::load(&file).unwrap_err().to_string();
        assert!(error.contains("(mode 0640), run 'chmod 600 "), "{error}");
    }

    #[test]
    fn a_missing_key_says_how_to_make_one() {
        let error = Identity::load(Path::new("/nonexistent/x.key")).unwrap_err().to_string();
        assert!(error.ends_with("make one with 'farhop keygen /nonexistent/x.key'"), "{error}");
    }

    #[test]
    fn a_public_line_reads_back_with_any_comment_and_case() {
        let key = Identity::generate().unwrap().public();
        assert_eq!(key.to_string().parse(), Ok(key));
        assert_eq!(format!("  {key} ship Aurora, since May \n").parse(), Ok(key));
        let upper = key.to_string().to_uppercase().replace("FARHOP-ED25519", PUBLIC_TAG);
        assert_eq!(upper.parse(), Ok(key));
    }

    #[test]
    fn damaged_or_misplaced_keys_are_told_apart() {
        let parse = |text: &str| text.parse::<PublicKey>().unwrap_err();
        assert!(matches!(parse("ssh-ed25519 AAAA"), KeyError::Tag { .. }));
        assert!(matches!(parse(""), KeyError::Tag { .. }));
        assert!(matches!(parse("farhop-ed25519"), KeyError::Digits { found: 0, .. }));
        assert!(matches!(parse("farhop-ed25519 abcd"), KeyError::Digits { found: 4, .. }));
        let accents = format!("farhop-ed25519 {}", "é".repeat(32));
        assert!(matches!(parse(&accents), KeyError::Digits { found: 32, .. }));
        let secret = format!("{SECRET_TAG} {}", "0".repeat(64));
        assert_eq!(parse(&secret), KeyError::SecretInPublicPlace);
        let public = Identity::from_seed([1; 32]).public().to_string();
        assert_eq!(Identity::parse(&public).unwrap_err(), KeyError::PublicInSecretPlace);
    }

    #[test]
    fn a_secret_never_shows_in_debug_output() {
        let identity = Identity::from_seed([0xab; 32]);
        assert!(!format!("{identity:?}").contains(&"ab".repeat(8)));
    }
}
