//! Calls that cross are asked for at the link manager (`[udp] link`), as any program may that has its control socket: what one takes of
//! the carrier is set aside while it lasts, and one for which there is no room is voice no longer. Where nobody answers, calls go on
//! as if there were no manager, and `status` says so.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use farhop_control::{Client, ControlError};
use farhop_diffserv::calls::{Hop, Ip};
use farhop_events::{Bus, Event};
use farhop_units::{BitRate, Bytes};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until, timeout};

use crate::calls::Calls;

/// What a packet of speech takes inside the carrier besides the speech: what is left of RTP's header, and what the carrier puts
/// around (IPv4, UDP, numbers for repairs, QUIC with its tag, the flow's number; docs/udp.md).
pub(crate) const CARRIED: Hop = Hop { ip: Ip::V4, compressed: Some(Bytes(3)), overhead: Bytes(63) };
/// Before these a call's name is that of SIP: whoever hears the same call beside the carrier calls it otherwise.
const PREFIX: &str = "carried/";
/// A manager that does not answer for so long is away, …
const PATIENCE: Duration = Duration::from_secs(2);
/// … and is asked again after this, as is one that had no room.
const AGAIN: Duration = Duration::from_secs(5);
/// A lease is renewed when this part of it is over.
const PART: u32 = 3;

/// What is known of calls at the manager, as `status` tells it.
#[derive(Debug, Default)]
pub(crate) struct Admission(Mutex<Told>);

#[derive(Debug, Default)]
struct Told {
    link: Option<PathBuf>,
    held: usize,
    refused: usize,
    /// Why nobody answers.
    away: Option<String>,
}

impl Admission {
    /// As `status` has it; nothing where no manager is to be asked.
    pub(crate) fn status(&self) -> Value {
        let told = self.lock();
        told.link.as_ref().map_or(Value::Null, |link| {
            json!({
                "link": link.display().to_string(),
                "held": told.held,
                "refused": told.refused,
                "away": told.away,
            })
        })
    }

