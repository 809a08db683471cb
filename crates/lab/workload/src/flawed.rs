//! Origins whose certificates are bad, each in one way, and one whose is good: made and served by OpenSSL, so that neither the
//! keys nor the handshakes come from what judges them. Builds commands; where the servers run is the caller's affair.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The file that every origin serves, and what stands in it: no byte of it may be seen where the certificate is bad.
pub const PAGE: (&str, &str) = ("/page.html", "<p>what only this origin says</p>");

/// The host that a certificate for another host is for.
const ELSEWHERE: &str = "elsewhere.flawed.test";

/// What is wrong with a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flaw {
    /// Nothing: shows that the others are refused for their flaw alone.
    None,
    /// Its time is over.
    Expired,
    /// Its time is to come.
    NotYetValid,
    /// It is for another host.
    WrongHost,
    /// It vouches for itself.
    SelfSigned,
    /// It vouches for itself and is for another host, in the name of an authority that is trusted and with a key of another kind,
    /// as the `CN=localhost` of many a system's own packages.
    Snakeoil,
    /// Nobody knows who vouches for it.
    UnknownIssuer,
    /// An RSA key of 1024 bits.
    WeakKey,
    /// Signed over SHA-1.
    WeakSignature,
    /// Its key is for certificates and not for handshakes (RFC 5280 §4.2.1.3).
    WrongUse,
    /// Revoked, as the origin's own stapled response says (RFC 6066 §8).
    RevokedByStaple,
    /// Revoked, as its issuer's list says (RFC 5280 §5).
    RevokedByList,
}

impl Flaw {
    /// All of them, the good one first.
    pub const ALL: [Flaw; 12] = [
        Flaw::None,
        Flaw::Expired,
        Flaw::NotYetValid,
        Flaw::WrongHost,
        Flaw::SelfSigned,
        Flaw::Snakeoil,
        Flaw::UnknownIssuer,
        Flaw::WeakKey,
        Flaw::WeakSignature,
        Flaw::WrongUse,
        Flaw::RevokedByStaple,
        Flaw::RevokedByList,
    ];

    /// The first label of its host's name.
    fn label(self) -> &'static str {
        match self {
            Flaw::None => "good",
            Flaw::Expired => "expired",
            Flaw::NotYetValid => "not-yet-valid",
            Flaw::WrongHost => "wrong-host",
            Flaw::SelfSigned => "self-signed",
            Flaw::Snakeoil => "snakeoil",
            Flaw::UnknownIssuer => "unknown-issuer",
            Flaw::WeakKey => "weak-key",
            Flaw::WeakSignature => "weak-signature",
            Flaw::WrongUse => "wrong-use",
            Flaw::RevokedByStaple => "revoked-by-staple",
            Flaw::RevokedByList => "revoked-by-list",
        }
    }

    /// The host that has it.
    pub fn host(self) -> String {
        format!("{}.flawed.test", self.label())
    }

    /// What a page that names it has to say, apart from the host's name, in which it may stand as well; none of the good one.
    pub fn reason(self) -> Option<&'static str> {
        Some(match self {
            Flaw::None => return None,
            Flaw::Expired => "expired",
            Flaw::NotYetValid => "not valid before",
            Flaw::WrongHost => ELSEWHERE,
            Flaw::SelfSigned | Flaw::Snakeoil => "self-signed",
            Flaw::UnknownIssuer => "issuer",
            Flaw::WeakKey => "key",
            Flaw::WeakSignature => "signature",
            Flaw::WrongUse => "may not sign handshakes",
            Flaw::RevokedByStaple | Flaw::RevokedByList => "revoked",
        })
    }
}

/// Why the certificates are not there.
#[derive(Debug, thiserror::Error)]
pub enum FlawedError {
    /// OpenSSL is not here.
    #[error("openssl is missing: install the Debian package openssl")]
    Missing,
    /// OpenSSL refused.
    #[error("openssl {what}: {said}")]
    Refused {
        /// Its command.
        what: String,
        /// Its first line.
        said: String,
    },
    /// A file cannot be written.
    #[error("{path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// A folder with a CA, its revocation list and a certificate for every flaw.
#[derive(Debug)]
pub struct Flawed {
    folder: PathBuf,
    /// The host that all of them are for, at ports of their own; none gives each a name ([`Flaw::host`]).
    host: Option<String>,
}

impl Flawed {
    /// Makes all of it in `folder`.
    ///
    /// # Errors
    /// OpenSSL is missing or refuses.
    pub fn make(folder: &Path) -> Result<Flawed, FlawedError> {
        Flawed { folder: folder.into(), host: None }.made()
    }

