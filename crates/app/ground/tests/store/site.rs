//! An origin whose answers change, a folder that outlives its grounds, and what a remote asks.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{Origin, Pair, Peer, Reply, event, request};
use farhop_events::Event;
use farhop_htotp::RequestHead;
use farhop_htotp::session::Ask;
use farhop_store::{Disk, DiskOptions, Key};
use http::Method;
use tokio::time::sleep;

/// Fields and body by path.
pub(crate) type Answers = Arc<Mutex<HashMap<String, (String, Vec<u8>)>>>;
/// Fields of a request.
pub(crate) type Fields<'a> = &'a [(&'a str, &'a str)];

/// An origin whose answers the test changes: fields and body by path. A question with their tag is answered with 304, in which
/// fields are besides whose names begin with `again-`.
pub(crate) struct Site {
    pub origin: Origin,
    answers: Answers,
}

impl Site {
    pub(crate) async fn start() -> Site {
        let answers = Answers::default();
        let served = Arc::clone(&answers);
        let origin = Origin::start(move |mut peer: Peer| {
            let (fields, body) = served.lock().unwrap()[peer.path()].clone();
            async move {
                let tag = fields.split('|').map(str::trim).find_map(|field| field.strip_prefix("etag: "));
                let asked = peer
                    .head
                    .lines()
                    .find_map(|line| line.strip_prefix("if-none-match: "))
                    .map(str::to_owned);
                if let (Some(tag), Some(asked)) = (tag, asked)
                    && asked.split(',').any(|one| one.trim().trim_start_matches("w/") == tag)
                {
                    let more = fields.split('|').filter_map(|field| field.trim().strip_prefix("again-"));
                    let more: String = more.map(|field| format!("{field}\r\n")).collect();
                    let head = "HTTP/1.1 304 Not Modified\r\n";
                    peer.say(format!("{head}etag: {tag}\r\nx-said: again\r\n{more}\r\n")).await;
                } else {
                    peer.answer(&fields, body).await;
                }
                Some(peer)
            }
        })
        .await;
        Site { origin, answers }
    }

    pub(crate) fn put(&self, path: &str, fields: &str, body: &[u8]) {
        self.answers.lock().unwrap().insert(path.into(), (fields.into(), body.to_vec()));
    }

    pub(crate) fn asked(&self) -> usize {
        self.origin.requests().len()
    }

    pub(crate) fn with(&self, path: &str, fields: &[(&str, &str)]) -> RequestHead {
        request(Method::GET, self.origin.addr, path, fields)
    }
}

/// A folder in which the store outlives its grounds.
pub(crate) struct Place(pub tempfile::TempDir);

impl Place {
    pub(crate) fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    pub(crate) async fn start(&self) -> Pair {
        self.start_with(&[]).await
    }

    /// The same under more settings.
    pub(crate) async fn start_with(&self, settings: &[&str]) -> Pair {
        let at = |name: &str| self.0.path().join(name).display().to_string();
        let own = [format!("store.directory='{}'", at("store")), format!("store.key='{}'", at("key"))];
        Pair::new(&[&own.each_ref().map(String::as_str)[..], settings].concat()).await
    }

    /// Ends a ground and waits until nothing of it has the store.
    pub(crate) async fn stop(&self, pair: Pair) {
        pair.ground.drain(Duration::ZERO).await;
        drop(pair);
        let key = Key::load_or_make(&self.0.path().join("key")).unwrap();
        let link = farhop_replacement::Link {
            round_trip: Duration::from_millis(50),
            rate: farhop_units::BitRate::mbit(8),
        };
        let folder = self.0.path().join("store");
        let options = DiskOptions { folder, size: 1 << 30, key, link };
        while Disk::open(options.clone()).is_err() {
            sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) fn bodies(&self) -> Vec<PathBuf> {
        let folders = fs::read_dir(self.0.path().join("store/bodies")).unwrap();
        let files = folders.flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap());
        files.map(|file| file.unwrap().path()).collect()
    }
}

/// The answer to `head` for this user.
pub(crate) async fn ask(pair: &Pair, user: u64, head: &RequestHead) -> Reply {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1000);
    let exchange = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let (mut sender, mut receiver) = pair.hop.ask(Ask { exchange, user, ..Ask::default() }, head);
    sender.finish(None);
    let reply = Reply::take(&mut receiver).await;
    assert!(reply.whole, "{reply:?}");
    reply
}

/// Likewise, and waits until it is kept.
pub(crate) async fn ask_and_keep(pair: &Pair, user: u64, head: &RequestHead) -> Reply {
    let mut told = pair.bus.subscribe();
    let reply = ask(pair, user, head).await;
    event(&mut told, |event| matches!(event, Event::Stored { .. }).then_some(())).await;
    reply
}

pub(crate) fn status(reply: &Reply) -> u16 {
    reply.head().status.as_u16()
}

pub(crate) fn field<'a>(reply: &'a Reply, name: &str) -> &'a str {
    reply.head().fields.get(name).map_or("", |value| value.to_str().unwrap())
}

pub(crate) async fn entries(pair: &Pair) -> u64 {
    pair.ground.on_disk().await["entries"].as_u64().unwrap()
}
