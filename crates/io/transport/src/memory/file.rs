//! The file of a [`super::Memory`]: a line of version, then a line for each path. It is replaced whole.
//!
//! ```text
//! farhop paths 3
//! 1795334400 650000/690000 650123 0.0125@1795334300 4be1…90 192.0.2.7 192.0.2.1
//! 1795334400 - - 0.0301@1795334400 4be1…90 192.0.2.7 192.0.2.9
//! ```
//! (Unix seconds; bytes a round trip, those of the full path where it has been, and microseconds of it, `-` where not measured; share of packets lost and since when that
//! is known, or `-`; the peer's key, its address, ours or `-`. Version 1 had no losses, and before
//! version 3 the path counted as full with what was measured.)

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use farhop_congestion::Saved;
use farhop_files::{self as files, Found};
use farhop_units::Bytes;

use super::{Entry, Loss, PathKey};

const HEADER: &str = "farhop paths 3";
const SECOND_HEADER: &str = "farhop paths 2";
const FIRST_HEADER: &str = "farhop paths 1";
/// More than this end ever writes.
const LONGEST: u64 = 1 << 20;

/// Reads what was kept. What cannot be understood is set aside.
pub(super) fn load(file: &Path) -> io::Result<HashMap<PathKey, Entry>> {
    let parse = |text: &str| parse(text).ok_or("not a file of paths as this version writes it");
    Ok(match files::load(file, LONGEST, parse)? {
        Found::Read(paths) => paths,
        Found::Nothing => HashMap::new(),
        Found::SetAside { as_, why } => {
            tracing::warn!(
                target: "farhop",
                "{}: {why}; set aside as {}, capacities are measured anew",
                file.display(),
                as_.display()
            );
            HashMap::new()
        }
    })
}

/// Replaces the file.
pub(super) fn store(file: &Path, paths: &HashMap<PathKey, Entry>) -> io::Result<()> {
    files::replace(file, render(paths).as_bytes())
}

fn parse(text: &str) -> Option<HashMap<PathKey, Entry>> {
    let mut lines = text.lines();
    match lines.next()? {
        HEADER => lines.map(|line| parse_line(&line.split(' ').collect::<Vec<_>>())).collect(),
        SECOND_HEADER => lines.map(|line| parse_second(&line.split(' ').collect::<Vec<_>>())).collect(),
        FIRST_HEADER => lines.map(parse_first).collect(),
        _ => None,
    }
}

/// A line of version 1.
fn parse_first(line: &str) -> Option<(PathKey, Entry)> {
    let mut words: Vec<&str> = line.split(' ').collect();
    (words.len() == 6).then(|| words.insert(3, "-"))?;
    parse_second(&words)
}

/// A line of version 2.
fn parse_second(words: &[&str]) -> Option<(PathKey, Entry)> {
    let (key, mut entry) = parse_line(words)?;
    entry.saved = entry.saved.map(|saved| Saved { full: Some(saved.capacity), ..saved });
    Some((key, entry))
}

/// Bytes a round trip, and what fills the path where that is known.
fn parse_capacity(word: &str) -> Option<(Bytes, Option<Bytes>)> {
    let bytes = |digits: &str| digits.parse().ok().map(Bytes);
    match word.split_once('/') {
        Some((capacity, full)) => Some((bytes(capacity)?, Some(bytes(full)?))),
        None => Some((bytes(word)?, None)),
    }
}

fn parse_time(seconds: &str) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::from_secs(seconds.parse().ok()?))
}

fn parse_loss(word: &str) -> Option<Loss> {
    let (share, at) = word.split_once('@')?;
    let share = share.parse().ok().filter(|share| (0.0..=1.0).contains(share))?;
    Some(Loss { share, at: parse_time(at)? })
}

fn parse_line(words: &[&str]) -> Option<(PathKey, Entry)> {
    let [at, capacity, rtt, loss, peer, remote, local] = *words else { return None };
    let local = match local {
        "-" => None,
        address => Some(address.parse().ok()?),
    };
    let key = PathKey { peer: (*peer).into(), remote: remote.parse().ok()?, local };
    let saved = match (capacity, rtt) {
        ("-", "-") => None,
        (capacity, rtt) => {
            let rtt = Duration::from_micros(rtt.parse().ok()?);
            let (capacity, full) = parse_capacity(capacity)?;
            Some(Saved { capacity, rtt, full })
        }
    };
    let loss = match loss {
        "-" => None,
        loss => Some(parse_loss(loss)?),
    };
    Some((key, Entry { saved, loss, at: parse_time(at)? }))
}

