//! The file of names and passwords: lines `name:hash`, where the hash is Argon2id (RFC 9106) in PHC form with a salt of its
//! own. Empty lines and lines that begin with `#` are kept as they are.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use argon2::{ARGON2ID_IDENT, Argon2, Params, PasswordHash, PasswordHasher, PasswordVerifier};
use ring::rand::{SecureRandom, SystemRandom};

/// A hundred thousand users fit.
const LONGEST_FILE: u64 = 16 * 1024 * 1024;
/// Longest name, in bytes.
const LONGEST_NAME: usize = 64;
/// Longest password, in bytes: longer ones only cost time.
const LONGEST_PASSWORD: usize = 1024;
/// The most that a hash in the file may cost: 256 MiB of memory, and as many passes over it.
const MOST_MEMORY_KIB: u32 = 256 * 1024;
const MOST_PASSES: u32 = 16;

/// What is wrong with a file of names, or with what was to be done to it; each names the file and what to do.
#[derive(Debug, thiserror::Error)]
pub enum PasswordsError {
    /// It is not there.
    #[error("{}: there is no such file of users; make it with 'farhop user add {} NAME'", .0.display(), .0.display())]
    Missing(PathBuf),
    /// Everyone may read it, so that everyone may guess at its hashes.
    #[error("{}: everyone on this machine can read it (mode {mode:04o}); run 'chmod o-rwx {}'", file.display(), file.display())]
    Exposed {
        /// The file.
        file: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A line of it is damaged.
    #[error("{}:{line}: {reason}", file.display())]
    Line {
        /// The file.
        file: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it, and what to do.
        reason: String,
    },
    /// The system refused.
    #[error("{}: {error}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// A name that no user can have.
    #[error("{0:?} can be no name: {1}")]
    Name(String, &'static str),
    /// A password that no user can have.
    #[error("this can be no password: {0}")]
    Password(&'static str),
    /// The name is there already.
    #[error("{}: {name} is there already; give --replace to set another password", file.display())]
    Exists {
        /// The file.
        file: PathBuf,
        /// The name.
        name: String,
    },
    /// The name is not there.
    #[error("{}: there is no {name}; 'farhop user list {}' tells who is", file.display(), file.display())]
    Unknown {
        /// The file.
        file: PathBuf,
        /// The name.
        name: String,
    },
    /// The system's random number generator failed.
    #[error("the system's random number generator failed")]
    Random,
}

/// Names and the hashes of their passwords.
#[derive(Debug, Default)]
pub struct Passwords {
    hashes: BTreeMap<Arc<str>, Arc<PasswordHash>>,
}

/// A name, and the hash that its password had when it was shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Whose it is.
    pub name: Arc<str>,
    hash: Arc<PasswordHash>,
}

impl Passwords {
    /// Reads `file`.
    ///
    /// # Errors
    /// It is missing, readable by everyone, or a line of it is damaged; then nothing of it is taken.
    pub fn load(file: &Path) -> Result<Passwords, PasswordsError> {
        Passwords::parse(&text(file)?, file)
    }

    fn parse(text: &str, file: &Path) -> Result<Passwords, PasswordsError> {
        let mut hashes = BTreeMap::new();
        for (line, entry) in (1..).zip(text.lines()) {
            let damaged = |reason: String| PasswordsError::Line { file: file.into(), line, reason };
            let Some((name, hash)) = split(entry) else {
                if is_comment(entry) {
                    continue;
                }
                return Err(damaged(
                    "not 'name:hash'; remove it, and add the user with 'farhop user add'".into(),
                ));
            };
            check_name(name).map_err(|why| damaged(format!("{name:?} can be no name: {why}")))?;
            let hash = read_hash(hash).map_err(|why| {
                damaged(format!(
                    "the hash of {name} {why}; set the password with 'farhop user add --replace'"
                ))
            })?;
            if hashes.insert(name.into(), Arc::new(hash)).is_some() {
                return Err(damaged(format!("{name} is there twice; remove one of the lines")));
            }
        }
        Ok(Passwords { hashes })
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.hashes.keys().map(|name| &**name)
    }

    /// Whether there is a user of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.hashes.contains_key(name)
    }

    /// Whether this account is among them, with its password unchanged.
    pub fn has(&self, account: &Account) -> bool {
        self.hashes.get(&account.name).is_some_and(|hash| *hash == account.hash)
    }

    /// Whose name and password these are. Takes as long for a name that is not there, so that the time does not tell
    /// which ones are: tens of milliseconds.
    pub fn verify(&self, name: &str, password: &[u8]) -> Option<Account> {
        let known = self.hashes.get_key_value(name);
        let (_, hash) = known.or_else(|| self.hashes.first_key_value())?;
        let is_right = password.len() <= LONGEST_PASSWORD
            && Argon2::default().verify_password(password, &**hash).is_ok();
        let (name, hash) = known.filter(|_| is_right)?;
        Some(Account { name: Arc::clone(name), hash: Arc::clone(hash) })
    }
}

/// Whether `name` could be added to `file`, to say so before anyone types a password; gives the file's text.
///
/// # Errors
/// The name is there and `may_replace` is false, it can be none, or the file cannot be read or is damaged.
pub fn check(file: &Path, name: &str, may_replace: bool) -> Result<String, PasswordsError> {
    check_name(name).map_err(|why| PasswordsError::Name(name.into(), why))?;
    let text = match text(file) {
        Err(PasswordsError::Missing(_)) => String::new(),
        text => text?,
    };
    if Passwords::parse(&text, file)?.contains(name) && !may_replace {
        return Err(PasswordsError::Exists { file: file.into(), name: name.into() });
    }
    Ok(text)
}

/// Adds `name` with `password` to `file`, which is made where it is missing.
///
/// # Errors
/// As [`check`], or the password can be none, or the file cannot be written.
pub fn add(file: &Path, name: &str, password: &str, may_replace: bool) -> Result<(), PasswordsError> {
    let text = check(file, name, may_replace)?;
    check_password(password).map_err(PasswordsError::Password)?;
    let line = format!("{name}:{}", hash(password.as_bytes(), Params::default())?);
    write(file, &with_line(&text, name, Some(&line)))
}

/// Removes `name` from `file`.
///
/// # Errors
/// The name is not there, or the file cannot be read or written.
pub fn remove(file: &Path, name: &str) -> Result<(), PasswordsError> {
    let text = text(file)?;
    if !Passwords::parse(&text, file)?.contains(name) {
        return Err(PasswordsError::Unknown { file: file.into(), name: name.into() });
    }
    write(file, &with_line(&text, name, None))
}

/// The text with the line of `name` replaced, removed or added; all others stay as they are.
fn with_line(text: &str, name: &str, line: Option<&str>) -> String {
    let mut line = line;
    let mut lines = Vec::new();
    for entry in text.lines() {
        match split(entry) {
            Some((other, _)) if other == name => lines.extend(line.take()),
            _ => lines.push(entry),
        }
    }
    lines.extend(line);
    lines.into_iter().flat_map(|line| [line, "\n"]).collect()
}

fn is_comment(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#')
}

fn split(line: &str) -> Option<(&str, &str)> {
    if is_comment(line) { None } else { line.trim_end().split_once(':') }
}

/// A name is shown in logs, written in files and sent as half of a text, so it holds nothing that means something there.
fn check_name(name: &str) -> Result<(), &'static str> {
    if name.is_empty() || name.len() > LONGEST_NAME {
        Err("it has to have 1 to 64 bytes")
    } else if name.contains(':') {
        // RFC 7617 §2.
        Err("it has a colon")
    } else if name.chars().any(|c| c.is_control() || c.is_whitespace()) {
        Err("it has a space or a control character")
    } else if name.starts_with('#') {
        Err("it begins with '#', as comments do")
    } else if name.parse::<IpAddr>().is_ok() {
        // Users without a name go by their address.
        Err("it is an address")
    } else {
        Ok(())
    }
}

