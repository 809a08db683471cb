//! The programs whose traffic is captured, each doing what people do with it: client at the users' side, server at the internet's.

use std::cell::Cell;
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use farhop_compare::{Besides, Browsing, Plan, Scene, Variant, Wanted};
use farhop_diffserv::Service;
use farhop_netdev::Running;
use farhop_orbit::Profile;
use farhop_testbed::{Place, Testbed};
use farhop_workload::browser::Engine;
use farhop_workload::npm;
use farhop_workload::pages::{self, Page};

use super::capture::{Capture, Heard};
use crate::MeasureError;
use crate::calls::phones::{self, Phones};
use crate::fairness;
use crate::group::Context;
use farhop_workload::programs::found;

const PAGE: &str = "photos";
/// More than a page is.
const LARGE: u64 = 20_000_000;
/// How long a case may take.
const PATIENCE: Duration = Duration::from_secs(90);
const TALK: Duration = Duration::from_secs(10);
const KEYS: usize = 60;
const KEYSTROKE: Duration = Duration::from_millis(120);
/// Ports of servers where they may choose; peers of torrents are told by what they say, so theirs is no usual one.
const TORRENT: u16 = 51_413;
const TRACKER: u16 = 6_969;
const FILMS: u16 = 80;
/// Without it sshd does not start.
const SSHD_FOLDER: &str = "/run/sshd";

/// What is done by which program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    CurlPage,
    CurlLarge,
    Chromium,
    SshKeys,
    SshFile,
    Sipp,
    Iperf,
    Torrent,
    Player,
}

impl Case {
    pub(super) const ALL: [Case; 9] = [
        Case::CurlPage,
        Case::CurlLarge,
        Case::Chromium,
        Case::SshKeys,
        Case::SshFile,
        Case::Sipp,
        Case::Iperf,
        Case::Torrent,
        Case::Player,
    ];

    pub(super) fn what(self) -> &'static str {
        match self {
            Case::CurlPage => "curl, a page",
            Case::CurlLarge => "curl, a file of 20 MB",
            Case::Chromium => "Chromium, a page over HTTPS",
            Case::SshKeys => "ssh, keystrokes",
            Case::SshFile => "ssh, a file of 20 MB",
            Case::Sipp => "SIPp, a call of G.729",
            Case::Iperf => "iperf3, 20 MB",
            Case::Torrent => "aria2, a torrent",
            Case::Player => "ffmpeg, a film over HLS",
        }
    }

    /// What its flows are, but for names and speech.
    pub(super) fn service(self) -> Service {
        match self {
            Case::CurlPage | Case::Chromium => Service::Web,
            Case::CurlLarge | Case::SshFile | Case::Iperf => Service::Bulk,
            Case::SshKeys | Case::Sipp => Service::Interactive,
            Case::Torrent => Service::Background,
            Case::Player => Service::Streaming,
        }
    }

    /// Whether flows of this kind are what it is about.
    pub(super) fn is_of(self, service: Service) -> bool {
        service == self.service() || (self == Case::Sipp && service == Service::Voice)
    }
}

/// Where they meet: a link that is in nobody's way, the lab's origins behind it.
pub(super) struct Stage {
    scene: Scene,
    page: Page,
    _pages: tempfile::TempDir,
    folder: tempfile::TempDir,
    /// sshd's own was not there.
    made_folder: Cell<bool>,
}

impl Drop for Stage {
    fn drop(&mut self) {
        if self.made_folder.get() {
            let _ = std::fs::remove_dir(SSHD_FOLDER);
        }
    }
}

impl Stage {
    pub(super) fn up(context: &Context) -> Result<Stage, MeasureError> {
        let profile = Profile::named("none").map_err(|error| MeasureError::Unexpected(error.to_string()))?;
        let failed = MeasureError::system("a folder");
        let (pages, folder) = (tempfile::tempdir().map_err(&failed)?, tempfile::tempdir().map_err(&failed)?);
        let page = pages::build(PAGE, pages.path(), &npm::cache_folder());
        let page = page.map_err(|error| MeasureError::Unexpected(error.to_string()))?;
        let plan = Plan {
            pages: vec![page.clone()],
            variants: vec![Variant::DirectH2],
            runs: 1,
            timeout: PATIENCE,
            tls: false,
        };
        let scene = Scene::up(&profile, 1, &plan, Besides::default(), context.interrupt.clone())?;
        fairness::serve(&scene.testbed)?;
        Ok(Stage { scene, page, _pages: pages, folder, made_folder: Cell::new(false) })
    }