fn render(paths: &HashMap<PathKey, Entry>) -> String {
    let mut lines: Vec<String> = paths.iter().map(|(key, entry)| render_line(key, entry)).collect();
    lines.sort();
    let lines: String = lines.into_iter().map(|line| line + "\n").collect();
    format!("{HEADER}\n{lines}")
}

fn render_line(key: &PathKey, entry: &Entry) -> String {
    let unix = |at: SystemTime| at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let saved = entry.saved.map_or("- -".into(), |saved| {
        let full = saved.full.map_or(String::new(), |full| format!("/{}", full.0));
        format!("{}{full} {}", saved.capacity.0, saved.rtt.as_micros())
    });
    let loss = entry.loss.map_or("-".into(), |loss| format!("{:.4}@{}", loss.share, unix(loss.at)));
    let local = key.local.map_or("-".into(), |address| address.to_string());
    format!("{} {saved} {loss} {} {} {local}", unix(entry.at), key.peer, key.remote)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn paths() -> HashMap<PathKey, Entry> {
        let saved = Saved {
            capacity: Bytes(650_000),
            rtt: Duration::from_micros(650_123),
            full: Some(Bytes(650_000)),
        };
        let at = UNIX_EPOCH + Duration::from_secs(1_795_334_400);
        let entry = Entry { saved: Some(saved), loss: Some(Loss { share: 0.0125, at }), at };
        let lossless = Entry { saved: None, loss: None, at };
        let key = |peer: &str, local: Option<&str>| PathKey {
            peer: peer.into(),
            remote: "192.0.2.7".parse().unwrap(),
            local: local.map(|address| address.parse().unwrap()),
        };
        HashMap::from([(key("ship", Some("192.0.2.1")), entry), (key("polar", None), lossless)])
    }

    #[test]
    fn what_is_written_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("paths");
        store(&file, &paths()).unwrap();
        assert_eq!(load(&file).unwrap(), paths());
        let text = fs::read_to_string(&file).unwrap();
        assert!(
            text.contains("\n1795334400 650000/650000 650123 0.0125@1795334400 ship 192.0.2.7 192.0.2.1\n"),
            "{text}"
        );
    }

    #[test]
    fn a_file_of_the_first_version_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("paths");
        fs::write(&file, "farhop paths 1\n1795334400 650000 650123 ship 192.0.2.7 192.0.2.1\n").unwrap();
        let read: Vec<Entry> = load(&file).unwrap().into_values().collect();
        let saved = paths().into_values().find_map(|entry| entry.saved);
        assert_eq!(read.iter().map(|entry| (entry.saved, entry.loss)).collect::<Vec<_>>(), [(saved, None)]);
    }

    #[test]
    fn a_file_of_another_version_is_set_aside_and_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("paths");
        let texts = [
            "farhop paths 4\n",
            "farhop paths 3\n1 2/x 3 - a 192.0.2.7 -\n",
            "",
            "farhop paths 1\nnonsense\n",
            "farhop paths 1\n1 2 3 a b c d\n",
            "farhop paths 2\n1 2 3 2@1 a 192.0.2.7 -\n",
        ];
        for (count, text) in texts.into_iter().enumerate() {
            fs::write(&file, text).unwrap();
            assert!(load(&file).unwrap().is_empty());
            assert_eq!(
                fs::read_to_string(folder.path().join(format!("paths.aside-{}", count + 1))).unwrap(),
                text
            );
        }
    }

    #[test]
    fn damage_and_size_do_not_stop_the_start() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("paths");
        fs::write(&file, [0xff, 0xfe]).unwrap();
        assert!(load(&file).unwrap().is_empty());
        fs::write(&file, vec![b'a'; LONGEST as usize + 1]).unwrap();
        assert!(load(&file).unwrap().is_empty());
    }
}