fn check_password(password: &str) -> Result<(), &'static str> {
    if password.is_empty() {
        Err("it is empty")
    } else if password.len() > LONGEST_PASSWORD {
        Err("it is longer than 1024 bytes")
    } else if password.chars().any(char::is_control) {
        // RFC 7617 §2.
        Err("it has a control character")
    } else {
        Ok(())
    }
}

fn hash(password: &[u8], params: Params) -> Result<PasswordHash, PasswordsError> {
    let mut salt = [0; 16];
    SystemRandom::new().fill(&mut salt).map_err(|_| PasswordsError::Random)?;
    // Argon2id is what this crate does unless it is told otherwise.
    let hash = Argon2::from(params).hash_password_with_salt(password, &salt);
    Ok(hash.expect("a password of bounded length and 16 bytes of salt can be hashed"))
}

fn read_hash(text: &str) -> Result<PasswordHash, &'static str> {
    let hash = PasswordHash::new(text).map_err(|_| "is damaged")?;
    if hash.algorithm != ARGON2ID_IDENT {
        return Err("is not of Argon2id");
    }
    let params = Params::try_from(&hash).map_err(|_| "is damaged")?;
    if params.m_cost() > MOST_MEMORY_KIB || params.t_cost() > MOST_PASSES {
        return Err("costs more than 256 MiB or 16 passes");
    }
    if hash.salt.is_none() || hash.hash.is_none() {
        return Err("is damaged");
    }
    Ok(hash)
}

