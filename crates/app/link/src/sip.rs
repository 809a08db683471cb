//! Calls that announce themselves: SIP is overheard at the device, and what becomes of its calls is done as if it had been
//! asked for over the control socket. It is no party to any call and stops none; one that is refused speaks all the same, among
//! what no rule knows.
//!
//! ```text
//! packets ──▶ Datagram, or Segment ──▶ Connections ──▶ Observer ──▶ admit, release   (core/sip reads, the manager decides)
//! counts of media ─────────────────────▶ renew                (who speaks is still there)
//! room for one that was refused ───────▶ admit                (it may speak for long yet)
//! lapsed, refused for an hour ─────────▶ forget               (a BYE that did not pass)
//! ```

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use farhop_diffserv::calls::{CallId, Offer};
use farhop_events::Event;
use farhop_sip::{Change, Connections, Datagram, Message, Observer, Segment, Speech};
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, sleep_until};

use crate::config::{CallTerms, SipTerms};
use crate::device::Device;
use crate::manager::Manager;
use crate::run::blocking;

/// Calls of this observer's are named so, before the name that it has for them: nothing that passes may end a call of somebody else's.
const OURS: &str = "sip/";
/// How often it is looked what rings for too long, and whether a device that could not be listened to can.
const LOOK: Duration = Duration::from_secs(1);
/// How long a call that was refused is tried again: longer than most calls are. What it gets then it loses after a lease, where
/// nobody speaks any more.
const WANTED: Duration = Duration::from_secs(3600);
/// Of a lease, how often it is asked who still speaks.
const ASKED_IN_A_LEASE: u32 = 4;

/// What is known of the calls that pass.
pub(crate) struct Watcher {
    terms: SipTerms,
    connections: Connections,
    observer: Observer,
    /// Calls that are told of, and what each was refused last.
    told: HashMap<String, Option<Refused>>,
    /// Packets of each of the media, when they were last counted.
    passed: HashMap<SocketAddr, u64>,
    /// Datagrams, and what stood on connections, that were no messages, and of which nobody has been told yet.
    ignored: u64,
}

/// What a call wants and was refused: the whole of its rate, or of one that holds another a change. None where it is no call.
struct Refused {
    offer: Option<Offer>,
    at: Duration,
}

impl Watcher {
    /// Takes up the calls that an earlier manager had admitted.
    fn new(terms: SipTerms, manager: &Manager) -> Watcher {
        let mut watcher = Watcher {
            terms,
            connections: Connections::default(),
            observer: Observer::default(),
            told: HashMap::new(),
            passed: HashMap::new(),
            ignored: 0,
        };
        for offer in manager.offers() {
            let id = offer.id.to_string();
            if let Some(call) = id.strip_prefix(OURS) {
                watcher.told.insert(call.into(), None);
                watcher.observer.take_up(call);
            }
        }
        watcher
    }

    /// Takes a packet that has passed at `now`.
    fn handle_packet(&mut self, now: Duration, manager: &Manager, packet: &[u8]) {
        if let Some(segment) = Segment::read(packet) {
            if self.believes(segment.from, segment.to) {
                let mut messages = Vec::new();
                let take = |message: &[u8]| messages.push(message.to_vec());
                self.ignored += u64::from(self.connections.handle_segment(now, &segment, take));
                for message in messages {
                    self.handle_content(now, manager, &message);
                }
            }
            return;
        }
        let Some(datagram) = Datagram::read(packet) else {
            self.ignored += 1;
            return;
        };
        let content = datagram.content;
        // RFC 5626 §3.5.1: what keeps a way open is blank lines, or zeros.
        if content.iter().all(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
            return;
        }
        if self.believes(datagram.from, datagram.to) {
            self.handle_content(now, manager, content);
        }
    }

    /// Whether what passes between these may announce calls.
    fn believes(&self, from: SocketAddr, to: SocketAddr) -> bool {
        let is_trusted = |address: SocketAddr| self.terms.from.iter().any(|net| net.contains(address.ip()));
        self.terms.from.is_empty() || is_trusted(from) || is_trusted(to)
    }

    fn handle_content(&mut self, now: Duration, manager: &Manager, content: &[u8]) {
        match Message::read(content) {
            Some(message) => {
                if let Some(change) = self.observer.handle_message(now, &message) {
                    self.follow(now, manager, change);
                }
            }
            None => self.ignored += 1,
        }
    }

    fn follow(&mut self, now: Duration, manager: &Manager, change: Change) {
        match change {
            Change::Speaks(speech) => {
                let call = speech.call.clone();
                let offer = offer(speech, manager.terms()).ok();
                let is_admitted = offer.clone().is_some_and(|offer| manager.admit(offer).is_ok());
                // What it held before a change that is refused it goes on to hold.
                self.told.insert(call, (!is_admitted).then_some(Refused { offer, at: now }));
            }
            Change::Over(call) => {
                self.told.remove(&call);
                if let Some(id) = id(&call) {
                    manager.give_back(&id);
                }
            }
            Change::Unplaced(call) => manager.bus().emit(Event::SipUnplaced { call }),
        }
    }

