//! The key of the installation and what is made of it: names that tell nothing, and seals. A seal is both: nobody reads
//! what is kept without the key, and no byte that is not as it was written is ever opened.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};

/// Bytes that a seal adds (RFC 8439 §2.8).
pub(super) const TAG: usize = 16;
/// Bytes of a [`Salt`].
pub(super) const SALT: usize = 16;

/// What makes the key of one row or one file its own. Drawn at random, so that no key seals twice.
pub(super) type Salt = [u8; SALT];

/// Why a key file was not read or made; each names the file and what to do.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// Others may read it, so it is no secret.
    #[error("key file {} can be read by other users (mode {mode:04o}), run 'chmod 600 {}'", file.display(), file.display())]
    Exposed {
        /// The file.
        file: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// It does not hold 32 bytes.
    #[error("key file {} is damaged: {found} bytes in place of 32, remove it and the store begins anew", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// Its length.
        found: usize,
    },
    /// The system refused.
    #[error("key file {}: {error}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The system's random number generator failed.
    #[error("no key made: the system's random number generator failed")]
    Random,
}

/// Key of an installation: 32 random bytes in a file that only its owner reads.
#[derive(Clone)]
pub struct Key([u8; 32]);

impl Key {
    /// The key with these bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Key {
        Key(bytes)
    }

    /// Reads the key in `file`, or makes one there if there is none.
    ///
    /// # Errors
    /// See [`KeyError`].
    pub fn load_or_make(file: &Path) -> Result<Key, KeyError> {
        let failed = |error| KeyError::Io { file: file.into(), error };
        let opened = match File::open(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Key::make(file),
            opened => opened.map_err(failed)?,
        };
        // Asked of the open file, so that what was checked is what is read.
        let mode = opened.metadata().map_err(failed)?.permissions().mode() & 0o7777;
        if mode & 0o077 != 0 {
            return Err(KeyError::Exposed { file: file.into(), mode });
        }
        let mut bytes = Vec::new();
        opened.take(64).read_to_end(&mut bytes).map_err(failed)?;
        let found = bytes.len();
        bytes.try_into().map(Key).map_err(|_| KeyError::Damaged { file: file.into(), found })
    }

    fn make(file: &Path) -> Result<Key, KeyError> {
        let failed = |error| KeyError::Io { file: file.into(), error };
        let mut bytes = [0; 32];
        SystemRandom::new().fill(&mut bytes).map_err(|_| KeyError::Random)?;
        // Whole under its name or not at all: a process that is killed here leaves no half of a key.
        farhop_files::replace(file, &bytes).map_err(failed)?;
        Ok(Key(bytes))
    }

    pub(super) fn keys(&self) -> Keys {
        let derive = |what: &str| blake3::derive_key(&format!("farhop store 2026-11 {what}"), &self.0);
        Keys { names: derive("names"), seals: derive("seals") }
    }
}

/// The keys that are made of it.
#[derive(Clone)]
pub(super) struct Keys {
    names: [u8; 32],
    seals: [u8; 32],
}

impl Keys {
    /// A name that stands for `text` and tells nothing of it.
    pub(super) fn name(&self, kind: u8, text: &str) -> u128 {
        let mut hasher = blake3::Hasher::new_keyed(&self.names);
        hasher.update(&[kind]).update(text.as_bytes());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        u128::from_le_bytes(bytes)
    }

    /// A number by which the key can be told from others.
    pub(super) fn mark(&self) -> u64 {
        self.name(b'm', "") as u64
    }

    /// The seal of what has this salt.
    pub(super) fn seal(&self, salt: &Salt) -> Seal {
        let key = blake3::keyed_hash(&self.seals, salt);
        let key = UnboundKey::new(&CHACHA20_POLY1305, key.as_bytes()).expect("a hash of BLAKE3 has 32 bytes");
        Seal(LessSafeKey::new(key))
    }
}

/// A new salt; nothing when the system has no randomness to give.
pub(super) fn salt() -> Option<Salt> {
    let mut salt = [0; SALT];
    SystemRandom::new().fill(&mut salt).ok()?;
    Some(salt)
}

/// Seals the chunks of one thing, each for its place (STREAM: Hoang, Reyhanitabar, Rogaway and Vizár, "Online
/// Authenticated-Encryption and its Nonce-Reuse Misuse-Resistance", CRYPTO 2015, §7): none can be moved or left out.
pub(super) struct Seal(LessSafeKey);

impl Seal {
    fn nonce(place: u64, is_last: bool) -> Nonce {
        let mut nonce = [0; 12];
        nonce[..8].copy_from_slice(&place.to_le_bytes());
        nonce[8] = u8::from(is_last);
        Nonce::assume_unique_for_key(nonce)
    }

    /// Seals `chunk`, the one at `place`, for the entry `id`.
    pub(super) fn close(&self, id: u64, place: u64, is_last: bool, chunk: &mut Vec<u8>) {
        let aad = Aad::from(id.to_le_bytes());
        self.0
            .seal_in_place_append_tag(Seal::nonce(place, is_last), aad, chunk)
            .expect("a chunk is far shorter than the cipher allows");
    }

    /// What was sealed; nothing if a bit of it, or its place, has changed.
    pub(super) fn open(&self, id: u64, place: u64, is_last: bool, mut sealed: Vec<u8>) -> Option<Vec<u8>> {
        let aad = Aad::from(id.to_le_bytes());
        let length = self.0.open_in_place(Seal::nonce(place, is_last), aad, &mut sealed).ok()?.len();
        sealed.truncate(length);
        Some(sealed)
    }
}
