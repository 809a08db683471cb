//! Where a soak takes place: a testbed on a short link, origins of every kind behind it, and three ends as processes: a remote that
//! asks for passwords and intercepts, one that catches connections, and their ground.

use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use farhop_compare::{Besides, Interrupt, Plan, Scene, Variant};
use farhop_orbit::Profile;
use farhop_testbed::Place;
use farhop_testkit::{HostileOrigin, Manners, SiteOrigin};
use farhop_units::BitRate;
use farhop_workload::pages::{Page, Site};
use tokio::runtime::Runtime;

use super::end::End;
use super::settings::{DRAIN, catching, recipe, write_settings};
use super::{media, origin, pages, transfers};
use crate::MeasureError;
use crate::local::farhop;

/// The site of pages, and of all that is live.
pub(super) const HOST: &str = "live.test";
/// The port of what speaks no HTTP, and the first of those with bad manners.
pub(super) const RAW_PORT: u16 = 9000;
const HOSTILE_PORT: u16 = 9100;
pub(super) const PROXY_PORT: u16 = 3128;
/// Where the remote answers names, and the one that catches does; where speech goes.
pub(super) const NAMES_PORT: u16 = 5300;
pub(super) const VOICE_PORT: u16 = 4000;

/// Who may use the proxy: name and password, and both as a client sends them (RFC 7617 §2).
pub(super) const USERS: [(&str, &str, &str); 3] =
    [("anna", "one", "YW5uYTpvbmU="), ("ben", "two", "YmVuOnR3bw=="), ("carl", "six", "Y2FybDpzaXg=")];
/// One who comes and goes.
const GUEST: &str = "guest";

/// What clients have to know.
#[derive(Debug, Clone)]
pub(super) struct Map {
    pub(super) proxy: SocketAddr,
    pub(super) files: SocketAddr,
    pub(super) raw: SocketAddr,
    pub(super) hostile: Vec<(Manners, SocketAddr)>,
    /// The remote's name server, and who gives speech back.
    pub(super) names: SocketAddr,
    pub(super) voice: SocketAddr,
    /// The site without the proxy, for who is caught on the way.
    pub(super) site: SocketAddr,
    /// Certificates that believe the remote, rewritten with each new CA; and those of the origins' own CA.
    pub(super) trusted: PathBuf,
    pub(super) lab_ca: PathBuf,
}

/// Everything that runs. Dropped in this order: ends, origins, and last what they live in.
pub(super) struct Grounds {
    pub(super) remote: End,
    pub(super) caught: End,
    pub(super) ground: End,
    pub(super) map: Map,
    /// Where the ends keep what they write.
    pub(super) ends: PathBuf,
    ca: PathBuf,
    newest: String,
    /// Whether the newest CA does so for the one before it.
    carries_over: bool,
    _files: SiteOrigin,
    _hostile: Vec<HostileOrigin>,
    pub(super) runtime: Runtime,
    pub(super) scene: Scene,
    _site: tempfile::TempDir,
}

/// The link on a fine day: short, so that minutes load much, and no broader than two processors can fill.
pub(super) fn link() -> Profile {
    Profile::symmetric_delay("none", BitRate::mbit(40), BitRate::mbit(10), Duration::from_millis(15))
}

