//! What an end holds at a moment: memory, descriptors, threads, and what it says is under way.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

/// What is there while nothing is under way.
const IDLE_CARRIERS: &str = "carriers over quic";

/// What one process holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Level {
    /// Resident memory in bytes.
    pub(super) memory: u64,
    /// Open sockets.
    pub(super) sockets: u64,
    /// Other open descriptors: files, pipes, timers.
    pub(super) files: u64,
    /// Threads.
    pub(super) threads: u64,
    /// Carriers, exchanges, tunnels, promises and clients that are open, as the control socket names them.
    pub(super) streams: BTreeMap<String, u64>,
}

/// Something of a level that is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thing {
    Memory,
    Sockets,
    Files,
    Threads,
    Streams,
}

impl Thing {
    pub(super) fn name(self) -> &'static str {
        match self {
            Thing::Memory => "memory",
            Thing::Sockets => "sockets",
            Thing::Files => "files",
            Thing::Threads => "threads",
            Thing::Streams => "streams",
        }
    }
}

impl Level {
    /// What the kernel says of a process (proc(5)); none once it is gone.
    pub(super) fn of_process(id: u32) -> Option<Level> {
        let folder = Path::new("/proc").join(id.to_string());
        let status = std::fs::read_to_string(folder.join("status")).ok()?;
        let number = |name: &str| -> Option<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            line.split_whitespace().next()?.parse().ok()
        };
        let mut level =
            Level { memory: number("VmRSS")? * 1024, threads: number("Threads")?, ..Level::default() };
        for descriptor in std::fs::read_dir(folder.join("fd")).ok()?.flatten() {
            // One that has been closed since has no target any more.
            let Ok(target) = std::fs::read_link(descriptor.path()) else { continue };
            match target.to_string_lossy().starts_with("socket:") {
                true => level.sockets += 1,
                false => level.files += 1,
            }
        }
        Some(level)
    }

    /// Adds what `status` of either end's control socket says is open (docs/control.md).
    pub(super) fn add_status(&mut self, status: &Value) {
        const OPEN: [&str; 6] = ["clients", "caught", "exchanges", "tunnels", "promises_open", "promises"];
        let carriers = status["carriers"].as_array().into_iter().flatten();
        for part in carriers.chain([status]) {
            for name in OPEN {
                if let Some(open) = part[name].as_u64() {
                    *self.streams.entry(name.into()).or_default() += open;
                }
            }
        }
        // Ground may hold a carrier that its remote has left, and one over TCP has more sockets.
        let here = || status["carriers"].as_array().into_iter().flatten().chain(status.get("carrier"));
        for carrier in here().filter(|carrier| !carrier.is_null()) {
            let over = carrier["over"].as_str().unwrap_or("nothing");
            *self.streams.entry(format!("carriers over {over}")).or_default() += 1;
        }
    }

    pub(super) fn of(&self, thing: Thing) -> u64 {
        match thing {
            Thing::Memory => self.memory,
            Thing::Sockets => self.sockets,
            Thing::Files => self.files,
            Thing::Threads => self.threads,
            Thing::Streams => self.streams.values().sum(),
        }
    }

    /// Whether nothing is under way on carriers that ride as they should.
    pub(super) fn is_idle(&self) -> bool {
        self.streams.iter().all(|(name, open)| *open == 0 || name == IDLE_CARRIERS)
    }

    /// What is counted one by one and differs from `idle`, in words; memory and threads are not.
    pub(super) fn beyond(&self, idle: &Level) -> Vec<String> {
        let mut differing: Vec<String> = [Thing::Sockets, Thing::Files]
            .into_iter()
            .filter(|thing| self.of(*thing) != idle.of(*thing))
            .map(|thing| format!("{} {}, was {}", thing.name(), self.of(thing), idle.of(thing)))
            .collect();
        for (name, open) in &self.streams {
            let before = idle.streams.get(name).copied().unwrap_or_default();
            if *open != before {
                differing.push(format!("{name} {open}, was {before}"));
            }
        }
        differing
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Level { memory, sockets, files, .. } = self;
        let streams = self.of(Thing::Streams);
        write!(f, "{:.1} MB, {sockets} sockets, {files} files, {streams} streams", *memory as f64 / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn this_process_and_what_it_opens_are_seen() {
        let before = Level::of_process(std::process::id()).unwrap();
        assert!(before.memory > 100_000 && before.threads >= 1 && before.files >= 1, "{before:?}");
        let held: Vec<_> = (0..500).map(|_| std::net::UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
        let after = Level::of_process(std::process::id()).unwrap();
        // Other tests of this process open and close some of their own.
        assert!(after.sockets > before.sockets + held.len() as u64 / 2, "{before:?} {after:?}");
        assert_eq!(Level::of_process(u32::MAX), None);
    }

    #[test]
    fn both_ends_words_for_what_is_open_are_read_and_carriers_add_up() {
        let mut remote = Level::default();
        remote.add_status(
            &json!({"clients": 2, "caught": 1, "exchanges": 3, "promises_open": 4, "repository_bytes": 9}),
        );
        assert_eq!(remote.of(Thing::Streams), 10);
        let mut ground = Level::default();
        ground.add_status(&json!({"carriers": [
            {"over": "quic", "exchanges": 1, "tunnels": 2, "promises": 0, "mirror": 50},
            {"over": "quic", "exchanges": 4, "tunnels": 0, "promises": 1},
        ]}));
        assert_eq!((ground.streams["exchanges"], ground.streams["carriers over quic"]), (5, 2));
        assert_eq!(ground.of(Thing::Streams), 10);
    }

    #[test]
    fn what_is_not_as_it_was_is_named_and_memory_is_not_among_it() {
        let idle = Level { memory: 1, sockets: 5, files: 7, ..Level::default() };
        assert_eq!(Level { memory: 9, threads: 3, ..idle.clone() }.beyond(&idle), Vec::<String>::new());
        let mut left = Level { sockets: 6, ..idle.clone() };
        left.streams.insert("tunnels".into(), 1);
        assert_eq!(left.beyond(&idle), ["sockets 6, was 5", "tunnels 1, was 0"]);
    }
}
