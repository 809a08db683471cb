//! What the helper may be asked: a closed list of typed commands, each one line of text on the wire. What is not one of
//! these is refused before anything is done.

use std::fmt::{self, Display};
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use farhop_packets::Complaint;

use crate::divert::{Catch, Divert, Network};
use crate::intake::Intake;

/// Those below are the system's own: main is 254.
const FIRST_TABLE: u32 = 256;

/// No connection begins with less than what a handshake takes, or with more than a path to the moon could need at once.
const SEGMENTS: std::ops::RangeInclusive<u32> = 2..=1000;

/// One command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    /// A transparent listener at this loopback address, on a port that the system chooses.
    Listen(IpAddr),
    /// A TCP socket bound to this address, which need not be this machine's.
    Speak(IpAddr),
    /// A transparent socket for datagrams at this loopback address, on a port that the system chooses.
    Take(IpAddr),
    /// A UDP socket that is the first, which need not be this machine's, and speaks with the second.
    Answer(SocketAddr, SocketAddr),
    /// This is what becomes of datagrams to the first, which the second is to hear.
    Complain(Complaint, SocketAddr, SocketAddr),
    /// This diversion, in place of the one before.
    Divert(Divert),
    /// A first window of so many segments for TCP connections to this address.
    FirstWindow(IpAddr, u32),
    /// A TUN device with what is routed there, or other packets for the one that there is.
    Route(Intake),
}

impl Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Command::Listen(address) => write!(f, "listen {address}"),
            Command::Speak(address) => write!(f, "speak {address}"),
            Command::Take(address) => write!(f, "take {address}"),
            Command::Answer(from, to) => write!(f, "answer {from} {to}"),
            Command::Complain(what, to, client) => {
                match what {
                    Complaint::PortUnreachable => f.write_str("complain port")?,
                    Complaint::HostUnreachable => f.write_str("complain host")?,
                    Complaint::TooBig(size) => write!(f, "complain {size}")?,
                }
                write!(f, " {to} {client}")
            }
            Command::FirstWindow(address, segments) => write!(f, "first-window {address} {segments}"),
            Command::Route(Intake { device, table, addresses, interfaces, except }) => {
                let (addresses, interfaces, except) = (words(addresses), words(interfaces), words(except));
                write!(f, "route {device} {table} {addresses} {interfaces} {except}")
            }
            Command::Divert(Divert { mark, catch: None }) => write!(f, "divert {mark}"),
            Command::Divert(Divert { mark, catch: Some(catch) }) => {
                let ranges = |ports: &[(u16, u16)]| {
                    words(&ports.iter().map(|(first, last)| format!("{first}-{last}")).collect::<Vec<_>>())
                };
                write!(
                    f,
                    "divert {mark} {} {} {} {} {} {} {}",
                    words(&catch.to),
                    words(&catch.interfaces),
                    words(&catch.clients),
                    words(&catch.except),
                    ranges(&catch.ports),
                    words(&catch.datagrams_to),
                    ranges(&catch.datagram_ports)
                )
            }
        }
    }
}

/// A list as one word: nothing is a dash.
fn words(items: &[impl Display]) -> String {
    let items: Vec<String> = items.iter().map(ToString::to_string).collect();
    if items.is_empty() { "-".into() } else { items.join(",") }
}

fn items<T>(word: &str, read: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    if word == "-" { Some(Vec::new()) } else { word.split(',').map(read).collect() }
}