    /// Does it, and hears what passes meanwhile.
    pub(super) fn heard(&self, case: Case, context: &Context) -> Result<Heard, MeasureError> {
        let folder = self.folder.path();
        let prepared = self.prepare(case, folder, context)?;
        let capture = Capture::begin(&self.scene.testbed, folder, context)?;
        self.run(case, folder, context)?;
        let heard = capture.end(context)?;
        drop(prepared);
        Ok(heard)
    }

    fn testbed(&self) -> &Testbed {
        &self.scene.testbed
    }

    fn server(&self) -> SocketAddr {
        fairness::server_of(self.testbed())
    }

    /// The servers that a case needs.
    fn prepare(&self, case: Case, folder: &Path, context: &Context) -> Result<Vec<Running>, MeasureError> {
        let at = self.server().ip().to_string();
        let mut running = Vec::new();
        match case {
            Case::SshKeys | Case::SshFile => {
                // Where it parts with its rights.
                if std::fs::create_dir(SSHD_FOLDER).is_ok() {
                    self.made_folder.set(true);
                }
                running.push(self.start(Place::Origins, sshd(folder, &at)?)?);
            }
            Case::Iperf => running.push(self.start(Place::Origins, program("iperf3", &["-s", "-B", &at])?)?),
            Case::Torrent => {
                let shared = folder.join("shared");
                std::fs::create_dir_all(&shared).map_err(MeasureError::system("a folder"))?;
                torrent(folder, &shared, SocketAddr::new(self.server().ip(), TRACKER))?;
                self.track()?;
                let mut command = aria(&shared, folder)?;
                command.arg(format!("--listen-port={TORRENT}"));
                command.args(["--seed-ratio=0.0", "--check-integrity=true"]);
                running.push(self.start(Place::Origins, command)?);
            }
            Case::Player => {
                let films = folder.join("films");
                std::fs::create_dir_all(&films).map_err(MeasureError::system("a folder"))?;
                film(&films)?;
                let films = films.display().to_string();
                let port = FILMS.to_string();
                let serve = ["-m", "http.server", &port, "--bind", &at, "--directory", &films];
                running.push(self.start(Place::Origins, program("python3", &serve)?)?);
            }
            Case::CurlPage | Case::CurlLarge | Case::Chromium | Case::Sipp => {}
        }
        if !running.is_empty() {
            context.interrupt.sleep(Duration::from_secs(2))?;
        }
        Ok(running)
    }

    fn run(&self, case: Case, folder: &Path, context: &Context) -> Result<(), MeasureError> {
        let server = self.server();
        let at = server.ip().to_string();
        match case {
            Case::CurlPage | Case::CurlLarge => {
                let size = if case == Case::CurlPage { 20_000 } else { LARGE };
                let url = format!("http://{server}/{size}");
                self.finish(program("curl", &["-s", "-o", "/dev/null", &url])?, context)
            }
            Case::Chromium => {
                let wanted = Wanted {
                    page: &self.page,
                    variant: Variant::DirectH2,
                    secure: true,
                    proxy: None,
                    timeout: PATIENCE,
                    filmed: false,
                };
                Browsing::of(&self.scene, Engine::Chromium)?.load(&self.scene, &wanted)?;
                Ok(())
            }
            Case::SshKeys => self.type_keys(ssh(folder, &at, &["-tt", "cat"])?, context),
            Case::SshFile => {
                let bytes = LARGE.to_string();
                self.finish(ssh(folder, &at, &["head", "-c", &bytes, "/dev/zero"])?, context)
            }
            Case::Sipp => {
                if let Some(package) = phones::lacking() {
                    return Err(lacking(package));
                }
                let _phones = Phones::call(self.testbed(), folder, 1)?;
                Ok(context.interrupt.sleep(TALK)?)
            }
            Case::Iperf => {
                let bytes = LARGE.to_string();
                self.finish(program("iperf3", &["-c", &at, "-n", &bytes])?, context)
            }
            Case::Torrent => {
                let own = folder.join("fetched");
                std::fs::create_dir_all(&own).map_err(MeasureError::system("a folder"))?;
                let mut command = aria(&own, folder)?;
                command.arg(format!("--listen-port={}", TORRENT + 1)).arg("--seed-time=0");
                self.finish(command, context)
            }
            Case::Player => {
                let url = format!("http://{at}:{FILMS}/master.m3u8");
                let play = ["-nostdin", "-loglevel", "error", "-re", "-i", &url, "-f", "null", "-"];
                self.finish(program("ffmpeg", &play)?, context)
            }
        }
    }

