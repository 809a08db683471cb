//! The file of a [`super::Memory`]: a line of version, then a line for each path. It is replaced whole.
//!
//! ```text
//! farhop paths 4
//! 1795334400 650000/690000 650123 0.0125@1795334300 4be1…90 192.0.2.7 192.0.2.1
//! 1795334400 - - 0.0301@1795334400 4be1…90 192.0.2.7 192.0.2.9
//! carried 1795334400 7912345 - 192.0.2.7 192.0.2.1
//! ```
//! (Unix seconds; bytes a round trip, those of the full path where it has been, and microseconds of it, `-` where not measured; share of packets lost and since when that
//! is known, or `-`; the peer's key, its address, ours or `-`. What the way from a peer and
//! to it has carried, in bits a second or `-`, and the addresses as before. Version 1 had no losses; before version 3 the path counted as full
//! with what was measured, and before version 4 it was not kept what was carried.)

use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use farhop_congestion::Saved;
use farhop_files::{self as files, Found};
use farhop_units::{BitRate, Bytes};

use super::{Carried, Entry, Kept, Loss, PathKey, Way};

const HEADER: &str = "farhop paths 4";
const THIRD_HEADER: &str = "farhop paths 3";
const SECOND_HEADER: &str = "farhop paths 2";
const FIRST_HEADER: &str = "farhop paths 1";
/// More than this end ever writes.
const LONGEST: u64 = 1 << 21;

/// Reads what was kept. What cannot be understood is set aside.
pub(super) fn load(file: &Path) -> io::Result<Kept> {
    let parse = |text: &str| parse(text).ok_or("not a file of paths as this version writes it");
    Ok(match files::load(file, LONGEST, parse)? {
        Found::Read(kept) => kept,
        Found::Nothing => Kept::default(),
        Found::SetAside { as_, why } => {
            tracing::warn!(
                target: "farhop",
                "{}: {why}; set aside as {}, capacities are measured anew",
                file.display(),
                as_.display()
            );
            Kept::default()
        }
    })
}

/// Replaces the file.
pub(super) fn store(file: &Path, kept: &Kept) -> io::Result<()> {
    files::replace(file, render(kept).as_bytes())
}

fn parse(text: &str) -> Option<Kept> {
    let mut lines = text.lines();
    let paths = match lines.next()? {
        HEADER => return parse_fourth(lines),
        THIRD_HEADER => lines.map(|line| parse_line(&line.split(' ').collect::<Vec<_>>())).collect(),
        SECOND_HEADER => lines.map(|line| parse_second(&line.split(' ').collect::<Vec<_>>())).collect(),
        FIRST_HEADER => lines.map(parse_first).collect(),
        _ => None,
    };
    Some(Kept { paths: paths?, ..Kept::default() })
}

fn parse_fourth<'a>(lines: impl Iterator<Item = &'a str>) -> Option<Kept> {
    let mut kept = Kept::default();
    for line in lines {
        match *line.split(' ').collect::<Vec<_>>() {
            ["carried", at, hither, thither, peer, local] => {
                let (hither, thither) = (parse_rate(hither)?, parse_rate(thither)?);
                let way = (peer.parse().ok()?, parse_local(local)?);
                kept.carried.insert(way, Carried { hither, thither, at: parse_time(at)? });
            }
            ref words => kept.paths.extend([parse_line(words)?]),
        }
    }
    Some(kept)
}