impl FromStr for Command {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let words: Vec<&str> = text.split(' ').collect();
        let command = match words[..] {
            ["listen", address] => loopback(address).map(Command::Listen),
            ["speak", address] => somebodys(address).map(Command::Speak),
            ["take", address] => loopback(address).map(Command::Take),
            ["answer", from, to] => {
                somebodys_port(from).zip(somebodys_port(to)).map(|(from, to)| Command::Answer(from, to))
            }
            ["complain", what, to, client] => {
                let what = match what {
                    "port" => Some(Complaint::PortUnreachable),
                    "host" => Some(Complaint::HostUnreachable),
                    size => size.parse().ok().map(Complaint::TooBig),
                };
                let ends = somebodys_port(to).zip(somebodys_port(client));
                what.zip(ends).map(|(what, (to, client))| Command::Complain(what, to, client))
            }
            ["first-window", address, segments] => {
                let segments = segments.parse().ok().filter(|segments| SEGMENTS.contains(segments));
                somebodys(address)
                    .zip(segments)
                    .map(|(address, segments)| Command::FirstWindow(address, segments))
            }
            ["route", name, table, addresses, interfaces, except] => {
                read_intake(name, table, addresses, interfaces, except).map(Command::Route)
            }
            ["divert", mark] => mark.parse().ok().map(|mark| Command::Divert(Divert { mark, catch: None })),
            ["divert", mark, ref catch @ ..] => read_catch(catch).and_then(|catch| {
                Some(Command::Divert(Divert { mark: mark.parse().ok()?, catch: Some(catch) }))
            }),
            _ => None,
        };
        command.ok_or(())
    }
}

fn read_intake(name: &str, table: &str, addresses: &str, interfaces: &str, except: &str) -> Option<Intake> {
    let is_hosts = |it: &Network| somebodys(&it.address.to_string()).is_some();
    Some(Intake {
        device: device(name)?,
        table: table.parse().ok().filter(|table| *table >= FIRST_TABLE)?,
        addresses: items(addresses, |text| text.parse().ok().filter(is_hosts))?,
        interfaces: items(interfaces, device)?,
        except: items(except, |text| text.parse().ok())?,
    })
}

fn read_catch(words: &[&str]) -> Option<Catch> {
    let &[to, interfaces, clients, except, ports, datagrams_to, datagram_ports] = words else { return None };
    let loopbacks =
        |word| items(word, |text| text.parse::<SocketAddr>().ok().filter(|to| to.ip().is_loopback()));
    let ranges = |word| {
        items(word, |text| {
            let (first, last) = text.split_once('-')?;
            Some((first.parse().ok()?, last.parse().ok()?)).filter(|(first, last)| first <= last)
        })
    };
    Some(Catch {
        to: loopbacks(to)?,
        interfaces: items(interfaces, device)?,
        clients: items(clients, |text| text.parse().ok())?,
        except: items(except, |text| text.parse().ok())?,
        ports: ranges(ports)?,
        datagrams_to: loopbacks(datagrams_to)?,
        datagram_ports: ranges(datagram_ports)?,
    })
}

fn loopback(text: &str) -> Option<IpAddr> {
    text.parse::<IpAddr>().ok().filter(IpAddr::is_loopback)
}

/// An address of one host.
fn somebodys(text: &str) -> Option<IpAddr> {
    let address: IpAddr = text.parse().ok()?;
    (!address.is_unspecified() && !address.is_loopback() && !address.is_multicast()).then_some(address)
}

/// An address of one host, and a port.
fn somebodys_port(text: &str) -> Option<SocketAddr> {
    let address: SocketAddr = text.parse().ok()?;
    somebodys(&address.ip().to_string())?;
    (address.port() > 0).then_some(address)
}

/// A device's name (the kernel's `dev_valid_name`), without what a rule or a list would read as its own.
fn device(text: &str) -> Option<String> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'@' | b'+');
    ((1..=15).contains(&text.len()) && text.bytes().all(good)).then(|| text.to_owned())
}

