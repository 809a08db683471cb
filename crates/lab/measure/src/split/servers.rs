//! Programs of others that carry 10 MB over TCP, each with its server: what is run on both sides, and with which settings.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use farhop_compare::{Interrupt, last_words, spawn};
use farhop_testbed::{Place, Running, Testbed};

use crate::MeasureError;
use farhop_workload::programs::found;

/// How long a server may take until it listens.
const PATIENCE: Duration = Duration::from_secs(20);
/// Where sshd wants an empty folder of root's, which the service that starts it otherwise makes.
const SSHD_FOLDER: &str = "/run/sshd";

/// A pair of programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A meter of rates.
    Iperf3,
    /// A file through a shell on another machine.
    Ssh,
    /// A file over a second connection, which its server names.
    Ftp,
}

impl Kind {
    pub(super) const ALL: [Kind; 3] = [Kind::Iperf3, Kind::Ssh, Kind::Ftp];

    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Iperf3 => "iperf3",
            Kind::Ssh => "ssh",
            Kind::Ftp => "ftp",
        }
    }

    /// What it needs, with the Debian packages that bring it.
    fn programs(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Kind::Iperf3 => &[("iperf3", "iperf3")],
            Kind::Ssh => {
                &[("ssh", "openssh-client"), ("ssh-keygen", "openssh-client"), ("sshd", "openssh-server")]
            }
            Kind::Ftp => &[("curl", "curl"), ("vsftpd", "vsftpd")],
        }
    }

    /// The package that the machine lacks.
    pub(super) fn lacking(self) -> Option<&'static str> {
        self.programs().iter().find(|(program, _)| found(program).is_none()).map(|(_, package)| *package)
    }

    /// Connections that it opens one after the other.
    pub(super) fn connections(self) -> u32 {
        match self {
            Kind::Ssh => 1,
            Kind::Iperf3 | Kind::Ftp => 2,
        }
    }

    fn port(self) -> u16 {
        match self {
            Kind::Iperf3 => 5201,
            Kind::Ssh => 22,
            Kind::Ftp => 21,
        }
    }
}

/// A server that runs, and what its client needs to know.
pub(super) struct Server {
    kind: Kind,
    folder: PathBuf,
    address: IpAddr,
    // Ends before what it lives in.
    _running: Running,
    _sshd_folder: Option<Made>,
}

