//! `farhop ca`: the CA whose certificate users install, so that the remote can answer HTTPS for them.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context, anyhow, bail};
use clap::{Subcommand, ValueEnum};
use farhop_authority::{Authority, CaCertificate, Subtree, Terms, day};
use farhop_settings::RemoteSettings;

use crate::output::{say, unwritable};

const DAY: Duration = Duration::from_secs(86_400);

/// Makes and looks after the CA with which a remote answers HTTPS, where its operator and users want that.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Makes a CA in FOLDER, on the remote that will use it: its key never leaves this machine
    Init {
        /// Where it is kept; `[interception] ca` of the remote's settings names the same
        folder: PathBuf,
        /// What users read when they install it
        #[arg(long, default_value = "Farhop")]
        name: String,
        #[command(flatten)]
        scope: Scope,
    },
    /// Tells what a CA is: its name, its fingerprint, how long and for whom it is valid
    Show {
        /// The folder of the CA
        folder: PathBuf,
    },
    /// Writes the certificate, for users to install; never the key
    Export {
        /// The folder of the CA
        folder: PathBuf,
        /// PEM for most systems, DER for Windows and Android, mobileconfig for Apple's
        #[arg(long, value_enum, default_value = "pem")]
        format: Format,
        /// Where it goes; standard output where this is left out. An existing file is overwritten
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// The certificate of the CA before the last rotation, while that is carried over
        #[arg(long)]
        previous: bool,
    },
    /// Makes a successor. Users who have only the older certificate are served until the overlap ends
    Rotate {
        /// The folder of the CA
        folder: PathBuf,
        /// Days for which the older certificate is enough; 0 after a theft of the key, and all need the new one at once
        #[arg(long, value_name = "DAYS", default_value_t = 90, value_parser = clap::value_parser!(u16).range(0..=3650))]
        overlap: u16,
        /// What users read when they install it; as before where this is left out
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        scope: Scope,
        /// Lets the successor vouch for any host, though the older CA may not
        #[arg(long, conflicts_with = "permits")]
        permit_all: bool,
    },
}

#[derive(Debug, clap::Args)]
struct Scope {
    /// A domain (with all below it) or address range that it may vouch for, such as example.org or 10.0.0.0/8; any
    /// host where none is given
    #[arg(long = "permit", value_name = "HOSTS", value_parser = subtree)]
    permits: Vec<Subtree>,
    /// How many years it is valid
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=30))]
    years: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Pem,
    Der,
    Mobileconfig,
}

fn subtree(text: &str) -> Result<Subtree, String> {
    let subtree = text.parse().map_err(|error: farhop_authority::AuthorityError| error.to_string())?;
    if text.parse().is_ok_and(|host: farhop_consent::Host| host.is_public_suffix()) {
        return Err(format!("'{text}' is what the names of many sites end in; name the sites themselves"));
    }
    Ok(subtree)
}