impl Grounds {
    pub(super) fn up(interrupt: &Interrupt, seed: u64) -> Result<Grounds, MeasureError> {
        let failed = MeasureError::system("a folder");
        let site = tempfile::tempdir().map_err(&failed)?;
        pages::write(site.path()).map_err(&failed)?;
        let page = Page { name: "soak".into(), entry: "/".into(), sites: vec![Site::new(HOST, site.path())] };
        let plan = Plan {
            pages: vec![page],
            variants: vec![Variant::Farhop],
            runs: 1,
            timeout: Duration::from_secs(60),
            tls: true,
        };
        let scene = Scene::up(&link(), seed, &plan, Besides::default(), interrupt.clone())?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(MeasureError::system("a runtime"))?;
        let at = scene.testbed.addresses;
        let raw = SocketAddr::from((at.origin(100), RAW_PORT));
        let files = SocketAddr::from((at.origin(101), 80));
        let listen = |address| listener(&scene, &runtime, address);
        runtime.spawn(origin::serve(listen(raw)?));
        let _files = {
            let listener = listen(files)?;
            let _inside = runtime.enter();
            media::add_to(transfers::site()).map_err(MeasureError::system("the files"))?.serve_on(listener)
        };
        let voice = SocketAddr::from((at.origin(100), VOICE_PORT));
        runtime.spawn(media::echo(speaking(&scene, &runtime, voice)?));
        let (mut hostile, mut _hostile) = (Vec::new(), Vec::new());
        // Who refuses is where nobody listens.
        for (manners, port) in Manners::ALL.into_iter().zip(HOSTILE_PORT..) {
            let address = SocketAddr::from((at.origin(102), port));
            if manners != Manners::Refuses {
                let listener = listen(address)?;
                let _inside = runtime.enter();
                _hostile.push(HostileOrigin::on(listener, vec![manners.script()]));
            }
            hostile.push((manners, address));
        }
        let own = scene.interception.as_ref().map(|own| own.ca.clone());
        let ca = own.ok_or_else(|| MeasureError::Unexpected("the scene has no CA".into()))?;
        let map = Map {
            proxy: (at.remote, PROXY_PORT).into(),
            files,
            raw,
            hostile,
            names: (at.remote, NAMES_PORT).into(),
            voice,
            site: (at.origin(0), 443).into(),
            trusted: scene.folder.path().join("trusted.pem"),
            lab_ca: scene.spec.ca.clone(),
        };
        let ends = scene.folder.path().join("ends");
        std::fs::create_dir(&ends).map_err(&failed)?;
        write_settings(&scene, &map, &ca, &ends)?;
        for (name, password, _) in USERS {
            add_user(&ends, name, password)?;
        }
        let newest = certificate(&ca)?;
        std::fs::write(&map.trusted, &newest).map_err(&failed)?;
        let mut grounds = Grounds {
            ground: End::start(&scene.testbed, recipe("ground", "ground", Place::Ground, &ends, Vec::new()))?,
            remote: End::start(&scene.testbed, recipe("remote", "remote", Place::Remote, &ends, Vec::new()))?,
            caught: End::start(&scene.testbed, catching(&at, &ends))?,
            map,
            ends,
            ca,
            newest,
            carries_over: false,
            _files,
            _hostile,
            runtime,
            scene,
            _site: site,
        };
        grounds.await_carriers(interrupt)?;
        Ok(grounds)
    }

    /// Waits until both remotes are connected.
    pub(super) fn await_carriers(&mut self, interrupt: &Interrupt) -> Result<(), MeasureError> {
        self.remote.await_carriers(&self.runtime, interrupt, 1)?;
        self.caught.await_carriers(&self.runtime, interrupt, 1)?;
        self.ground.await_carriers(&self.runtime, interrupt, 2)
    }

    /// Whether ground has a carrier of each remote now.
    pub(super) fn is_joined(&self) -> bool {
        self.ground.carriers(&self.runtime) >= 2
    }

    pub(super) fn names(&self) -> [&'static str; 3] {
        [self.remote.name(), self.caught.name(), self.ground.name()]
    }

    pub(super) fn each(&mut self) -> [&mut End; 3] {
        [&mut self.remote, &mut self.caught, &mut self.ground]
    }

    /// Gives the remote a new CA and its users both certificates. Every other one carries the one before over.
    pub(super) fn rotate(&mut self) -> Result<(), MeasureError> {
        let overlap = if self.carries_over { "0" } else { "90" };
        self.carries_over = !self.carries_over;
        done(farhop()?.args(["ca", "rotate", "--overlap", overlap]).arg(&self.ca), "farhop ca rotate")?;
        let newer = certificate(&self.ca)?;
        let failed = MeasureError::system("the clients' certificates");
        // Clients read it at any time: all of it or none.
        let beside = self.map.trusted.with_extension("new");
        std::fs::write(&beside, format!("{}{newer}", self.newest)).map_err(&failed)?;
        std::fs::rename(&beside, &self.map.trusted).map_err(&failed)?;
        self.newest = newer;
        Ok(())
    }

