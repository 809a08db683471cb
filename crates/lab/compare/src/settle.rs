//! What a load looked like from outside: the link once it is quiet again, and the part of the origins' log that is new.

use std::collections::BTreeSet;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{Duration, Instant};

use farhop_testbed::{LoadRecord, Namespace};
use serde_json::Value;

use crate::CompareError;
use crate::scene::Scene;

/// How long a link that never falls silent is waited for: a carrier's probes go on for ever.
const LONGEST: Duration = Duration::from_secs(4);

/// Waits until nothing has crossed the link for a round trip and gives the record of the load.
pub(crate) fn quiet_link(scene: &Scene) -> Result<LoadRecord, CompareError> {
    let link = scene.testbed.link();
    let pause = link.profile().rtt() + Duration::from_millis(100);
    let deadline = Instant::now() + LONGEST;
    let packets =
        |record: &LoadRecord| record.forward.counters.sent.packets + record.return_.counters.sent.packets;
    let mut before = packets(&link.record());
    loop {
        scene.interrupt.sleep(pause)?;
        let now = packets(&link.record());
        if now == before || Instant::now() > deadline {
            return Ok(link.take_record());
        }
        before = now;
    }
}

/// Connections over TCP that were begun in a namespace since it is there, as its kernel counts them (RFC 4022, `tcpActiveOpens`); none
/// where it does not.
pub(crate) fn opened(namespace: &Namespace) -> Option<u64> {
    // A thread's own: the process as a whole is elsewhere.
    let read = || std::fs::read_to_string("/proc/thread-self/net/snmp").ok();
    counted(&namespace.run(read).ok()??, "Tcp:", "ActiveOpens")
}

/// Those of them whose first bytes went along with their SYN and were taken by the server (RFC 7413).
pub fn fast_opened(namespace: &Namespace) -> Option<u64> {
    let read = || std::fs::read_to_string("/proc/thread-self/net/netstat").ok();
    counted(&namespace.run(read).ok()??, "TcpExt:", "TCPFastOpenActive")
}

/// A number by its name, from the line of names and that of numbers which begin with `table`.
fn counted(text: &str, table: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.split(' ').next() == Some(table));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let (_, number) = names.split(' ').zip(numbers.split(' ')).find(|(known, _)| *known == name)?;
    number.parse().ok()
}

/// What the origins saw in one load.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Requests that reached an origin.
    pub(crate) requests: u64,
    /// Names asked for that are no site's: nothing of the page, so somebody else's traffic.
    pub(crate) strange_names: BTreeSet<String>,
}

/// Reads the origins' log from `offset`; gives where it ends now.
pub(crate) fn new_lines(log: &Path, offset: u64, hosts: &[&str]) -> Result<(Seen, u64), CompareError> {
    let mut text = String::new();
    let read = || {
        let mut file = std::fs::File::open(log)?;
        file.seek(SeekFrom::Start(offset))?;
        file.read_to_string(&mut text)
    };
    let count = { read }().map_err(CompareError::file(log))?;
    Ok((seen(&text, hosts), offset + count as u64))
}

fn seen(text: &str, hosts: &[&str]) -> Seen {
    let mut seen = Seen::default();
    for line in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        if line.get("request").is_some() {
            seen.requests += 1;
        }
        if let Some(name) = line.get("dns").and_then(Value::as_str)
            && !hosts.contains(&name)
        {
            seen.strange_names.insert(name.to_owned());
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_and_names_of_no_site_told() {
        let log = "{\"request\":\"/\"}\n{\"dns\":\"a.test\"}\n{\"dns\":\"update.example\"}\n{\"request\":\"/x\"}\n{\"dns\":";
        let seen = seen(log, &["a.test"]);
        assert_eq!(seen, Seen { requests: 2, strange_names: BTreeSet::from(["update.example".to_owned()]) });
    }

    #[test]
    fn connections_are_counted_as_the_kernel_counts_them() {
        let active_opens = |text| counted(text, "Tcp:", "ActiveOpens");
        let text = "Ip: Forwarding\nIp: 1\nTcp: RtoMin MaxConn ActiveOpens PassiveOpens\nTcp: 200 -1 37 5\nUdp: In\n";
        assert_eq!(active_opens(text), Some(37));
        for other in ["", "Tcp: ActiveOpens\n", "Tcp: ActiveOpens\nTcp: many\n", "Tcp: MaxConn\nTcp: -1\n"] {
            assert_eq!(active_opens(other), None, "{other}");
        }
    }

    #[test]
    fn only_what_is_new_in_the_log_counts() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        std::fs::write(&log, "{\"request\":\"/\"}\n").unwrap();
        let (first, end) = new_lines(&log, 0, &[]).unwrap();
        let (second, again) = new_lines(&log, end, &[]).unwrap();
        assert_eq!((first.requests, second.requests, again), (1, 0, end));
    }
}