/// Bits a second, where they are known.
fn parse_rate(word: &str) -> Option<Option<BitRate>> {
    match word {
        "-" => Some(None),
        digits => Some(Some(BitRate(digits.parse().ok()?))),
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

fn parse_local(word: &str) -> Option<Option<IpAddr>> {
    match word {
        "-" => Some(None),
        address => Some(Some(address.parse().ok()?)),
    }
}

fn parse_line(words: &[&str]) -> Option<(PathKey, Entry)> {
    let [at, capacity, rtt, loss, peer, remote, local] = *words else { return None };
    let local = parse_local(local)?;
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

fn render(kept: &Kept) -> String {
    let paths = kept.paths.iter().map(|(key, entry)| render_line(key, entry));
    let carried = kept.carried.iter().map(|(way, carried)| render_carried(*way, carried));
    let mut lines: Vec<String> = paths.chain(carried).collect();
    lines.sort();
    let lines: String = lines.into_iter().map(|line| line + "\n").collect();
    format!("{HEADER}\n{lines}")
}

fn render_local(local: Option<IpAddr>) -> String {
    local.map_or("-".into(), |address| address.to_string())
}

fn unix(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn render_carried((peer, local): Way, carried: &Carried) -> String {
    let rate = |rate: Option<BitRate>| rate.map_or("-".into(), |rate| rate.0.to_string());
    let (hither, thither) = (rate(carried.hither), rate(carried.thither));
    format!("carried {} {hither} {thither} {peer} {}", unix(carried.at), render_local(local))
}

fn render_line(key: &PathKey, entry: &Entry) -> String {
    let saved = entry.saved.map_or("- -".into(), |saved| {
        let full = saved.full.map_or(String::new(), |full| format!("/{}", full.0));
        format!("{}{full} {}", saved.capacity.0, saved.rtt.as_micros())
    });
    let loss = entry.loss.map_or("-".into(), |loss| format!("{:.4}@{}", loss.share, unix(loss.at)));
    let local = render_local(key.local);
    format!("{} {saved} {loss} {} {} {local}", unix(entry.at), key.peer, key.remote)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::fs;

    fn kept() -> Kept {
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
        let carried = Carried { hither: Some(BitRate(7_912_345)), thither: None, at };
        Kept {
            paths: HashMap::from([(key("ship", Some("192.0.2.1")), entry), (key("polar", None), lossless)]),
            carried: HashMap::from([(("192.0.2.7".parse().unwrap(), None), carried)]),
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("paths");
        store(&file, &kept()).unwrap();
        assert_eq!(load(&file).unwrap(), kept());
        let text = fs::read_to_string(&file).unwrap();
        assert!(
            text.contains("\n1795334400 650000/650000 650123 0.0125@1795334400 ship 192.0.2.7 192.0.2.1\n"),
            "{text}"
        );
        assert!(text.ends_with("\ncarried 1795334400 7912345 - 192.0.2.7 -\n"), "{text}");
    }

    #[test]
    fn a_file_of_the_third_version_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("paths");
        let paths = Kept { carried: HashMap::new(), ..kept() };
        fs::write(&file, render(&paths).replace(HEADER, THIRD_HEADER)).unwrap();
        assert_eq!(load(&file).unwrap(), paths);
    }

    #[test]
    fn a_file_of_the_first_version_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("paths");
        fs::write(&file, "farhop paths 1\n1795334400 650000 650123 ship 192.0.2.7 192.0.2.1\n").unwrap();
        let read: Vec<Entry> = load(&file).unwrap().paths.into_values().collect();
        let saved = kept().paths.into_values().find_map(|entry| entry.saved);
        assert_eq!(read.iter().map(|entry| (entry.saved, entry.loss)).collect::<Vec<_>>(), [(saved, None)]);
    }

    #[test]
    fn a_file_of_another_version_is_set_aside_and_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("paths");
        let texts = [
            "farhop paths 5\n",
            "farhop paths 4\ncarried 1 x - 192.0.2.7 -\n",
            "farhop paths 3\n1 2/x 3 - a 192.0.2.7 -\n",
            "",
            "farhop paths 1\nnonsense\n",
            "farhop paths 1\n1 2 3 a b c d\n",
            "farhop paths 2\n1 2 3 2@1 a 192.0.2.7 -\n",
        ];
        for (count, text) in texts.into_iter().enumerate() {
            fs::write(&file, text).unwrap();
            assert!(load(&file).unwrap() == Kept::default());
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
        assert!(load(&file).unwrap() == Kept::default());
        fs::write(&file, vec![b'a'; LONGEST as usize + 1]).unwrap();
        assert!(load(&file).unwrap() == Kept::default());
    }
}