/// A folder of the machine that was not there before.
struct Made(&'static str);

impl Drop for Made {
    fn drop(&mut self) {
        let _ = fs::remove_dir(self.0); // whoever has put something into it needs it
    }
}

impl Server {
    /// Starts it at `address` with these files to give, and waits until it listens.
    ///
    /// # Errors
    /// It does not; with its last words.
    pub(super) fn start(
        kind: Kind,
        testbed: &Testbed,
        address: IpAddr,
        folder: &Path,
        interrupt: &Interrupt,
    ) -> Result<Server, MeasureError> {
        let failed = MeasureError::system("the server's settings");
        let sshd_folder = match kind {
            Kind::Ssh if !Path::new(SSHD_FOLDER).exists() => {
                fs::create_dir(SSHD_FOLDER).map_err(&failed)?;
                Some(Made(SSHD_FOLDER))
            }
            _ => None,
        };
        let command = command(kind, address, folder).map_err(&failed)?;
        let stderr = folder.join(format!("{}.stderr", kind.name()));
        let mut running = spawn(testbed, Place::Origins, command, &stderr)?;
        let (at, deadline) = (SocketAddr::new(address, kind.port()), Instant::now() + PATIENCE);
        loop {
            let listens = testbed.namespace(Place::Origins).run(|| TcpStream::connect(at));
            if listens.map_err(farhop_testbed::Error::from)?.is_ok() {
                let folder = folder.to_owned();
                return Ok(Server { kind, folder, address, _running: running, _sshd_folder: sshd_folder });
            }
            if running.try_wait().ok().flatten().is_some() || Instant::now() > deadline {
                let said = last_words(&stderr);
                return Err(MeasureError::Unexpected(format!("{} does not listen: {said}", kind.name())));
            }
            interrupt.sleep(Duration::from_millis(50))?;
        }
    }

    /// What it is called.
    pub(super) fn name(&self) -> &'static str {
        self.kind.name()
    }

    /// The client that has so many bytes come over, as the file `name` in which they are; into `to`, if it keeps them.
    pub(super) fn client(&self, name: &str, bytes: u64, to: &Path) -> Command {
        let Server { kind, folder, address, .. } = self;
        let at = |name: &str| folder.join(name).display().to_string();
        let to = to.display();
        match kind {
            Kind::Iperf3 => {
                let mut command = Command::new("iperf3");
                // Pieces no larger than what is wanted: it sends whole ones.
                let piece = bytes.min(10_000).to_string();
                command.args(["--reverse", "--client", &address.to_string()]);
                command.args(["--bytes", &bytes.to_string(), "--length", &piece]);
                command
            }
            Kind::Ssh => {
                let mut command = Command::new("sh");
                let (key, file) = (at("client.key"), at(name));
                command.arg("-c").arg(format!(
                    "exec ssh -F none -i '{key}' -o IdentitiesOnly=yes -o BatchMode=yes -o LogLevel=ERROR \
                     -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null root@{address} \"cat '{file}'\" \
                     >'{to}'"
                ));
                command
            }
            Kind::Ftp => {
                let mut command = Command::new("curl");
                command.args(["--silent", "--show-error", "--noproxy", "*", "--output", &to.to_string()]);
                command.arg(format!("ftp://{address}/{name}"));
                command
            }
        }
    }
}

/// The server's side; its settings are written.
fn command(kind: Kind, address: IpAddr, folder: &Path) -> io::Result<Command> {
    let at = |name: &str| folder.join(name).display().to_string();
    let program = |name: &str| Command::new(found(name).unwrap_or_else(|| name.into()));
    let mut command;
    match kind {
        Kind::Iperf3 => {
            command = program("iperf3");
            command.args(["--server", "--bind", &address.to_string()]);
        }
        Kind::Ssh => {
            for key in ["host.key", "client.key"] {
                let made =
                    program("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &at(key)]).status()?;
                if !made.success() {
                    return Err(io::Error::other(format!("ssh-keygen: {made}")));
                }
            }
            let mut settings = String::new();
            for (name, value) in [
                ("ListenAddress", address.to_string()),
                ("HostKey", at("host.key")),
                ("AuthorizedKeysFile", at("client.key.pub")),
                ("PermitRootLogin", "yes".into()),
                ("StrictModes", "no".into()),
                ("UsePAM", "no".into()),
                ("PidFile", "none".into()),
            ] {
                let _ = writeln!(settings, "{name} {value}");
            }
            fs::write(folder.join("sshd.conf"), settings)?;
            command = program("sshd");
            command.args(["-D", "-e", "-f", &at("sshd.conf")]);
        }
        Kind::Ftp => {
            // It serves as a user who owns nothing here, and nothing that this one could write to.
            fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
            fs::create_dir_all(folder.join("empty"))?;
            let mut settings = String::new();
            for (name, value) in [
                ("listen", "YES".to_owned()),
                ("listen_address", address.to_string()),
                ("background", "NO".into()),
                ("anonymous_enable", "YES".into()),
                ("no_anon_password", "YES".into()),
                ("anon_root", folder.display().to_string()),
                ("secure_chroot_dir", at("empty")),
                ("isolate", "NO".into()),
                ("isolate_network", "NO".into()),
                ("seccomp_sandbox", "NO".into()),
            ] {
                let _ = writeln!(settings, "{name}={value}");
            }
            fs::write(folder.join("vsftpd.conf"), settings)?;
            command = program("vsftpd");
            command.arg(folder.join("vsftpd.conf"));
        }
    }
    Ok(command)
}