impl Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl FromStr for Network {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (address, prefix) = text.split_once('/').ok_or(())?;
        let address: IpAddr = address.parse().map_err(|_| ())?;
        let prefix = prefix.parse().map_err(|_| ())?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        if prefix <= width { Ok(Network { address, prefix }) } else { Err(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_read_as_they_were_written() {
        let catch = Catch {
            to: vec!["127.0.0.1:5000".parse().unwrap(), "[::1]:5001".parse().unwrap()],
            interfaces: vec![],
            clients: vec!["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()],
            except: vec!["0.0.0.0/0".parse().unwrap()],
            ports: vec![(1, 65535)],
            datagrams_to: vec!["127.0.0.1:6000".parse().unwrap()],
            datagram_ports: vec![(1, 442), (444, 65535)],
        };
        let intake = Intake {
            device: "farhop0".into(),
            table: 51900,
            addresses: vec!["198.18.255.1/30".parse().unwrap(), "fdfa:1840:255::1/126".parse().unwrap()],
            interfaces: vec!["lan0".into(), "wlan0".into()],
            except: vec!["10.0.0.0/8".parse().unwrap()],
        };
        let complain = |what| {
            Command::Complain(
                what,
                "[2001:db8::7]:53".parse().unwrap(),
                "[2001:db8::1]:4000".parse().unwrap(),
            )
        };
        for command in [
            Command::Listen("127.0.0.1".parse().unwrap()),
            Command::Speak("2001:db8::1".parse().unwrap()),
            Command::Take("::1".parse().unwrap()),
            complain(Complaint::PortUnreachable),
            complain(Complaint::HostUnreachable),
            complain(Complaint::TooBig(1400)),
            Command::Answer("192.0.2.7:53".parse().unwrap(), "10.0.0.1:4000".parse().unwrap()),
            Command::FirstWindow("192.0.2.7".parse().unwrap(), 40),
            Command::FirstWindow("2001:db8::7".parse().unwrap(), 1000),
            Command::Route(intake.clone()),
            Command::Route(Intake { addresses: vec![], except: vec![], ..intake }),
            Command::Divert(Divert { mark: 7, catch: None }),
            Command::Divert(Divert { mark: u32::MAX, catch: Some(catch) }),
        ] {
            assert_eq!(command.to_string().parse(), Ok(command));
        }
    }

    #[test]
    fn whatever_is_no_command_is_refused() {
        for text in [
            "",
            "listen",
            "listen 0.0.0.0",
            "listen 127.0.0.1 more",
            "speak",
            "speak 0.0.0.0",
            "speak ::1",
            "speak 224.0.0.1",
            "take 10.0.0.1",
            "answer 192.0.2.7:0 10.0.0.1:4000",
            "answer 127.0.0.1:53 10.0.0.1:4000",
            "answer 192.0.2.7:53",
            "first-window 192.0.2.7",
            "first-window 192.0.2.7 0",
            "first-window 192.0.2.7 1001",
            "first-window 192.0.2.0/24 40",
            "first-window default 40",
            "first-window 127.0.0.1 40",
            "complain 70000 192.0.2.7:53 10.0.0.1:4000",
            "complain route 192.0.2.7:53 10.0.0.1:4000",
            "complain port 192.0.2.7:53 127.0.0.1:4000",
            "divert x",
            "divert 7 10.0.0.1:5000 - - - - - -",
            "divert 7 127.0.0.1:5000 lan0\"; - - - - -",
            "divert 7 127.0.0.1:5000 a-name-too-long-for-it - - - - -",
            "divert 7 127.0.0.1:5000 - 10.0.0.0/33 - - - -",
            "divert 7 127.0.0.1:5000 - - - 9-8 - -",
            "divert 7 127.0.0.1:5000 - - - - 10.0.0.1:6000 -",
            "divert 7 127.0.0.1:5000 - - - -",
            "route farhop0 254 - - -",
            "route farhop0;x 51900 - - -",
            "route farhop0 51900 127.0.0.1/8 - -",
            "route farhop0 51900 - lan0,\"x\" -",
            "delete everything",
        ] {
            assert_eq!(text.parse::<Command>(), Err(()), "{text}");
        }
    }
}
