//! What passes a device, by tcpdump (apt's `tcpdump`), and the flows that it makes: as much of each as a classifier sees.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use farhop_diffserv::classify::Protocol;
use farhop_netdev::Running;
use farhop_sip::{Change, Observer};
use farhop_testbed::{Place, Testbed};

use crate::MeasureError;
use crate::group::Context;
use farhop_workload::programs::found;

/// Of each packet: all of it, since the name of a TLS hello may stand at its end.
const SNAP: &str = "1600";
/// What is kept of what the client of a flow says: no classifier looks further.
const FIRST: usize = 4_096;
/// KiB that wait until tcpdump has written them: a burst of all that a case sends.
const WAITING: &str = "65536";
/// Until tcpdump listens, and until it has written what it saw.
const SETTLE: Duration = Duration::from_millis(1_500);

/// Hears what passes the terminal's device.
pub(super) struct Capture {
    running: Running,
    file: PathBuf,
    /// What tcpdump says of itself.
    words: PathBuf,
}

/// A flow as it passed.
#[derive(Debug)]
pub(super) struct Passed {
    pub(super) protocol: Protocol,
    /// Who began it, and where it leads.
    pub(super) ends: (SocketAddr, SocketAddr),
    /// What was in its packets, in their order; none of those that had nothing in them.
    pub(super) course: Vec<Step>,
    /// Bytes of what its client said that are kept.
    kept: usize,
}

/// What was in a packet.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) at: Duration,
    pub(super) bytes: usize,
    /// From who began it, and as far as that is kept.
    pub(super) said: Option<Vec<u8>>,
}

/// What passed.
#[derive(Debug, Default)]
pub(super) struct Heard {
    pub(super) flows: Vec<Passed>,
    /// Where speech goes that SIP has announced.
    pub(super) media: Vec<SocketAddr>,
}

impl Passed {
    pub(super) fn of(protocol: Protocol, ends: (SocketAddr, SocketAddr), course: Vec<Step>) -> Passed {
        Passed { protocol, ends, course, kept: 0 }
    }
}

impl Capture {
    pub(super) fn begin(
        testbed: &Testbed,
        folder: &Path,
        context: &Context,
    ) -> Result<Capture, MeasureError> {
        let Some(program) = found("tcpdump") else {
            return Err(MeasureError::Unexpected("not present: install 'tcpdump'".into()));
        };
        let file = folder.join("passed.pcap");
        let _ = std::fs::remove_file(&file); // of the case before
        let words = folder.join("tcpdump.words");
        let said = std::fs::File::create(&words).map_err(MeasureError::system("what tcpdump says"))?;
        let mut command = Command::new(program);
        command.args(["-i", "sat0", "-s", SNAP, "-B", WAITING, "-U", "-Z", "root", "-w"]).arg(&file);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
        let running = testbed.spawn_in(Place::Remote, command)?;
        context.interrupt.sleep(SETTLE)?;
        Ok(Capture { running, file, words })
    }

    pub(super) fn end(mut self, context: &Context) -> Result<Heard, MeasureError> {
        context.interrupt.sleep(SETTLE)?;
        self.running.terminate().map_err(MeasureError::system("ending tcpdump"))?;
        context.interrupt.sleep(SETTLE)?;
        let words =
            std::fs::read_to_string(&self.words).map_err(MeasureError::system("what tcpdump says"))?;
        match dropped(&words) {
            Some(0) => {}
            // What is judged by how much of it passed would be judged by less.
            Some(packets) => {
                return Err(MeasureError::Unexpected(format!("tcpdump has missed {packets} packets")));
            }
            None => return Err(MeasureError::Unexpected(format!("tcpdump says: {}", words.trim()))),
        }
        let bytes = std::fs::read(&self.file).map_err(MeasureError::system("what tcpdump wrote"))?;
        heard(&bytes).ok_or_else(|| MeasureError::Unexpected("tcpdump wrote what is not understood".into()))
    }
}

