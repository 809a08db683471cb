//! Bytes of request heads and promises over the header sets recorded from Chromium
//! (`crates/lab/testkit/corpora/heads`), held to the budgets: median following head ≤ 40 bytes as HTOTP
//! frames it, median promise ≤ 60, none more than 40 above its literal path and query.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use farhop_htotp::RequestHead;
use farhop_htotp::frame::Priority;
use farhop_htotp::session::{Ask, Config, Direction, Event, Role, Session, Transmit};
use http::{HeaderMap, HeaderName, HeaderValue, Method};

const HOP_BY_HOP: [&str; 4] = ["host", "connection", "proxy-connection", "keep-alive"];

fn corpus() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/testkit/corpora/heads");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the corpus is part of the repository")
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|e| e == "heads"))
        .collect();
    files.sort();
    files
}

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
    streams: Vec<[Option<farhop_htotp::scheduler::StreamId>; 2]>,
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
                        Transmit::Reset(..) | Transmit::Stop(..) => {}
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

fn median(sizes: &mut [usize]) -> usize {
    sizes.sort_unstable();
    sizes.get(sizes.len() / 2).copied().unwrap_or(0)
}

#[test]
fn heads_and_promises_of_recorded_sites_keep_to_their_budgets() {
    let (mut following, mut first, mut promises) = (Vec::new(), Vec::new(), Vec::new());
    let mut excess = Vec::new();
    for file in corpus() {
        let site = file.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&file).unwrap();
        let heads: Vec<RequestHead> = text
            .split("\n\n")
            .filter(|b| !b.trim().is_empty())
            .map(|b| parse(b.trim()).expect("a recorded head"))
            .collect();
        assert!(heads.len() >= 5, "{site} has only {} heads", heads.len());
        let mut wire = Wire::new();
        wire.settle(0);
        let mut origins = HashSet::new();
        for (n, head) in heads.iter().enumerate() {
            wire.ends[0].ask(Duration::ZERO, Ask { exchange: n as u64, user: 1, ..Ask::default() }, head);
            // The acknowledgement of a kept section is on the control stream and counts for neither head.
            let size = wire.settle(0);
            assert!(
                wire.events(1).iter().any(|e| matches!(e, Event::Asked { head: got, .. } if got == head))
            );
            if origins.insert(head.origin()) {
                first.push(size);
            } else {
                following.push(size);
                excess.push((size as i64 - head.path.len() as i64, format!("{site} {}", head.url())));
            }
        }
        // The same page as one exchange whose answer promises everything else.
        let mut wire = Wire::new();
        wire.ends[0].ask(Duration::ZERO, Ask { user: 1, ..Ask::default() }, &heads[0]);
        wire.settle(0);
        let stream = wire
            .events(1)
            .into_iter()
            .find_map(|e| if let Event::Asked { stream, .. } = e { Some(stream) } else { None });
        let mut seen = HashSet::new();
        for head in heads[1..].iter().filter(|h| h.method == Method::GET && seen.insert(h.url())) {
            wire.ends[1].promise(Duration::ZERO, stream.unwrap(), head, Priority::default()).unwrap();
            promises.push(wire.settle(1));
            assert!(
                wire.events(0).iter().any(|e| matches!(e, Event::Promised { head: got, .. } if got == head))
            );
        }
    }
    excess.sort();
    let (worst, which) = excess.last().unwrap().clone();
    let over = excess
        .iter()
        .filter(|(bytes, _)| *bytes > 40)
        .map(|(b, w)| format!("\n  +{b} {w}"))
        .collect::<String>();
    let counts = (first.len(), following.len(), promises.len());
    let (first, following, promise) = (median(&mut first), median(&mut following), median(&mut promises));
    println!(
        "first {first} B ({}), following {following} B ({}), promise {promise} B ({}); worst +{worst} {which}",
        counts.0, counts.1, counts.2
    );
    assert!(following <= 40, "median following head {following} B");
    assert!(promise <= 60, "median promise {promise} B");
    assert!(over.is_empty(), "heads more than 40 bytes above their path:{over}");
}