fn text(file: &Path) -> Result<String, PasswordsError> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => PasswordsError::Missing(file.into()),
        _ => PasswordsError::Io { file: file.into(), error },
    };
    let mode = std::fs::metadata(file).map_err(failed)?.permissions().mode() & 0o7777;
    if mode & 0o007 != 0 {
        return Err(PasswordsError::Exposed { file: file.into(), mode });
    }
    farhop_files::read(file, LONGEST_FILE).map_err(failed)
}

fn write(file: &Path, text: &str) -> Result<(), PasswordsError> {
    farhop_files::replace(file, text.as_bytes())
        .map_err(|error| PasswordsError::Io { file: file.into(), error })
}

#[cfg(test)]
impl Account {
    /// An account of this name, with a password that nobody knows.
    pub(crate) fn of(name: &str) -> Account {
        let quick = Params::new(8, 1, 1, None).expect("the least that there is");
        Account {
            name: name.into(),
            hash: Arc::new(hash(name.as_bytes(), quick).expect("there is randomness")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As quick as Argon2id gets.
    fn quick() -> Params {
        Params::new(8, 1, 1, None).unwrap()
    }

    fn line(name: &str, password: &str) -> String {
        format!("{name}:{}\n", hash(password.as_bytes(), quick()).unwrap())
    }

    fn parse(text: &str) -> Result<Passwords, String> {
        Passwords::parse(text, Path::new("users")).map_err(|error| error.to_string())
    }

    #[test]
    fn the_right_password_of_the_right_name_is_right_and_nothing_else_is() {
        let text = format!("# crew\n\n{}{}", line("anna", "one"), line("bjørn", "zwei ü"));
        let users = parse(&text).unwrap();
        assert_eq!(users.names().collect::<Vec<_>>(), ["anna", "bjørn"]);
        assert_eq!(&*users.verify("anna", b"one").unwrap().name, "anna");
        assert_eq!(&*users.verify("bjørn", "zwei ü".as_bytes()).unwrap().name, "bjørn");
        for (name, password) in
            [("anna", "zwei ü"), ("bjørn", "one"), ("Anna", "one"), ("carl", "one"), ("", "")]
        {
            assert_eq!(users.verify(name, password.as_bytes()), None, "{name} {password}");
        }
        let long = "x".repeat(LONGEST_PASSWORD + 1);
        assert_eq!(users.verify("anna", long.as_bytes()), None);
        assert_eq!(Passwords::default().verify("anna", b"one"), None);
    }

    #[test]
    fn each_hash_has_a_salt_of_its_own() {
        assert_ne!(line("anna", "one"), line("anna", "one"));
    }

    #[test]
    fn damaged_lines_are_named_by_number() {
        let good = line("anna", "one");
        let refused = |text: &str| parse(text).expect_err("it is refused");
        assert!(refused("# users\nanna\n").starts_with("users:2: not 'name:hash'"));
        assert!(refused(&format!("{good}\n{good}")).starts_with("users:3: anna is there twice"));
        assert!(refused(&format!("{good}10.0.0.1:x")).starts_with("users:2: \"10.0.0.1\" can be no name"));
        let cut = &good[..good.len() - 8];
        assert!(refused("anna:secret").contains("the hash of anna is damaged; set the password"));
        assert!(refused("anna:$2y$05$abcdefghijklmnopqrstuv").contains("hash of anna is "));
        assert!(parse(cut).is_ok_and(|users| users.verify("anna", b"one").is_none()) || parse(cut).is_err());
        let dear = good.replace("m=8,", "m=4000000,");
        assert!(refused(&dear).contains("costs more than 256 MiB"), "{dear}");
    }

    #[test]
    fn users_come_and_go_and_all_other_lines_stay() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("users");
        add(&file, "anna", "one", false).unwrap();
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let text = format!("# crew\n\n{}", std::fs::read_to_string(&file).unwrap());
        std::fs::write(&file, &text).unwrap();
        add(&file, "ben", "two", false).unwrap();
        assert!(std::fs::read_to_string(&file).unwrap().starts_with(&text));
        let again = add(&file, "anna", "three", false).unwrap_err().to_string();
        assert!(again.contains("anna is there already; give --replace"), "{again}");
        add(&file, "anna", "three", true).unwrap();
        let users = Passwords::load(&file).unwrap();
        assert!(users.verify("anna", b"three").is_some() && users.verify("anna", b"one").is_none());
        remove(&file, "anna").unwrap();
        assert_eq!(Passwords::load(&file).unwrap().names().collect::<Vec<_>>(), ["ben"]);
        assert!(std::fs::read_to_string(&file).unwrap().starts_with("# crew\n\nben:$argon2id$"));
        let gone = remove(&file, "anna").unwrap_err().to_string();
        assert!(gone.contains("there is no anna"), "{gone}");
    }

    #[test]
    fn a_damaged_file_is_not_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("users");
        farhop_files::replace(&file, b"anna\n").unwrap();
        assert!(matches!(add(&file, "ben", "two", true), Err(PasswordsError::Line { line: 1, .. })));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "anna\n");
    }

    #[test]
    fn names_and_passwords_that_can_be_none_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("users");
        let long = "n".repeat(65);
        for name in ["", "a:b", "a b", "a\tb", "#a", "10.0.0.1", "::1", &long] {
            assert!(matches!(add(&file, name, "x", false), Err(PasswordsError::Name(..))), "{name}");
        }
        for password in ["", "a\nb", "x".repeat(1025).as_str()] {
            assert!(matches!(add(&file, "anna", password, false), Err(PasswordsError::Password(_))));
        }
        assert!(!file.exists());
    }

    #[test]
    fn a_file_that_everyone_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("users");
        add(&file, "anna", "one", false).unwrap();
        for (mode, is_good) in [(0o600, true), (0o640, true), (0o644, false), (0o602, false)] {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(Passwords::load(&file).is_ok(), is_good, "{mode:o}");
        }
        let missing = Passwords::load(&folder.path().join("none")).unwrap_err().to_string();
        assert!(missing.contains("farhop user add"), "{missing}");
    }
}