/// How many packets the kernel had no room for, as tcpdump says at its end.
fn dropped(words: &str) -> Option<u64> {
    let line = words.lines().find(|line| line.ends_with("dropped by kernel"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Flows in the order in which they began.
fn heard(bytes: &[u8]) -> Option<Heard> {
    let mut heard = Heard::default();
    let mut places: HashMap<(Protocol, SocketAddr, SocketAddr), usize> = HashMap::new();
    let mut observer = Observer::default();
    for (at, length, packet) in packets(bytes)? {
        let Some(Passing { protocol, from, to, content, around }) = passing(packet) else { continue };
        if let (Protocol::Udp, Some(Change::Speaks(speech))) = (protocol, observer.handle_bytes(at, content))
        {
            heard.media.extend(speech.media);
        }
        let place = places.get(&(protocol, from, to)).or_else(|| places.get(&(protocol, to, from))).copied();
        let number = place.unwrap_or_else(|| {
            heard.flows.push(Passed::of(protocol, (from, to), Vec::new()));
            places.insert((protocol, from, to), heard.flows.len() - 1);
            heard.flows.len() - 1
        });
        let flow = heard.flows.get_mut(number)?;
        let bytes = usize::try_from(length).unwrap_or(usize::MAX).saturating_sub(around);
        if bytes == 0 {
            continue;
        }
        let said = (flow.ends.0 == from && flow.kept < FIRST).then(|| content.to_vec());
        flow.kept += said.as_ref().map_or(0, Vec::len);
        flow.course.push(Step { at, bytes, said });
    }
    Some(heard)
}

/// The packets of a file as libpcap writes it (pcap-savefile(5)), from their IP headers on: when each passed, how long it was, and
/// what was kept of it.
fn packets(bytes: &[u8]) -> Option<Vec<(Duration, u64, &[u8])>> {
    let (header, mut rest) = bytes.split_at_checked(24)?;
    let little = match header.get(..4)? {
        [0xd4, 0xc3, 0xb2, 0xa1] => true,
        [0xa1, 0xb2, 0xc3, 0xd4] => false,
        _ => return None,
    };
    let number = |bytes: &[u8], at: usize| {
        let four: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(if little { u32::from_le_bytes(four) } else { u32::from_be_bytes(four) })
    };
    // LINKTYPE_RAW, as a TUN device has it, or Ethernet.
    let before = match number(header, 20)? & 0xffff {
        12 | 14 | 101 => 0,
        1 => 14,
        _ => return None,
    };
    let mut packets = Vec::new();
    while let Some((head, after)) = rest.split_at_checked(16) {
        let at =
            Duration::from_secs(number(head, 0)?.into()) + Duration::from_micros(number(head, 4)?.into());
        // The last one may be cut off.
        let Some((kept, next)) = after.split_at_checked(number(head, 8)? as usize) else { break };
        let length = u64::from(number(head, 12)?).saturating_sub(before as u64);
        packets.push((at, length, kept.get(before..).unwrap_or_default()));
        rest = next;
    }
    Some(packets)
}

struct Passing<'a> {
    protocol: Protocol,
    from: SocketAddr,
    to: SocketAddr,
    content: &'a [u8],
    /// Bytes of its headers.
    around: usize,
}

/// TCP and UDP in IPv4, as the testbed has it.
fn passing(packet: &[u8]) -> Option<Passing<'_>> {
    let header = packet.get(..20).filter(|header| header[0] >> 4 == 4)?;
    let is_later_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x1fff != 0;
    let rest = packet.get(usize::from(header[0] & 15) * 4..).filter(|_| !is_later_fragment)?;
    let address =
        |at: usize| IpAddr::V4(Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]));
    let port = |at: usize| Some(u16::from_be_bytes([*rest.get(at)?, *rest.get(at + 1)?]));
    let (protocol, content) = match header[9] {
        6 => (Protocol::Tcp, rest.get(usize::from(rest.get(12)? >> 4) * 4..)?),
        17 => (Protocol::Udp, rest.get(8..)?),
        _ => return None,
    };
    let (from, to) = (SocketAddr::new(address(12), port(0)?), SocketAddr::new(address(16), port(2)?));
    let around = packet.len() - content.len();
    Some(Passing { protocol, from, to, content, around })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(from: (u8, u16), to: (u8, u16), protocol: u8, content: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0];
        packet.extend([10, 0, 0, from.0, 10, 0, 0, to.0]);
        packet.extend(from.1.to_be_bytes());
        packet.extend(to.1.to_be_bytes());
        if protocol == 6 {
            packet.extend([0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0, 0, 0, 0, 0, 0, 0]);
        } else {
            packet.extend([0; 4]);
        }
        packet.extend(content);
        packet
    }

    fn file(packets: &[(u32, Vec<u8>)]) -> Vec<u8> {
        let mut file =
            vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 101, 0, 0, 0];
        for (seconds, packet) in packets {
            for number in [*seconds, 500_000, packet.len() as u32, packet.len() as u32 + 1_000] {
                file.extend(number.to_le_bytes());
            }
            file.extend(packet);
        }
        file
    }

    #[test]
    fn packets_of_both_directions_are_one_flow_of_who_began_it() {
        let passed = [
            (1, packet((1, 4000), (2, 80), 6, b"")),
            (2, packet((2, 80), (1, 4000), 6, b"HTTP/1.1 200 OK")),
            (3, packet((1, 4000), (2, 80), 6, b"GET /")),
            (3, packet((1, 4001), (2, 53), 17, b"name?")),
            (4, vec![0x60; 40]),
        ];
        let heard = heard(&file(&passed)).unwrap();
        assert_eq!(heard.flows.len(), 2);
        let page = &heard.flows[0];
        assert_eq!((page.ends.0.to_string(), page.ends.1.port()), ("10.0.0.1:4000".into(), 80));
        let course: Vec<_> = page.course.iter().map(|step| (step.bytes, step.said.as_deref())).collect();
        // A thousand bytes of each were not captured.
        assert_eq!(course, [(1_000, Some(&b""[..])), (1_015, None), (1_005, Some(&b"GET /"[..]))]);
        assert_eq!(heard.flows[1].protocol, Protocol::Udp);
        assert_eq!(heard.flows[1].course[0].said.as_deref(), Some(&b"name?"[..]));
    }

    #[test]
    fn what_the_kernel_had_no_room_for_is_known() {
        let words = "tcpdump: listening on sat0, link-type RAW (Raw IP), snapshot length 1600 bytes\n563 packets captured\n\
                     601 packets received by filter\n38 packets dropped by kernel\n";
        assert_eq!(dropped(words), Some(38));
        assert_eq!(dropped("tcpdump: sat0: No such device exists\n"), None);
    }

    #[test]
    fn what_is_cut_off_or_no_such_file_ends_well() {
        let whole = file(&[(1, packet((1, 4000), (2, 80), 6, b"GET /"))]);
        assert!(heard(&whole[..whole.len() - 1]).unwrap().flows.is_empty());
        assert!(heard(b"no such file, but long enough").is_none() && heard(b"").is_none());
    }
}