    /// The same, all of them for this host.
    ///
    /// # Errors
    /// As those of [`Flawed::make`].
    pub fn make_for(folder: &Path, host: &str) -> Result<Flawed, FlawedError> {
        Flawed { folder: folder.into(), host: Some(host.into()) }.made()
    }

    fn made(self) -> Result<Flawed, FlawedError> {
        self.write("openssl.cnf", SETTINGS)?;
        for (name, text) in [("index.txt", ""), ("serial", "1000\n"), ("crlnumber", "01\n")] {
            self.write(name, text)?;
        }
        self.write(PAGE.0.trim_start_matches('/'), PAGE.1)?;
        for name in ["ca", "stranger"] {
            let made =
                format!("req -x509 -config openssl.cnf -extensions authority {NEW_KEY} -days 30 -sha256");
            self.openssl(&format!("{made} -subj /CN={name} -keyout {name}.key -out {name}.pem"))?;
        }
        for flaw in Flaw::ALL {
            self.certificate(flaw)?;
        }
        // The list is made before the other certificate is revoked, which its staple alone shall tell.
        self.revoke(Flaw::RevokedByList)?;
        self.openssl("ca -config openssl.cnf -gencrl -out revoked.pem")?;
        self.revoke(Flaw::RevokedByStaple)?;
        let leaf = Flaw::RevokedByStaple.label();
        self.openssl(&format!("ocsp -issuer ca.pem -cert {leaf}.pem -no_nonce -reqout request.der"))?;
        self.openssl(
            "ocsp -index index.txt -CA ca.pem -rsigner ca.pem -rkey ca.key -reqin request.der -respout staple.der -ndays 7",
        )?;
        Ok(self)
    }

    /// The CA that is to be believed (PEM).
    pub fn authority(&self) -> PathBuf {
        self.folder.join("ca.pem")
    }

    /// Its list of what it has revoked (PEM).
    pub fn revoked(&self) -> PathBuf {
        self.folder.join("revoked.pem")
    }

    /// The server of one host.
    pub fn server(&self, flaw: Flaw, listen: SocketAddr) -> Command {
        let leaf = flaw.label();
        let mut command = Command::new("openssl");
        // As lax as it can be: what is refused shall be refused by its client.
        command.args(["s_server", "-quiet", "-WWW", "-cipher", "DEFAULT@SECLEVEL=0", "-accept"]);
        command.arg(listen.to_string());
        command.args(["-cert", &format!("{leaf}.pem"), "-key", &format!("{leaf}.key")]);
        if flaw == Flaw::RevokedByStaple {
            command.args(["-status_file", "staple.der"]);
        }
        command.current_dir(&self.folder).stdin(Stdio::null());
        command
    }

    fn certificate(&self, flaw: Flaw) -> Result<(), FlawedError> {
        let leaf = flaw.label();
        let host = match &self.host {
            _ if matches!(flaw, Flaw::WrongHost | Flaw::Snakeoil) => ELSEWHERE.into(),
            Some(host) => host.clone(),
            None => flaw.host(),
        };
        let key = match flaw {
            Flaw::WeakKey => "-newkey rsa:1024 -nodes",
            Flaw::Snakeoil => "-newkey rsa:2048 -nodes",
            _ => NEW_KEY,
        };
        let name = if flaw == Flaw::Snakeoil { "ca" } else { host.as_str() };
        let request = format!(
            "req -config openssl.cnf {key} -subj /CN={name} -addext subjectAltName=DNS:{host} -keyout {leaf}.key -sha256"
        );
        if matches!(flaw, Flaw::SelfSigned | Flaw::Snakeoil) {
            return self.openssl(&format!("{request} -x509 -extensions leaf -days 7 -out {leaf}.pem"));
        }
        self.openssl(&format!("{request} -new -out {leaf}.csr"))?;
        if flaw == Flaw::UnknownIssuer {
            return self.openssl(&format!(
                "x509 -req -in {leaf}.csr -CA stranger.pem -CAkey stranger.key -CAcreateserial -days 7 -sha256 \
                 -copy_extensions copy -extfile openssl.cnf -extensions leaf -out {leaf}.pem"
            ));
        }
        let time = match flaw {
            Flaw::Expired => "-startdate 20200101000000Z -enddate 20200201000000Z",
            Flaw::NotYetValid => "-startdate 20980101000000Z -enddate 20980201000000Z",
            _ => "-days 7",
        };
        let hash = if flaw == Flaw::WeakSignature { "sha1" } else { "sha256" };
        let uses = if flaw == Flaw::WrongUse { "misused" } else { "leaf" };
        self.openssl(&format!(
            "ca -config openssl.cnf -batch -notext {time} -md {hash} -extensions {uses} -in {leaf}.csr -out {leaf}.pem"
        ))
    }