    /// Asks for what `calls` hears of, renews it and gives it back, until the future is dropped.
    pub(crate) async fn keep(&self, calls: &Calls, link: &Path, bus: &Bus) {
        self.lock().link = Some(link.to_owned());
        let mut desk = Desk::new(link);
        loop {
            let changed = calls.changed();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let next = desk.round(calls, bus).await;
            let refused = desk.asked.values().filter(|asked| asked.is_refused).count();
            {
                let mut told = self.lock();
                (told.held, told.refused) = (desk.asked.len() - refused, refused);
                told.away.clone_from(&desk.away);
            }
            tokio::select! {
                () = sleep_until(next) => {}
                () = changed => {}
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The way to the manager, and what was asked there.
struct Desk<'a> {
    link: &'a Path,
    client: Option<Client>,
    asked: HashMap<String, Asked>,
    away: Option<String>,
    /// Before then a manager that is away is not asked again.
    not_before: Option<Instant>,
}

/// A call for which there was an answer.
struct Asked {
    rate: BitRate,
    is_refused: bool,
    /// When it is asked for again.
    due: Instant,
}

impl<'a> Desk<'a> {
    fn new(link: &'a Path) -> Desk<'a> {
        Desk { link, client: None, asked: HashMap::new(), away: None, not_before: None }
    }

    /// Brings the manager up to what there is; gives when that is to be done again at the latest.
    async fn round(&mut self, calls: &Calls, bus: &Bus) -> Instant {
        if let Some(then) = self.not_before.filter(|then| *then > Instant::now()) {
            return then;
        }
        match self.ask_all(calls, bus).await {
            Ok(()) => (self.away, self.not_before) = (None, None),
            Err(error) => {
                if self.away.is_none() {
                    tracing::warn!(target: "farhop", "calls are not asked for at the link manager: {error}");
                }
                // Calls go on as if there were none.
                self.asked.keys().for_each(|call| calls.settle(call, false));
                self.asked.clear();
                (self.client, self.away) = (None, Some(error.to_string()));
                self.not_before = Some(Instant::now() + AGAIN);
            }
        }
        let idle = Instant::now() + AGAIN;
        self.not_before.or_else(|| self.asked.values().map(|asked| asked.due).min()).unwrap_or(idle)
    }

    async fn ask_all(&mut self, calls: &Calls, bus: &Bus) -> Result<(), ControlError> {
        let wanted = calls.wanted(Instant::now());
        let there: HashSet<&String> = wanted.iter().map(|(call, _)| call).collect();
        let over: Vec<String> = self.asked.keys().filter(|call| !there.contains(call)).cloned().collect();
        for call in over {
            let held = self.asked.remove(&call).is_some_and(|asked| !asked.is_refused);
            if held {
                // One that has lapsed is gone as well.
                let released = self.call("voice_call_release", json!({ "call": named(&call) })).await;
                released.map(drop).or_else(refused_is_fine)?;
            }
        }
        for (call, rate) in wanted {
            let now = Instant::now();
            let before = self.asked.get(&call);
            if before.is_some_and(|before| before.rate == rate && now < before.due) {
                continue;
            }
            let was_refused = before.is_some_and(|before| before.is_refused);
            let args = json!({ "call": named(&call), "rate": format!("{} bit/s", rate.0) });
            let (is_refused, due) = match self.call("new_voice_call", args).await {
                Ok(admitted) => (false, now + lease(&admitted) / PART),
                Err(ControlError::Refused(reason)) => {
                    if !was_refused {
                        let call = named(&call);
                        bus.emit(Event::VoiceCallRefused { call, rate_bps: rate.0, reason });
                    }
                    (true, now + AGAIN)
                }
                Err(error) => return Err(error),
            };
            calls.settle(&call, is_refused);
            self.asked.insert(call, Asked { rate, is_refused, due });
        }
        Ok(())
    }

    /// One command, on the connection that there is or a new one.
    async fn call(&mut self, command: &str, args: Value) -> Result<Value, ControlError> {
        let client = match self.client.take() {
            Some(client) => client,
            None => Client::connect(self.link).await?,
        };
        let client = self.client.insert(client);
        timeout(PATIENCE, client.call(command, args)).await.unwrap_or(Err(ControlError::Closed))
    }
}

/// As the manager knows it.
fn named(call: &str) -> String {
    format!("{PREFIX}{call}")
}

fn refused_is_fine(error: ControlError) -> Result<(), ControlError> {
    if matches!(error, ControlError::Refused(_)) { Ok(()) } else { Err(error) }
}

/// How long a call is kept that nobody speaks for.
fn lease(admitted: &Value) -> Duration {
    admitted.get("lease_s").and_then(Value::as_u64).map_or(AGAIN, Duration::from_secs).max(AGAIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_control::{Server, Socket};
    use farhop_packets::Ends;
    use std::sync::Arc;

    /// A manager that has room for so many bits a second; what it holds, and how often it was asked.
    #[derive(Default)]
    struct Manager {
        held: Mutex<HashMap<String, u64>>,
        asked: Mutex<usize>,
    }

    impl Manager {
        fn held(&self) -> HashMap<String, u64> {
            self.held.lock().unwrap().clone()
        }

        fn serve(self: &Arc<Manager>, at: &Path, room: u64) -> tokio::task::JoinHandle<()> {
            let (admits, releases) = (Arc::clone(self), Arc::clone(self));
            let server = Server::new(Bus::new())
                .command_with("new_voice_call", "", &["call", "rate"], move |args: Value| {
                    let manager = Arc::clone(&admits);
                    async move {
                        *manager.asked.lock().unwrap() += 1;
                        let call = args["call"].as_str().unwrap().to_owned();
                        let rate = args["rate"].as_str().unwrap().parse::<BitRate>().unwrap().0;
                        let mut held = manager.held.lock().unwrap();
                        let others: u64 =
                            held.iter().filter(|(other, _)| **other != call).map(|(_, rate)| rate).sum();
                        if others + rate > room {
                            return Err("EF is full".into());
                        }
                        held.insert(call, rate);
                        Ok(json!({ "admitted": "new", "lease_s": 60 }))
                    }
                })
                .command_with("voice_call_release", "", &["call"], move |args: Value| {
                    let manager = Arc::clone(&releases);
                    async move {
                        let call = args["call"].as_str().unwrap();
                        manager
                            .held
                            .lock()
                            .unwrap()
                            .remove(call)
                            .map_or(Err("none".into()), |_| Ok(json!({})))
                    }
                });
            let socket = Socket::open(at).unwrap();
            tokio::spawn(async move { server.serve(socket).await })
        }
    }

    fn ends(port: u16) -> Ends {
        Ends { client: format!("10.0.0.5:{port}").parse().unwrap(), to: "192.0.2.9:20000".parse().unwrap() }
    }

    /// A message of a call, with G.729 at this port where it is an offer or an answer.
    fn message(first: &str, sequence: &str, call: &str, port: u16) -> Vec<u8> {
        let sdp = format!("v=0\r\nc=IN IP4 10.0.0.5\r\nm=audio {port} RTP/AVP 18\r\na=ptime:20\r\n");
        let sdp = if port > 0 { sdp } else { String::new() };
        format!(
            "{first}\r\nVia: SIP/2.0/UDP 10.0.0.5:5060;branch=z9hG4bK74bf9\r\nFrom: <sip:a@example.org>;tag=1\r\n\
             To: <sip:b@example.org>\r\nCall-ID: {call}\r\nCSeq: {sequence}\r\n\
             Content-Type: application/sdp\r\nContent-Length: {}\r\n\r\n{sdp}",
            sdp.len()
        )
        .into_bytes()
    }

    fn begin(calls: &Calls, call: &str, port: u16) {
        let invite = message("INVITE sip:b@example.org SIP/2.0", "1 INVITE", call, port);
        calls.hear(Instant::now(), &invite);
        let answer = message("SIP/2.0 200 OK", "1 INVITE", call, port);
        calls.hear(Instant::now(), &answer);
    }

    #[tokio::test]
    async fn a_call_beyond_the_managers_share_is_voice_no_longer_and_is_once_there_is_room() {
        let folder = tempfile::tempdir().unwrap();
        let (at, manager) = (folder.path().join("link.sock"), Arc::new(Manager::default()));
        let _serving = manager.serve(&at, 40_000);
        let (calls, bus) = (Calls::default(), Bus::new());
        let (mut desk, mut told) = (Desk::new(&at), bus.subscribe());
        for (call, port) in [("a", 16_384), ("b", 16_386)] {
            begin(&calls, call, port);
            assert!(calls.speaks(Instant::now(), ends(port)), "until it is refused");
            desk.round(&calls, &bus).await;
        }
        // 20 bytes of speech and 66 around them, 50 times a second.
        assert_eq!(manager.held(), HashMap::from([("carried/a".to_owned(), 34_400)]));
        assert!(calls.speaks(Instant::now(), ends(16_384)) && !calls.is_refused(ends(16_384)));
        assert!(!calls.speaks(Instant::now(), ends(16_386)) && calls.is_refused(ends(16_386)));
        let event = told.next().await.unwrap().unwrap();
        assert!(
            matches!(&event.event, Event::VoiceCallRefused { call, reason, .. } if call == "carried/b" && reason == "EF is full"),
            "{event:?}"
        );
        // Nobody asks before it is time.
        desk.round(&calls, &bus).await;
        assert_eq!(*manager.asked.lock().unwrap(), 2);

        calls.hear(Instant::now(), &message("BYE sip:b@example.org SIP/2.0", "2 BYE", "a", 0));
        desk.asked.values_mut().for_each(|asked| asked.due = Instant::now());
        desk.round(&calls, &bus).await;
        assert_eq!(manager.held(), HashMap::from([("carried/b".to_owned(), 34_400)]));
        assert!(calls.speaks(Instant::now(), ends(16_386)) && !calls.is_refused(ends(16_386)));
    }

    #[tokio::test]
    async fn without_a_manager_calls_go_on_and_are_asked_for_once_there_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let (at, manager) = (folder.path().join("link.sock"), Arc::new(Manager::default()));
        let (calls, bus) = (Calls::default(), Bus::new());
        let mut desk = Desk::new(&at);
        begin(&calls, "a", 16_384);
        desk.round(&calls, &bus).await;
        assert!(calls.speaks(Instant::now(), ends(16_384)));
        assert!(
            desk.away.as_ref().is_some_and(|why| why.contains("no farhop answers there")),
            "{:?}",
            desk.away
        );
        let serving = manager.serve(&at, 10_000);
        desk.not_before = None;
        desk.round(&calls, &bus).await;
        assert!(desk.away.is_none() && calls.is_refused(ends(16_384)));
        // It is gone again.
        serving.abort();
        let _ = serving.await;
        desk.asked.values_mut().for_each(|asked| asked.due = Instant::now());
        desk.round(&calls, &bus).await;
        assert!(desk.away.is_some() && calls.speaks(Instant::now(), ends(16_384)));
    }
}