    /// Ends what rings for too long, forgets what has lapsed, and tells what was ignored.
    fn look(&mut self, now: Duration, manager: &Manager) {
        while let Some(change) = self.observer.poll_timeout(now) {
            self.follow(now, manager, change);
        }
        self.try_again(manager);
        let observer = &mut self.observer;
        self.told.retain(|call, refused| {
            let is_wanted = refused.as_ref().is_some_and(|it| now < it.at.saturating_add(WANTED));
            let stays = is_wanted || id(call).is_some_and(|id| manager.holds(&id));
            if !stays {
                observer.forget(call);
            }
            stays
        });
        let datagrams = std::mem::take(&mut self.ignored);
        if datagrams > 0 {
            manager.bus().emit(Event::SipIgnored { datagrams });
        }
    }

    /// Gives calls that were refused what they want where there is room now, those that have waited for longest first.
    fn try_again(&mut self, manager: &Manager) {
        let wants = |(call, refused): (&String, &Option<Refused>)| {
            let Refused { offer, at } = refused.as_ref()?;
            // One that is refused again is told of no more than once.
            manager.has_room(offer.as_ref()?).then(|| (*at, call.clone()))
        };
        let mut wanting: Vec<(Duration, String)> = self.told.iter().filter_map(wants).collect();
        wanting.sort_unstable();
        for (_, call) in wanting {
            let Some(refused) = self.told.get_mut(&call) else { continue };
            let offer = refused.as_ref().and_then(|it| it.offer.as_ref());
            // Those before it may have taken the room.
            let offer = offer.filter(|offer| manager.has_room(offer)).cloned();
            if offer.is_some_and(|offer| manager.admit(offer).is_ok()) {
                *refused = None;
            }
        }
    }

    /// Speaks for the calls of which packets have passed since the last time.
    fn renew(&mut self, manager: &Manager, passed: &[(SocketAddr, u64)]) {
        let now: HashMap<SocketAddr, u64> = passed.iter().copied().collect();
        // Counts begin anew whenever media are named anew.
        let moved = |media: &SocketAddr| {
            let packets = now.get(media).copied().unwrap_or(0);
            packets > 0 && self.passed.get(media) != Some(&packets)
        };
        for offer in manager.offers() {
            if offer.id.to_string().starts_with(OURS) && offer.media.iter().any(moved) {
                manager.speak_for(&offer.id);
            }
        }
        self.passed = now;
    }
}

fn id(call: &str) -> Option<CallId> {
    format!("{OURS}{call}").parse().ok()
}

fn offer(speech: Speech, terms: &CallTerms) -> Result<Offer, String> {
    let counted = speech.rate(&terms.hop).map_err(|error| error.to_string())?;
    let id = id(&speech.call).ok_or("its Call-ID is no name")?;
    // Of several the first is shown.
    let first = speech.agreed.first().or(speech.offered.first());
    let codec = first.map(|stream| (stream.codec, stream.packet_time));
    Ok(Offer { id, rate: terms.plain.unwrap_or(counted), codec, media: speech.media })
}

/// Follows the calls that pass the device, for as long as the manager runs; never ends.
pub(crate) async fn follow<D: Device>(manager: &Arc<Manager>, device: &Arc<D>) {
    let Some(terms) = manager.sip_terms().cloned() else { return std::future::pending().await };
    let (began, ports) = (Instant::now(), terms.ports.clone());
    let mut watcher = Watcher::new(terms, manager);
    let mut packets: Option<Receiver<Vec<u8>>> = None;
    let ask = (manager.terms().lease / ASKED_IN_A_LEASE).max(LOOK);
    let (mut next_look, mut next_ask) = (began, began + ask);
    loop {
        tokio::select! {
            packet = heard(&mut packets) => match packet {
                Some(packet) => watcher.handle_packet(began.elapsed(), manager, &packet),
                // The device has gone down or away.
                None => packets = None,
            },
            () = sleep_until(next_look) => {
                next_look += LOOK;
                if packets.is_none() {
                    packets = listen(manager, device, &ports);
                }
                watcher.look(began.elapsed(), manager);
            }
            () = sleep_until(next_ask) => {
                next_ask += ask;
                let interface = manager.interface().to_owned();
                // Where the classes are not in force nobody knows; the leases are long enough for that.
                if let Ok(passed) = blocking(device, move |device| device.media_passed(&interface)).await {
                    watcher.renew(manager, &passed);
                }
            }
        }
    }
}

async fn heard(packets: &mut Option<Receiver<Vec<u8>>>) -> Option<Vec<u8>> {
    match packets {
        Some(packets) => packets.recv().await,
        None => std::future::pending().await,
    }
}

fn listen<D: Device>(manager: &Manager, device: &Arc<D>, ports: &[(u16, u16)]) -> Option<Receiver<Vec<u8>>> {
    match device.overhear(manager.interface(), ports) {
        Ok(packets) => {
            manager.set_sip_trouble(None);
            Some(packets)
        }
        Err(error) => {
            manager.set_sip_trouble(Some(error.to_string()));
            None
        }
    }
}