    fn revoke(&self, flaw: Flaw) -> Result<(), FlawedError> {
        self.openssl(&format!("ca -config openssl.cnf -revoke {}.pem", flaw.label()))
    }

    fn write(&self, name: &str, text: &str) -> Result<(), FlawedError> {
        let path = self.folder.join(name);
        std::fs::write(&path, text).map_err(|source| FlawedError::Write { path, source })
    }

    /// Runs OpenSSL in the folder; no argument has a blank in it.
    fn openssl(&self, arguments: &str) -> Result<(), FlawedError> {
        let mut command = Command::new("openssl");
        command.args(arguments.split_ascii_whitespace()).current_dir(&self.folder).stdin(Stdio::null());
        let output = command.output().map_err(|_| FlawedError::Missing)?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it said nothing").to_owned();
        Err(FlawedError::Refused { what: arguments.split(' ').next().unwrap_or_default().to_owned(), said })
    }
}

const NEW_KEY: &str = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";

/// OpenSSL's own settings, so that the machine's do not matter.
const SETTINGS: &str = "[req]
distinguished_name = name
[name]
[authority]
basicConstraints = critical, CA:true
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[leaf]
basicConstraints = critical, CA:false
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
[misused]
basicConstraints = critical, CA:false
keyUsage = critical, keyCertSign
extendedKeyUsage = serverAuth
[ca]
default_ca = lab
[lab]
database = index.txt
new_certs_dir = .
serial = serial
crlnumber = crlnumber
certificate = ca.pem
private_key = ca.key
default_md = sha256
default_crl_days = 7
unique_subject = no
policy = any
copy_extensions = copy
x509_extensions = leaf
[any]
commonName = supplied
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flaw_has_a_certificate_a_key_and_a_host_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let flawed = match Flawed::make(folder.path()) {
            Err(FlawedError::Missing) => {
                eprintln!("skipped: openssl is not installed");
                return;
            }
            made => made.unwrap(),
        };
        assert!(flawed.authority().is_file() && flawed.revoked().is_file());
        let mut hosts: Vec<_> = Flaw::ALL.iter().map(|flaw| flaw.host()).collect();
        for flaw in Flaw::ALL {
            for kind in ["pem", "key"] {
                let file = folder.path().join(format!("{}.{kind}", flaw.label()));
                assert!(std::fs::metadata(&file).unwrap().len() > 0, "{}", file.display());
            }
        }
        hosts.dedup();
        assert_eq!(hosts.len(), Flaw::ALL.len());
        let verdict = |flaw: Flaw| {
            let leaf = format!("{}.pem", flaw.label());
            let check =
                ["verify", "-CAfile", "ca.pem", "-crl_check", "-CRLfile", "revoked.pem", "-verify_hostname"];
            let mut command = Command::new("openssl");
            command.args(check).arg(flaw.host()).arg(leaf).current_dir(folder.path());
            let output = command.output().unwrap();
            String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
        };
        for (flaw, said) in [
            (Flaw::None, "good.pem: OK"),
            (Flaw::Expired, "has expired"),
            (Flaw::NotYetValid, "not yet valid"),
            (Flaw::WrongHost, "hostname mismatch"),
            (Flaw::SelfSigned, "self-signed"),
            (Flaw::Snakeoil, "hostname mismatch"),
            (Flaw::UnknownIssuer, "unable to get local issuer"),
            (Flaw::RevokedByList, "certificate revoked"),
            // What its staple tells is in no list.
            (Flaw::RevokedByStaple, "OK"),
        ] {
            assert!(verdict(flaw).contains(said), "{flaw:?}: {}", verdict(flaw));
        }
    }
}