    fn start(&self, place: Place, mut command: Command) -> Result<Running, MeasureError> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(self.testbed().spawn_in(place, command)?)
    }

    /// Runs it at the client to its end.
    fn finish(&self, command: Command, context: &Context) -> Result<(), MeasureError> {
        let name = command.get_program().to_string_lossy().into_owned();
        let mut running = self.start(Place::Client, command)?;
        let begin = Instant::now();
        loop {
            match running.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => {
                    return Err(MeasureError::Unexpected(format!("{name} failed: {status}")));
                }
                Ok(None) if begin.elapsed() > PATIENCE => {
                    return Err(MeasureError::Unexpected(format!("{name} does not end")));
                }
                Ok(None) => context.interrupt.sleep(Duration::from_millis(100))?,
                Err(error) => return Err(MeasureError::system("a program")(error)),
            }
        }
    }

    /// Somebody at a keyboard.
    fn type_keys(&self, mut command: Command, context: &Context) -> Result<(), MeasureError> {
        let failed = MeasureError::system("ssh");
        self.testbed().namespace(Place::Client).prepare(&mut command);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(&failed)?;
        let mut keyboard = child.stdin.take();
        let typed = (0..KEYS).try_for_each(|number| -> Result<(), MeasureError> {
            if let Some(keyboard) = &mut keyboard {
                let key = if number % 10 == 9 { b"\n" } else { b"a" };
                keyboard.write_all(key).and_then(|()| keyboard.flush()).map_err(&failed)?;
            }
            Ok(context.interrupt.sleep(KEYSTROKE)?)
        });
        drop(keyboard);
        let _ = child.kill();
        let _ = child.wait();
        typed
    }

    /// Tells who asks of the one who has all of it.
    fn track(&self) -> Result<(), MeasureError> {
        let seeder = SocketAddr::new(self.server().ip(), TORRENT);
        let at = SocketAddr::new(self.server().ip(), TRACKER);
        let listen = || TcpListener::bind(at);
        let listener = self.testbed().namespace(Place::Origins).run(listen);
        let listener = listener.map_err(farhop_testbed::Error::from)?;
        let listener = listener.map_err(MeasureError::system("a tracker"))?;
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut head = [0; 2048];
                let _ = std::io::Read::read(&mut stream, &mut head);
                let _ = stream.write_all(&tracked(seeder));
            }
        });
        Ok(())
    }
}

/// BEP 3, with peers as BEP 23 has them.
fn tracked(seeder: SocketAddr) -> Vec<u8> {
    let mut body = b"d8:intervali60e5:peers6:".to_vec();
    if let std::net::IpAddr::V4(address) = seeder.ip() {
        body.extend(address.octets());
    }
    body.extend(seeder.port().to_be_bytes());
    body.extend(b"e");
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    [head.into_bytes(), body].concat()
}

fn lacking(package: &str) -> MeasureError {
    MeasureError::Unexpected(format!("not present: install '{package}'"))
}

fn program(name: &str, arguments: &[&str]) -> Result<Command, MeasureError> {
    let package = match name {
        "aria2c" => "aria2",
        "sshd" => "openssh-server",
        "ssh" | "ssh-keygen" => "openssh-client",
        other => other,
    };
    let mut command = Command::new(found(name).ok_or_else(|| lacking(package))?);
    command.args(arguments);
    Ok(command)
}

/// A server with keys of its own, in a folder of its own.
fn sshd(folder: &Path, at: &str) -> Result<Command, MeasureError> {
    let failed = MeasureError::system("keys for ssh");
    let key = |name: &str| -> Result<PathBuf, MeasureError> {
        let file = folder.join(name);
        if !file.exists() {
            let mut make = program("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f"])?;
            make.arg(&file).stdin(Stdio::null()).status().map_err(&failed)?;
        }
        Ok(file)
    };
    let (host, user) = (key("host")?, key("user")?);
    let allowed = folder.join("allowed");
    std::fs::copy(user.with_extension("pub"), &allowed).map_err(&failed)?;
    std::fs::set_permissions(&allowed, std::fs::Permissions::from_mode(0o600)).map_err(&failed)?;
    let mut command = program("sshd", &["-D", "-f", "/dev/null"])?;
    let options = [
        format!("ListenAddress={at}"),
        format!("HostKey={}", host.display()),
        format!("AuthorizedKeysFile={}", allowed.display()),
        "PidFile=none".into(),
        "StrictModes=no".into(),
        "UsePAM=no".into(),
        "PermitRootLogin=prohibit-password".into(),
    ];
    for option in options {
        command.args(["-o", &option]);
    }
    Ok(command)
}

