//! One attempt at one load: everything cold, Farhop's ends new, by the lab's loader or in a browser.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use farhop_compare::{
    Browsed, Browsing, CompareError, Ends, Interrupt, Peers, Scene, Standing, Tuning, Variant, Wanted,
    fast_opened,
};
use farhop_loader::{Handshake, Loaded, Loader, Names, PageGraph, Settings, TcpConnector};
use farhop_report::{Still, StudyLoad, Waterfall};
use farhop_testbed::{LoadRecord, Namespace, Place, Terminal};
use farhop_workload::browser::{Engine, Film, THROWN_AWAY};
use farhop_workload::pages::Page;
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, pem::PemObject};

use crate::dressing::{Refused, fitted, put_on, take_off};
use crate::error::PlanError;
use crate::fall;
use crate::measure::{EndsUse, Seen};
use crate::own::OwnServers;
use crate::plan::{Client, Dressing, Through, VariantSpec};

/// How often the user is asked whether it shall end.
const LOOK: Duration = Duration::from_millis(100);
/// Pictures of a film that a report keeps, at most.
const PICTURES: usize = 60;

/// What a remote that splits TCP as it passes is told. The testbed's own addresses are private, which it would leave alone; names
/// are asked past it.
const CATCHING: &str = "role = \"transport\"\nudp.enabled = false\ntransparent.enabled = true\n\
                        transparent.except = \"127.0.0.0/8\"\n";

/// Host and port of what a user asks in place of the origins.
type Proxy = Option<(String, u16)>;

/// What a load is made on and of.
pub(crate) struct Attempt<'a> {
    pub(crate) scene: &'a Scene,
    pub(crate) own: Option<&'a OwnServers>,
    /// The browser of the variant; none where it wants none, why not where there is none.
    pub(crate) browsing: Option<&'a Result<Browsing, String>>,
    /// Where programs of others are.
    pub(crate) peers: &'a Peers,
    pub(crate) variant: &'a VariantSpec,
    pub(crate) page: &'a Page,
    pub(crate) graph: &'a Arc<PageGraph>,
    pub(crate) aliases: HashMap<String, String>,
    pub(crate) filmed: bool,
}

/// What came of it.
pub(crate) struct Attempted {
    pub(crate) seen: Seen,
    pub(crate) faults: Vec<String>,
    pub(crate) waterfall: Waterfall,
    pub(crate) film: Vec<Still>,
    /// What a reader must be told of this machine.
    pub(crate) notes: Vec<String>,
}

impl Attempted {
    /// For people to look at.
    pub(crate) fn load(&self, page: &str, link: &str, variant: &str) -> StudyLoad {
        StudyLoad {
            page: page.to_owned(),
            link: link.to_owned(),
            variant: variant.to_owned(),
            waterfall: self.waterfall.clone(),
            film: self.film.clone(),
        }
    }
}

