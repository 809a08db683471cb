//! Random histories of three users on one site, every answer held against what the origin itself would say.
//!
//! A history is a small site whose answers depend on who asks, in which language, with which `Accept`, cookies and
//! credentials, under every kind of caching rule, and a course of page loads, single requests, reloads, posts and changes
//! at the origin by users with addresses of their own. Everything follows from one number. Bodies break off. Some histories wait until
//! what they were given has ended, and have origins that fail. `judge` is the reference: it knows no cache but what the origin's own
//! fields allow and when it said them, and shares no code with what it checks.

mod judge;
mod origin;
pub(crate) mod random;
mod range;
mod reuse;
mod site;
mod user;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustls::ClientConfig;
use tokio::task::JoinSet;

use judge::Judge;
use origin::Origins;
use random::Random;
use range::Bounds;
use reuse::Wish;
use site::{Kind, Model};
use user::{Ask, Browser, User, Way};

use crate::conformance::secure::{client, identity};

/// Steps of a history, at least and at most.
const STEPS: (u64, u64) = (4, 11);
/// Findings that are kept; what follows the first few says little.
const KEPT: usize = 20;
/// Most histories at a time.
const SLOTS: u8 = 250;
/// How long those wait that do: some of what ends within seconds goes on, or all of it has ended beyond doubt.
const WAITS: [Duration; 3] =
    [Duration::from_millis(1_200), Duration::from_millis(4_500), Duration::from_millis(4_500)];
/// How often, at most.
const MOST_WAITS: u32 = 2;

/// Which histories are lived.
#[derive(Debug, Clone, Copy)]
pub struct Histories {
    /// The number of the first.
    pub first: u64,
    /// How many.
    pub count: u64,
    /// How many at a time, at most 250.
    pub concurrent: u8,
    /// One in so many waits, for some seconds, until what it was given has ended; none if this is 0.
    pub waiting: u64,
}

/// The origins that histories are lived with.
#[derive(Debug, Clone)]
pub struct Sites {
    origins: Origins,
    root: String,
    secure: bool,
}

/// What became of them.
#[derive(Debug, Default, Clone)]
pub struct Outcome {
    /// Histories lived to their end.
    pub histories: u64,
    /// Answers judged.
    pub answers: u64,
    /// Requests that reached the origin, asked and unasked.
    pub at_origin: u64,
    /// The first wrong ones, each with the number of its history, which lives it again.
    pub wrong: Vec<String>,
}

impl Sites {
    /// Starts them, in the clear.
    ///
    /// # Panics
    /// No socket is to be had.
    pub async fn start() -> Sites {
        Sites { origins: Origins::start(None).await, root: String::new(), secure: false }
    }

    /// The same over TLS, for so many histories at a time.
    ///
    /// # Panics
    /// No socket or certificate is to be had.
    pub async fn start_secure(concurrent: u8) -> Sites {
        let hosts = (1..=concurrent.clamp(1, SLOTS))
            .flat_map(|slot| (0..HOSTS).map(move |number| host(number, slot).into()));
        let (identity, root) = identity(hosts);
        Sites { origins: Origins::start(Some(identity)).await, root, secure: true }
    }

    /// The certificate of their CA (PEM), which the proxy has to trust; empty for those in the clear.
    pub fn root(&self) -> &str {
        &self.root
    }
}

/// Lives the histories through `proxy`, which has to serve clients from 127/8 and fetch from 127/8; in the clear.
///
/// # Panics
/// No socket is to be had, or the proxy cannot be reached.
pub async fn live(proxy: SocketAddr, wanted: Histories) -> Outcome {
    live_with(&Sites::start().await, proxy, "", wanted).await
}

/// The same with these sites. Those over TLS are asked inside TLS that the proxy looks into with the CA whose certificate is
/// `authority` (PEM).
///
/// # Panics
/// As [`live`], or the proxy does not look into the connections.
pub async fn live_with(sites: &Sites, proxy: SocketAddr, authority: &str, wanted: Histories) -> Outcome {
    let trust = sites.secure.then(|| client(authority, b"http/1.1"));
    let road = Road { proxy, trust, origins: sites.origins.clone() };
    let next = Arc::new(AtomicU64::new(wanted.first));
    let mut workers = JoinSet::new();
    for slot in 1..=wanted.concurrent.clamp(1, SLOTS) {
        let (road, next) = (road.clone(), next.clone());
        workers.spawn(async move {
            let mut outcome = Outcome::default();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= wanted.first + wanted.count || outcome.wrong.len() >= KEPT {
                    return outcome;
                }
                let waits = wanted.waiting > 0 && number % wanted.waiting == 0;
                one(&road, slot, number, waits, &mut outcome).await;
            }
        });
    }
    let mut all = Outcome::default();
    while let Some(part) = workers.join_next().await {
        let part = part.expect("a worker ends with its histories");
        all.histories += part.histories;
        all.answers += part.answers;
        all.at_origin += part.at_origin;
        all.wrong.extend(part.wrong);
    }
    all.wrong.truncate(KEPT);
    all
}

/// What one user does in one step.
enum Act {
    Load { page: usize, reload: bool, given_up: bool },
    Fetch { thing: usize },
    Revalidate { thing: usize, by: Ask },
    Wish { thing: usize, wish: Wish },
    Parts { thing: usize },
    Head { thing: usize },
    Post { thing: usize },
}