fn ssh(folder: &Path, at: &str, rest: &[&str]) -> Result<Command, MeasureError> {
    let mut command = program("ssh", &["-F", "/dev/null", "-o", "StrictHostKeyChecking=no"])?;
    command.args(["-o", "UserKnownHostsFile=/dev/null", "-o", "BatchMode=yes", "-i"]);
    command.arg(folder.join("user"));
    let (options, asked): (Vec<&str>, Vec<&str>) = rest.iter().copied().partition(|word| *word == "-tt");
    command.args(options).arg(format!("root@{at}")).args(asked);
    Ok(command)
}

/// A torrent of one piece (BEP 3), whose only peer is told by the tracker.
fn torrent(folder: &Path, shared: &Path, tracker: SocketAddr) -> Result<(), MeasureError> {
    let failed = MeasureError::system("a torrent");
    let content: Vec<u8> = (0..2_000_000u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let file = shared.join("film.bin");
    std::fs::write(&file, &content).map_err(&failed)?;
    let output = program("sha1sum", &[])?.arg(&file).output().map_err(&failed)?;
    let hex = String::from_utf8_lossy(&output.stdout).into_owned();
    let digest: Option<Vec<u8>> =
        (0..20).map(|at| u8::from_str_radix(hex.get(2 * at..2 * at + 2)?, 16).ok()).collect();
    let digest = digest.ok_or_else(|| MeasureError::Unexpected("sha1sum gives no sum".into()))?;
    let announce = format!("http://{tracker}/announce");
    let mut text =
        format!("d8:announce{}:{announce}4:infod6:lengthi{}e", announce.len(), content.len()).into_bytes();
    text.extend(b"4:name8:film.bin12:piece lengthi2097152e6:pieces20:");
    text.extend(digest);
    text.extend(b"ee");
    std::fs::write(folder.join("film.torrent"), text).map_err(&failed)
}

fn aria(into: &Path, folder: &Path) -> Result<Command, MeasureError> {
    let mut command = program("aria2c", &["--no-conf", "--enable-dht=false", "--enable-dht6=false"])?;
    command.args(["--bt-enable-lpd=false", "--enable-peer-exchange=false", "--disable-ipv6=true", "-q"]);
    command.arg(format!("--dir={}", into.display())).arg(folder.join("film.torrent"));
    Ok(command)
}

/// Twelve seconds of a test picture, in pieces of two, in one rendition.
fn film(folder: &Path) -> Result<(), MeasureError> {
    let failed = MeasureError::system("ffmpeg");
    let source = "testsrc=size=320x180:rate=25";
    let mut make = program("ffmpeg", &["-nostdin", "-y", "-loglevel", "error", "-f", "lavfi", "-i", source])?;
    // Each piece of MPEG-2 says itself how large its pictures are: it is played wherever one begins.
    make.args(["-t", "12", "-g", "50", "-c:v", "mpeg2video", "-b:v", "300k", "-f", "hls", "-hls_time", "2"]);
    make.args(["-hls_list_size", "0"]).arg(folder.join("list.m3u8"));
    let output = make.stdin(Stdio::null()).output().map_err(&failed)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let reason = said.lines().next().unwrap_or("it said nothing").to_owned();
        return Err(MeasureError::Unexpected(format!("ffmpeg makes no film: {reason}")));
    }
    let master = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=400000,RESOLUTION=320x180\nlist.m3u8\n";
    std::fs::write(folder.join("master.m3u8"), master).map_err(&failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tracker_tells_of_the_one_who_has_all_of_it() {
        let said = tracked("10.0.0.2:51413".parse().unwrap());
        let body = said.windows(4).position(|it| it == b"\r\n\r\n").unwrap() + 4;
        assert_eq!(&said[body..], b"d8:intervali60e5:peers6:\x0a\0\0\x02\xc8\xd5e");
        assert!(
            String::from_utf8_lossy(&said).contains(&format!("Content-Length: {}\r\n", said.len() - body))
        );
    }

    #[test]
    fn every_case_is_something_and_none_is_twice() {
        for (number, case) in Case::ALL.into_iter().enumerate() {
            assert!(case.is_of(case.service()) && !case.what().is_empty());
            assert!(Case::ALL[..number].iter().all(|other| other.what() != case.what()));
        }
    }
}
