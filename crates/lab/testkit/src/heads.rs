//! Bytes of request heads and promises over the header sets recorded from browsers (`corpora/heads`): two sessions whose
//! bytes cross at once. The budgets are the callers': a test of `core/htotp` and a row of `./run measure 1`.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use farhop_htotp::RequestHead;
use farhop_htotp::frame::Priority;
use farhop_htotp::scheduler::StreamId;
use farhop_htotp::session::{Ask, Config, Direction, Event, Role, Session, Transmit};
use http::{HeaderMap, HeaderName, HeaderValue, Method};

/// Who sent the recorded heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Browser {
    /// Chromium.
    Chromium,
    /// Firefox.
    Firefox,
}

impl Browser {
    /// Every browser that was recorded.
    pub const ALL: [Browser; 2] = [Browser::Chromium, Browser::Firefox];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Browser::Chromium => "Chromium",
            Browser::Firefox => "Firefox",
        }
    }
}

/// Sizes in bytes as HTOTP frames them.
#[derive(Debug, Default)]
pub struct HeadSizes {
    /// The first head to each origin.
    pub first: Vec<usize>,
    /// All later ones.
    pub following: Vec<usize>,
    /// Promises of everything that a page needs.
    pub promises: Vec<usize>,
    /// By how much each following head exceeds its literal path and query, and whose it is; the worst last.
    pub excess: Vec<(i64, String)>,
}

/// The middle one.
pub fn median(sizes: &[usize]) -> usize {
    let mut sorted = sizes.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or(0)
}

/// Sends every head recorded from `browser` across, and promises it in another session; checks that each arrives as it
/// was.
pub fn measure(browser: Browser) -> HeadSizes {
    let mut sizes = HeadSizes::default();
    for file in corpus() {
        let site = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if site.starts_with("firefox-") != (browser == Browser::Firefox) {
            continue;
        }
        let text = std::fs::read_to_string(&file).expect("the corpus is part of the repository");
        let blocks = text.split("\n\n").filter(|block| !block.trim().is_empty());
        let heads: Vec<RequestHead> =
            blocks.map(|block| parse(block.trim()).expect("a recorded head")).collect();
        assert!(heads.len() >= 5, "{site} has only {} heads", heads.len());
        ask_all(&site, &heads, &mut sizes);
        promise_all(&heads, &mut sizes);
    }
    sizes.excess.sort();
    sizes
}

fn ask_all(site: &str, heads: &[RequestHead], sizes: &mut HeadSizes) {
    let mut wire = Wire::new();
    wire.settle(0);
    let mut origins = HashSet::new();
    for (n, head) in heads.iter().enumerate() {
        wire.ends[0].ask(Duration::ZERO, Ask { exchange: n as u64, user: 1, ..Ask::default() }, head);
        // The acknowledgement of a kept section is on the control stream and counts for neither head.
        let size = wire.settle(0);
        assert!(
            wire.events(1).iter().any(|event| matches!(event, Event::Asked { head: got, .. } if got == head))
        );
        if origins.insert(head.origin()) {
            sizes.first.push(size);
        } else {
            sizes.following.push(size);
            sizes.excess.push((size as i64 - head.path.len() as i64, format!("{site} {}", head.url())));
        }
    }
}

/// The page as one exchange whose answer promises everything else.
fn promise_all(heads: &[RequestHead], sizes: &mut HeadSizes) {
    let mut wire = Wire::new();
    wire.ends[0].ask(Duration::ZERO, Ask { user: 1, ..Ask::default() }, &heads[0]);
    wire.settle(0);
    let asked = |event| if let Event::Asked { stream, .. } = event { Some(stream) } else { None };
    let stream = wire.events(1).into_iter().find_map(asked).expect("the request arrived");
    let mut seen = HashSet::new();
    for head in heads[1..].iter().filter(|head| head.method == Method::GET && seen.insert(head.url())) {
        wire.ends[1]
            .promise(Duration::ZERO, stream, head, Priority::default())
            .expect("the exchange is open");
        sizes.promises.push(wire.settle(1));
        assert!(
            wire.events(0)
                .iter()
                .any(|event| matches!(event, Event::Promised { head: got, .. } if got == head))
        );
    }
}

fn corpus() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpora/heads");
    let entries = std::fs::read_dir(folder).expect("the corpus is part of the repository");
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "heads"))
        .collect();
    files.sort();
    files
}

const HOP_BY_HOP: [&str; 4] = ["host", "connection", "proxy-connection", "keep-alive"];

/// A recorded head as the remote's front would give it to the session.
fn parse(block: &str) -> Option<RequestHead> {
    let mut lines = block.lines().filter(|line| !line.starts_with('#'));
    let mut request = lines.next()?.split(' ');
    let method = Method::from_bytes(request.next()?.as_bytes()).ok()?;
    let (scheme, rest) = request.next()?.split_once("://")?;
    let slash = rest.find('/').unwrap_or(rest.len());
    let mut fields = HeaderMap::new();
    for line in lines {
        let (name, value) = line.split_once(':')?;
        let name = HeaderName::from_bytes(name.to_ascii_lowercase().as_bytes()).ok()?;
        if !HOP_BY_HOP.contains(&name.as_str()) {
            fields.append(name, HeaderValue::from_str(value.trim()).ok()?);
        }
    }
    let path = if slash < rest.len() { &rest[slash..] } else { "/" };
    Some(RequestHead {
        method,
        scheme: scheme.into(),
        authority: rest[..slash].into(),
        path: path.into(),
        fields,
    })
}

/// Two sessions whose bytes cross at once, so that every section is acknowledged before the next.
struct Wire {
    ends: [Session; 2],
    streams: Vec<[Option<StreamId>; 2]>,
}

impl Wire {
    fn new() -> Self {
        let end = |role| Session::new(role, Config::default(), Duration::ZERO);
        Wire { ends: [end(Role::Remote), end(Role::Ground)], streams: Vec::new() }
    }

    /// Moves all bytes; gives those that `from` wrote.
    fn settle(&mut self, from: usize) -> usize {
        let mut written = 0;
        loop {
            let mut moved = false;
            for end in [0, 1] {
                while let Some(transmit) = self.ends[end].poll_transmit(Duration::ZERO) {
                    moved = true;
                    match transmit {
                        Transmit::Open(id, direction) => {
                            let other = self.ends[1 - end].handle_opened(direction);
                            let mut ids = [Some(id); 2];
                            ids[1 - end] = Some(other);
                            assert!(direction == Direction::Both || end == 1);
                            self.streams.push(ids);
                        }
                        Transmit::Write { stream, segments, .. } => {
                            let known = self.streams.iter().find(|ids| ids[end] == Some(stream));
                            let peer = known.and_then(|ids| ids[1 - end]).expect("the stream was opened");
                            for segment in segments {
                                written += if end == from { segment.len() } else { 0 };
                                self.ends[1 - end].handle_data(Duration::ZERO, peer, segment);
                            }
                            self.ends[end].handle_written(stream);
                        }
                        Transmit::Reset(..)
                        | Transmit::Stop(..)
                        | Transmit::Probe
                        | Transmit::Datagram(_) => {}
                    }
                }
            }
            if !moved {
                return written;
            }
        }
    }

    fn events(&mut self, end: usize) -> Vec<Event> {
        std::iter::from_fn(|| self.ends[end].poll_event()).collect()
    }
}