/// The way from users to sites.
#[derive(Clone)]
struct Road {
    proxy: SocketAddr,
    trust: Option<Arc<ClientConfig>>,
    origins: Origins,
}

/// Hosts that a slot has.
const HOSTS: u8 = 8;

fn host(number: u8, slot: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 33, number, slot)
}

async fn one(road: &Road, slot: u8, number: u64, waits: bool, outcome: &mut Outcome) {
    let mut random = Random::new(number);
    let model = Arc::new(Model::random(&mut random, waits));
    let origins = &road.origins;
    // Some histories share a host with those before and after them, so that a cache has met it.
    let host = SocketAddr::from((host((number / 8 % u64::from(HOSTS)) as u8, slot), origins.port()));
    let way = Way { proxy: road.proxy, host, trust: road.trust.clone() };
    origins.open(number, model.clone());
    let judge = Judge::new(model.clone(), origins.clone(), number);
    let mut users = Browser::ALL.map(|browser| {
        let address = Ipv4Addr::new(127, 34, slot, 1 + browser as u8);
        User::new(number, browser, address, way.clone(), judge.clone())
    });
    let mut waited = 0;
    for _ in 0..random.between(STEPS.0, STEPS.1) {
        // The moments of a history are its steps; within one, the origin does not change unless it is told to.
        judge.next_moment();
        let who = random.below(users.len() as u64) as usize;
        if waits && random.chance(1, 8) {
            judge.fail_or_mend(random.below(model.things.len() as u64) as usize);
        }
        if random.chance(1, 12) {
            judge.break_off(random.below(model.things.len() as u64) as usize);
        }
        if waits && waited < MOST_WAITS && random.chance(1, 4) {
            waited += 1;
            tokio::time::sleep(random.one_of(&WAITS)).await;
        }
        match random.below(20) {
            0..=2 => judge.change(random.below(model.things.len() as u64) as usize),
            3 => users[who].change_language(&mut random),
            4 => users[who].change_cookie(&mut random),
            5 => users[who].change_credentials(&mut random),
            6 | 7 => {
                // Two at once: what is promised to one is under way while the other asks.
                users.rotate_left(who);
                let [one, other, ..] = &mut users;
                let (first, second) = (random.act(&model, true), random.act(&model, true));
                let (mut here, mut there) = (random.fork(), random.fork());
                tokio::join!(act(one, &model, first, &mut here), act(other, &model, second, &mut there));
            }
            _ => {
                let doing = random.act(&model, false);
                act(&mut users[who], &model, doing, &mut random).await;
            }
        }
    }
    let findings = judge.findings();
    outcome.histories += 1;
    outcome.answers += findings.answers;
    outcome.at_origin += findings.at_origin;
    outcome.wrong.extend(findings.wrong.into_iter().map(|wrong| format!("history {number}: {wrong}")));
    origins.close(number);
}

impl Random {
    fn act(&mut self, model: &Model, load: bool) -> Act {
        let page = self.below(model.pages as u64) as usize;
        let thing = self.below(model.things.len() as u64) as usize;
        match self.below(if load { 12 } else { 20 }) {
            0..=9 => Act::Load { page, reload: false, given_up: false },
            10 => Act::Load { page, reload: true, given_up: false },
            11 => Act::Load { page, reload: false, given_up: true },
            12..=14 => Act::Fetch { thing },
            15 => Act::Revalidate { thing, by: self.one_of(&[Ask::IfNoneMatch, Ask::IfModifiedSince]) },
            16 => Act::Wish { thing, wish: Wish::random(self) },
            17 => Act::Parts { thing },
            18 => Act::Head { thing },
            _ => Act::Post { thing },
        }
    }
}

async fn act(user: &mut User, model: &Model, act: Act, random: &mut Random) {
    match act {
        Act::Load { page, given_up: true, .. } => user.give_up(page).await,
        Act::Load { page, reload, .. } => {
            user.load(page, reload).await;
            // What a page names is asked for together, most of it.
            let named = |things: &[usize], random: &mut Random| -> Vec<usize> {
                things.iter().copied().filter(|_| random.below(5) > 0).collect()
            };
            // A browser that was here before asks whether what it holds has changed; one that reloads past caches does not.
            let asks = !reload && random.chance(1, 3);
            let ask =
                if asks { random.one_of(&[Ask::IfNoneMatch, Ask::IfModifiedSince]) } else { Ask::Plain };
            let first = named(&model.things[page].names, random);
            user.fetch_all(page, &first, ask).await;
            for style in first.into_iter().filter(|thing| model.things[*thing].kind == Kind::Style) {
                let second = named(&model.things[style].names, random);
                user.fetch_all(style, &second, ask).await;
            }
        }
        Act::Fetch { thing } => user.ask(thing, Ask::Plain).await,
        Act::Revalidate { thing, by } => user.ask(thing, by).await,
        Act::Wish { thing, wish } => user.wish(thing, wish).await,
        Act::Parts { thing } => {
            for _ in 0..random.between(1, 4) {
                let bounds = Bounds::random(random);
                let ask = if random.chance(1, 4) { Ask::IfRange(bounds) } else { Ask::Range(bounds) };
                user.ask(thing, ask).await;
            }
            if random.chance(1, 2) {
                user.ask(thing, Ask::Plain).await;
            }
        }
        Act::Head { thing } => user.ask(thing, Ask::Head).await,
        Act::Post { thing } => user.ask(thing, Ask::Post).await,
    }
}