impl Scope {
    fn lifetime(&self) -> Duration {
        u32::from(self.years) * 365 * DAY
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    match &arguments.action {
        Action::Init { folder, name, scope } => {
            let (name, lifetime) = (name.clone(), scope.lifetime());
            let terms = Terms { name, lifetime, permitted: scope.permits.clone().into() };
            let authority = Authority::create(folder, &terms)?;
            say(&description(&authority))?;
            let folder = folder.display();
            say(&format!(
                "users install what 'farhop ca export {folder}' writes, or http://farhop.internal/ gives"
            ))
        }
        Action::Show { folder } => say(&description(&Authority::load(folder)?)),
        Action::Export { folder, format, out, previous } => {
            let authority = Authority::load(folder)?;
            let certificate = match (previous, authority.bridge()) {
                (false, _) => authority.certificate(),
                (true, Some(bridge)) => &bridge.from,
                (true, None) => {
                    bail!("there is no previous CA in {}: none is carried over", folder.display())
                }
            };
            export(certificate, *format, out.as_deref())
        }
        Action::Rotate { folder, overlap, name, scope, permit_all } => {
            let older = Authority::load(folder)?;
            let certificate = older.certificate();
            let name = name.clone().unwrap_or_else(|| certificate.name().to_owned());
            let permitted = match scope.permits.as_slice() {
                [] if *permit_all => Vec::new().into(),
                [] => certificate.permitted().clone(),
                permits => permits.to_vec().into(),
            };
            let terms = Terms { name, lifetime: scope.lifetime(), permitted };
            let newer = Authority::rotate(folder, &terms, u32::from(*overlap) * DAY)?;
            say(&description(&newer))?;
            let next = match newer.bridge() {
                Some(_) => "have users install the new certificate and remove the old one",
                // Nothing vouches for it to those who have the old one alone.
                None => "have users install the new certificate at once, and remove the old one",
            };
            say(&format!("let the remote read it (SIGHUP or a restart), then {next}"))
        }
    }
}

/// The CA that a remote's settings name; `None` where it is not to intercept.
pub(crate) fn authority(settings: &RemoteSettings) -> anyhow::Result<Option<Arc<Authority>>> {
    if !settings.interception.enabled {
        return Ok(None);
    }
    let authority = Authority::load(&settings.interception.ca).context("interception.ca")?;
    Ok(Some(Arc::new(authority)))
}

/// Says in the log what an operator should know of the CA before users notice. A CA that is over stops nothing but
/// interception.
pub(crate) fn warn_of_its_end(authority: &Authority) {
    let (name, end) = (authority.certificate().subject(), authority.certificate().valid_until());
    match (authority.in_force(), end.duration_since(SystemTime::now())) {
        (Err(error), _) => tracing::error!("{error}; until then HTTPS is passed through unread"),
        (Ok(()), Ok(left)) if left < 60 * DAY => {
            tracing::warn!("the CA '{name}' expires on {}; 'farhop ca rotate' makes its successor", day(end));
        }
        _ => {}
    }
}

/// What there is to know of a CA, a line for each thing.
fn description(authority: &Authority) -> String {
    let certificate = authority.certificate();
    let mut lines = vec![
        format!("certificate  {}", certificate.subject()),
        format!("SHA-256      {}", certificate.fingerprint()),
        format!("valid        {} to {}", day(certificate.valid_from()), day(certificate.valid_until())),
        format!("vouches for  {}", certificate.permitted()),
    ];
    if let Some(bridge) = authority.bridge() {
        let (older, until) = (bridge.from.subject(), day(bridge.until));
        lines.push(format!("follows      {older}, which is enough for users until {until}"));
    }
    if let Err(error) = authority.in_force() {
        lines.push(format!("out of force {error}"));
    }
    lines.join("\n")
}

fn export(certificate: &CaCertificate, format: Format, out: Option<&Path>) -> anyhow::Result<()> {
    let bytes = match format {
        Format::Pem => certificate.pem().into_bytes(),
        Format::Der => certificate.der().to_vec(),
        Format::Mobileconfig => certificate.profile().into_bytes(),
    };
    match out {
        Some(file) => write(file, &bytes),
        None => {
            let mut out = std::io::stdout().lock();
            out.write_all(&bytes).and_then(|()| out.flush()).map_err(unwritable)
        }
    }
}

/// Writes a certificate, which everybody may read.
///
/// # Errors
/// The file is a CA's own, or the system refuses.
pub(crate) fn write(file: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    // One slip of completion in a shell would destroy the CA, and so would a link that leads there.
    let leads_to = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    if [file, &leads_to].iter().any(|file| file.file_name().is_some_and(|name| name == "ca.key")) {
        bail!("{}: this is where a CA keeps its key; choose another name", file.display());
    }
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o644)
        .open(file)
        .and_then(|mut opened| opened.write_all(bytes));
    written.map_err(|error| {
        anyhow!("{}: {error}; give a file in a folder that exists and is writable", file.display())
    })
}