impl Attempt<'_> {
    /// Makes it; what this machine lacks is told in the `Err` of the result within.
    ///
    /// # Errors
    /// The testbed breaks, one of Farhop's ends does, or the user wants to stop.
    pub(crate) fn make(&self) -> Result<Result<Attempted, String>, PlanError> {
        let testbed = &self.scene.testbed;
        let (dressing, notes) = match fitted(testbed, &self.variant.dressing) {
            Ok(fitted) => fitted,
            Err(lacking) => return Ok(Err(lacking)),
        };
        let done = match put_on(testbed, &dressing) {
            Ok(()) => self.dressed(&dressing),
            Err(Refused::Lacks(what)) => Ok(Err(what)),
            Err(Refused::Broken(error)) => Err(error.into()),
        };
        take_off(testbed, &dressing)?;
        Ok(done?.map(|mut attempted| {
            attempted.notes.splice(0..0, notes);
            attempted
        }))
    }

    fn dressed(&self, dressing: &Dressing) -> Result<Result<Attempted, String>, PlanError> {
        let lacking = match (self.variant.client, &self.variant.through) {
            (_, Through::Peer(peer)) => peer.lacks(self.peers),
            (Client::Browser(_, variant), _) => {
                variant.lacks().map(|program| format!("not present: {program}"))
            }
            _ => None,
        };
        if let Some(reason) = lacking {
            return Ok(Err(reason));
        }
        let mut ends = self.ends(dressing)?;
        let mut peer = match self.variant.through {
            Through::Peer(peer) => Some(Standing::start(self.scene, peer, self.peers)?),
            _ => None,
        };
        let proxies = self.proxies(ends.as_ref(), peer.as_ref());
        let before = ends.as_ref().map(|ends| Ok::<_, CompareError>((ends.computed(), ends.crossed()?)));
        let before = before.transpose()?;
        let idle = peer.as_ref().map(Standing::computed);
        let mut done = match (self.variant.client, self.browsing) {
            (Client::Loader, _) => self.with_loader(&proxies)?,
            (Client::Browser(engine, variant), Some(Ok(browsing))) => {
                self.in_browser(browsing, engine, variant, proxies.first().copied())?
            }
            (Client::Browser(..), Some(Err(reason))) => return Ok(Err(reason.clone())),
            (Client::Browser(..), None) => return Ok(Err("no browser was made ready".into())),
        };
        if let (Some(ends), Some((computed, crossed))) = (&mut ends, before) {
            ends.check_alive()?;
            done.seen.ends = EndsUse::between(computed, ends.computed(), ends.peak_memory());
            let own = ends.crossed()?.saturating_sub(crossed);
            done.seen.crossed = Some(own).filter(|_| !self.is_tunnelled());
        }
        if let (Some(peer), Some(idle)) = (&mut peer, idle) {
            peer.check_alive()?;
            done.seen.ends = EndsUse::between(idle, peer.computed(), peer.peak_memory());
        }
        if let Some(ends) = ends.filter(|_| self.is_caught()) {
            // So that nothing that passes is caught for who is gone.
            ends.stop();
        }
        Ok(Ok(done))
    }

    /// What the users of each terminal ask, the first one's first; one for all where there is one alone, none where nobody is asked.
    fn proxies(&self, ends: Option<&Ends>, peer: Option<&Standing<'_>>) -> Vec<SocketAddr> {
        let is_named = !self.variant.is_at_gateway() && !self.is_caught();
        let of_peer = peer.and_then(Standing::proxy).into_iter().collect();
        if is_named { ends.map_or(of_peer, Ends::proxies) } else { Vec::new() }
    }

    fn is_caught(&self) -> bool {
        matches!(self.variant.through, Through::Farhop { caught: true, .. })
    }

    /// Farhop's ends, new, where the variant goes through them.
    fn ends(&self, dressing: &Dressing) -> Result<Option<Ends>, PlanError> {
        let Through::Farhop { variant, link, remote, stand, caught } = &self.variant.through else {
            return Ok(None);
        };
        let ground = dressing.carrier_congestion.as_ref();
        let ground = ground.map(|name| format!("tcp_congestion = {name:?}\n"));
        let tuning = Tuning {
            link: link.clone(),
            remote: if *caught { CATCHING.to_owned() + remote } else { remote.clone() },
            ground: ground.unwrap_or_default(),
            stand: *stand,
            ..Tuning::default()
        };
        Ok(Some(Ends::start_tuned(self.scene.stage(), *variant, &tuning)?))
    }

    fn in_browser(
        &self,
        browsing: &Browsing,
        engine: Engine,
        variant: Variant,
        proxy: Option<SocketAddr>,
    ) -> Result<Attempted, PlanError> {
        let visit = Wanted {
            page: self.page,
            variant,
            secure: self.variant.settings.handshake != Handshake::Plain,
            proxy,
            timeout: self.variant.settings.patience,
            // Firefox is not filmed: it has no Speed Index.
            filmed: self.filmed && engine == Engine::Chromium,
        };
        let Browsed { load, record, connections, faults, unseen, waterfall, film, .. } =
            browsing.load(self.scene, &visit)?;
        // QUIC is counted on the link, and cannot be within a tunnel.
        let quic = match (variant, self.variant.dressing.vpn) {
            (Variant::DirectH3, true) => None,
            (Variant::DirectH3, false) => Some(record.udp_flows),
            _ => Some(0),
        };
        let connections = connections.zip(quic).map(|(tcp, quic)| (tcp + quic) as usize);
        let seen = Seen::browsed(&load, film.as_ref(), record, connections);
        let notes = (unseen > 0).then(|| {
            let page = &self.page.name;
            format!("{page}: {unseen} resources in the browser were not compared: {THROWN_AWAY}, as it does with what it cannot decode")
        });
        let film = film.as_ref().map(stills).unwrap_or_default();
        let waterfall = waterfall.shortened(fall::ROWS);
        Ok(Attempted { seen, faults, waterfall, film, notes: notes.into_iter().collect() })
    }

    fn with_loader(&self, proxies: &[SocketAddr]) -> Result<Attempted, PlanError> {
        let (scene, graph, interrupt) = (self.scene, self.graph, &self.scene.interrupt);
        let mut settings = self.variant.settings.clone();
        if let Through::Farhop { variant, .. } = &self.variant.through {
            // As the lab's own check has it: what is lossy by policy.
            settings.may_recode =
                matches!(variant, Variant::Farhop | Variant::FarhopHttp | Variant::FarhopHttpep);
        }
        let names = Names::of((scene.testbed.addresses.dns, 53).into()).aliased(self.aliases.clone());
        let connector = TcpConnector::new(names);
        let loader = Loader::new(Arc::new(connector.anew()), self.roots()?)?;
        let pause = scene.testbed.link().profile().rtt() + LOOK;
        if settings.fast_open || matches!(settings.handshake, Handshake::Resumed | Handshake::ZeroRtt) {
            // Cookies are each machine's own.
            self.all_users(proxies, &|place, proxy| {
                let first = loader.over(Arc::new(connector.anew()));
                let settings = Settings { proxy, ..settings.clone() };
                let meet = || {
                    blocking(interrupt, async {
                        first.prime(graph, &settings).await.map(|()| Loaded::default())
                    })
                };
                place.run(meet).map_err(farhop_testbed::Error::from)?
            })?;
        }
        let client = scene.testbed.namespace(Place::Client);
        let opened = settings.fast_open.then(|| fast_opened(client));
        // Nothing is on the link when it begins, and everything has crossed it when it is read.
        interrupt.sleep(pause)?;
        scene.testbed.link().take_record();
        let loads = self.all_users(proxies, &|place, proxy| {
            let cold = loader.over(Arc::new(connector.anew()));
            let settings = Settings { proxy, ..settings.clone() };
            let load = || blocking(interrupt, async { Ok(cold.load(graph, &settings).await) });
            place.run(load).map_err(farhop_testbed::Error::from)?
        })?;
        interrupt.sleep(pause)?;
        let record: LoadRecord = scene.testbed.link().take_record();
        Ok(Attempted {
            faults: loads.iter().flat_map(Loaded::faults).collect(),
            waterfall: fall::of(&loads[0], graph),
            film: Vec::new(),
            notes: opened
                .filter(|before| fast_opened(client) <= *before)
                .map(|_| self.not_open())
                .into_iter()
                .collect(),
            seen: Seen::loaded(&loads, record),
        })
    }

    /// Whether what the client asks passes Farhop unseen.
    fn is_tunnelled(&self) -> bool {
        let is_secure = self.variant.settings.handshake != Handshake::Plain;
        let is_tunnel =
            matches!(self.variant.through, Through::Farhop { variant: Variant::FarhopTunnel, .. });
        is_secure && is_tunnel || self.is_caught()
    }

    /// What a reader must be told where nothing went along with a SYN.
    fn not_open(&self) -> String {
        format!(
            "{}: no connection took TCP Fast Open: the kernel, or what is in between, does not let it",
            self.variant.name
        )
    }

    /// Has every user load at the same time, each from a machine of its own; the first one's load first.
    fn all_users(
        &self,
        proxies: &[SocketAddr],
        load: &(dyn Fn(&Namespace, Proxy) -> Result<Loaded, PlanError> + Sync),
    ) -> Result<Vec<Loaded>, PlanError> {
        let testbed = &self.scene.testbed;
        let of_terminal = |number: usize| -> Proxy {
            let proxy = proxies.get(number).or(proxies.first())?;
            Some((proxy.ip().to_string(), proxy.port()))
        };
        let neighbour = (self.variant.users > 1).then(|| testbed.namespace(Place::Neighbour));
        let firsts = [testbed.namespace(Place::Client)].into_iter().chain(neighbour);
        let others = testbed.terminals().iter().map(Terminal::client).zip(1..);
        let users: Vec<(&Namespace, Proxy)> = firsts
            .map(|place| (place, 0))
            .chain(others)
            .map(|(place, number)| (place, of_terminal(number)))
            .collect();
        std::thread::scope(|scope| {
            let users: Vec<_> =
                users.into_iter().map(|(place, proxy)| scope.spawn(move || load(place, proxy))).collect();
            let panicked = |_| Err(PlanError::file("a user")(std::io::Error::other("its load panicked")));
            users.into_iter().map(|user| user.join().unwrap_or_else(panicked)).collect()
        })
    }

    /// The origins' CA, and that of the remote where it intercepts.
    fn roots(&self) -> Result<RootCertStore, PlanError> {
        let scene = self.scene;
        let mut roots = RootCertStore::empty();
        let intercepting = scene.interception.as_ref().map(|with| with.certificate.as_path());
        for file in [Some(scene.spec.ca.as_path()), intercepting].into_iter().flatten() {
            for certificate in certificates(file)? {
                roots
                    .add(certificate)
                    .map_err(|error| PlanError::file(file)(std::io::Error::other(error)))?;
            }
        }
        if let Some(own) = self.own {
            let added = roots.add(own.certificate.clone());
            added
                .map_err(|error| PlanError::file("the servers' certificate")(std::io::Error::other(error)))?;
        }
        Ok(roots)
    }
}

/// The pictures of a film, thinned out where there are too many for a report.
fn stills(film: &Film) -> Vec<Still> {
    let step = film.frames.len().div_ceil(PICTURES).max(1);
    let last = film.frames.len().saturating_sub(1);
    let kept = film.frames.iter().enumerate().filter(|(place, _)| place % step == 0 || *place == last);
    kept.map(|(_, frame)| Still {
        at_s: frame.at_ms / 1e3,
        complete: frame.complete,
        jpeg: STANDARD.encode(&frame.jpeg),
    })
    .collect()
}

/// Runs on this thread until it is done or the user wants to stop.
fn blocking(
    interrupt: &Interrupt,
    work: impl Future<Output = Result<Loaded, farhop_loader::LoaderError>>,
) -> Result<Loaded, PlanError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(PlanError::file("the loader's runtime"))?;
    runtime.block_on(async {
        let stopped = async {
            while interrupt.check().is_ok() {
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::select! {
            done = work => Ok(done?),
            () = stopped => Err(CompareError::Interrupted.into()),
        }
    })
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, PlanError> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    read.map_err(|error| PlanError::file(file)(std::io::Error::other(error)))
}