    /// Changes settings and users, and has all three read them (SIGHUP).
    pub(super) fn reload(&mut self) -> Result<(), MeasureError> {
        let failed = MeasureError::system("an end's settings");
        for file in [self.remote.settings(), self.ground.settings()] {
            let text = std::fs::read_to_string(file).map_err(&failed)?;
            let [from, to] = if text.contains(DRAIN[0]) { DRAIN } else { [DRAIN[1], DRAIN[0]] };
            std::fs::write(file, text.replace(from, to)).map_err(&failed)?;
        }
        let users = self.ends.join("users");
        match std::fs::read_to_string(&users).map_err(&failed)?.contains(GUEST) {
            true => done(farhop()?.args(["user", "remove"]).arg(&users).arg(GUEST), "farhop user remove")?,
            false => add_user(&self.ends, GUEST, "seven")?,
        }
        self.each().into_iter().try_for_each(End::hang_up)
    }

    /// The names of all that the ends have written.
    pub(super) fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.ends).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<_> = names.filter(|name| !name.ends_with(".stderr")).collect();
        names.sort();
        names
    }
}

fn speaking(
    scene: &Scene,
    runtime: &Runtime,
    address: SocketAddr,
) -> Result<tokio::net::UdpSocket, MeasureError> {
    let binding = scene.testbed.namespace(Place::Origins).run(|| UdpSocket::bind(address));
    let socket = binding.map_err(farhop_testbed::Error::from)?;
    let _inside = runtime.enter();
    let ready = socket.and_then(|socket| {
        socket.set_nonblocking(true)?;
        tokio::net::UdpSocket::from_std(socket)
    });
    ready.map_err(MeasureError::system("an origin's port"))
}

fn listener(
    scene: &Scene,
    runtime: &Runtime,
    address: SocketAddr,
) -> Result<tokio::net::TcpListener, MeasureError> {
    let listening = scene.testbed.namespace(Place::Origins).run(|| TcpListener::bind(address));
    let listener = listening.map_err(farhop_testbed::Error::from)?;
    let _inside = runtime.enter();
    let ready = listener.and_then(|listener| {
        listener.set_nonblocking(true)?;
        tokio::net::TcpListener::from_std(listener)
    });
    ready.map_err(MeasureError::system("an origin's port"))
}

fn certificate(ca: &Path) -> Result<String, MeasureError> {
    let exported = farhop()?.args(["ca", "export"]).arg(ca).output();
    let exported = exported.map_err(MeasureError::system("farhop ca export"))?;
    Ok(String::from_utf8_lossy(&exported.stdout).into_owned())
}

fn add_user(ends: &Path, name: &str, password: &str) -> Result<(), MeasureError> {
    let failed = MeasureError::system("farhop user add");
    let mut command = farhop()?;
    command.args(["user", "add"]).arg(ends.join("users")).arg(name).stdin(Stdio::piped());
    let mut adding = command.stdout(Stdio::null()).spawn().map_err(&failed)?;
    if let Some(mut stdin) = adding.stdin.take() {
        stdin.write_all(password.as_bytes()).map_err(&failed)?;
    }
    match adding.wait().map_err(&failed)?.success() {
        true => Ok(()),
        false => Err(MeasureError::Unexpected(format!("farhop user add {name} failed"))),
    }
}

fn done(command: &mut Command, what: &'static str) -> Result<(), MeasureError> {
    let output = command.stdin(Stdio::null()).output().map_err(MeasureError::system(what))?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(MeasureError::Unexpected(format!("{what}: {}", said.lines().next().unwrap_or("it failed"))))
        }
    }
}
