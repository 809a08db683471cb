//! The file of a [`super::Memory`]: a line of version, then a line for each path. It is replaced whole.
//!
//! ```text
//! farhop paths 1
//! 1795334400 650000 650123 4be1…90 192.0.2.7 192.0.2.1
//! ```
//! (Unix seconds, bytes a round trip, microseconds of it, the peer's key, its address, ours or `-`.)

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use farhop_congestion::Saved;
use farhop_units::Bytes;

use super::{Entry, PathKey};

const HEADER: &str = "farhop paths 1";
/// More than this end ever writes.
const LONGEST: u64 = 1 << 20;

/// Reads what was kept. What cannot be understood is set aside.
pub(super) fn load(file: &Path) -> io::Result<HashMap<PathKey, Entry>> {
    let text = match fs::metadata(file) {
        Ok(known) if known.len() > LONGEST => String::new(),
        Ok(_) => String::from_utf8(fs::read(file)?).unwrap_or_default(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(HashMap::new()),
        Err(error) => return Err(error),
    };
    if let Some(paths) = parse(&text) {
        return Ok(paths);
    }
    let aside = PathBuf::from(format!("{}.aside", file.display()));
    fs::rename(file, &aside)?;
    tracing::warn!(
        target: "farhop",
        "{}: not a file of paths as this version writes it; set aside as {}, capacities are measured anew",
        file.display(),
        aside.display()
    );
    Ok(HashMap::new())
}

/// Replaces the file.
pub(super) fn store(file: &Path, paths: &HashMap<PathKey, Entry>) -> io::Result<()> {
    let next = PathBuf::from(format!("{}.next", file.display()));
    let mut written = fs::File::create(&next)?;
    written.write_all(render(paths).as_bytes())?;
    written.sync_all()?;
    fs::rename(next, file)
}

fn parse(text: &str) -> Option<HashMap<PathKey, Entry>> {
    let mut lines = text.lines();
    (lines.next()? == HEADER).then_some(())?;
    lines.map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<(PathKey, Entry)> {
    let words: Vec<&str> = line.split(' ').collect();
    let [at, capacity, rtt, peer, remote, local] = words[..] else { return None };
    let local = match local {
        "-" => None,
        address => Some(address.parse().ok()?),
    };
    let key = PathKey { peer: peer.into(), remote: remote.parse().ok()?, local };
    let rtt = Duration::from_micros(rtt.parse().ok()?);
    let saved = Saved { capacity: Bytes(capacity.parse().ok()?), rtt };
    let at = UNIX_EPOCH.checked_add(Duration::from_secs(at.parse().ok()?))?;
    Some((key, Entry { saved, at }))
}

fn render(paths: &HashMap<PathKey, Entry>) -> String {
    let mut lines: Vec<String> = paths.iter().map(|(key, entry)| render_line(key, entry)).collect();
    lines.sort();
    let lines: String = lines.into_iter().map(|line| line + "\n").collect();
    format!("{HEADER}\n{lines}")
}

fn render_line(key: &PathKey, entry: &Entry) -> String {
    let at = entry.at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let (capacity, rtt) = (entry.saved.capacity.0, entry.saved.rtt.as_micros());
    let local = key.local.map_or("-".into(), |address| address.to_string());
    format!("{at} {capacity} {rtt} {} {} {local}", key.peer, key.remote)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths() -> HashMap<PathKey, Entry> {
        let saved = Saved { capacity: Bytes(650_000), rtt: Duration::from_micros(650_123) };
        let entry = Entry { saved, at: UNIX_EPOCH + Duration::from_secs(1_795_334_400) };
        let key = |peer: &str, local: Option<&str>| PathKey {
            peer: peer.into(),
            remote: "192.0.2.7".parse().unwrap(),
            local: local.map(|address| address.parse().unwrap()),
        };
        HashMap::from([(key("ship", Some("192.0.2.1")), entry), (key("polar", None), entry)])
    }

    #[test]
    fn what_is_written_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("paths");
        store(&file, &paths()).unwrap();
        assert_eq!(load(&file).unwrap(), paths());
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains("\n1795334400 650000 650123 ship 192.0.2.7 192.0.2.1\n"), "{text}");
    }

    #[test]
    fn a_file_of_another_version_is_set_aside_and_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("paths");
        for text in ["farhop paths 2\n", "", "farhop paths 1\nnonsense\n", "farhop paths 1\n1 2 3 a b c d\n"]
        {
            fs::write(&file, text).unwrap();
            assert!(load(&file).unwrap().is_empty());
            assert_eq!(fs::read_to_string(folder.path().join("paths.aside")).unwrap(), text);
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
