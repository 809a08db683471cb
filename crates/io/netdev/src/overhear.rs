//! A socket that is handed copies of datagrams and segments on their way past a device (packet(7)), in either direction. Which ones is
//! said by a filter in the kernel (bpf(4), in its classic form), so that all else costs nothing.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, recv};

use crate::Error;

/// Ranges of ports that a filter takes: its jumps are 255 steps long at most.
pub const MOST_PORT_RANGES: usize = 16;

const IPV4: u32 = 0x0800;
const IPV6: u32 = 0x86dd;
const TCP: u32 = 6;
const UDP: u32 = 17;
/// `SKF_AD_OFF + SKF_AD_PROTOCOL`: where a filter finds the packet's EtherType, whatever the device puts before it.
const ETHER_TYPE: u32 = 0xffff_f000;

/// Datagrams of UDP and segments of TCP that pass a device, as packets of IP.
#[derive(Debug)]
pub struct Overheard {
    socket: OwnedFd,
}

impl Overheard {
    /// Of those that leave or arrive by `interface`, the ones to or from a port in one of these ranges, first and last.
    /// Of one in fragments it is the first.
    ///
    /// # Errors
    /// No such device, no right to listen (CAP_NET_RAW), more than [`MOST_PORT_RANGES`], or the kernel lacks packet sockets.
    pub fn open(interface: &str, ports: &[(u16, u16)]) -> Result<Overheard, Error> {
        let index = nix::net::if_::if_nametoindex(interface)
            .map_err(|_| Error::NoInterface { interface: interface.into() })?;
        if ports.len() > MOST_PORT_RANGES {
            let reason = format!("{MOST_PORT_RANGES} ranges of ports are the most");
            return Err(Error::system("listen for datagrams")(io::Error::other(reason)));
        }
        // Of protocol 0 it hears nothing before its filter stands and its device is named.
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: takes numbers only.
        let descriptor = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        let descriptor = Errno::result(descriptor).map_err(|error| match error {
            Errno::EPERM => Error::NoNetRaw { what: format!("listening at {interface}") },
            error => Error::system("open a packet socket (CONFIG_PACKET)")(error),
        })?;
        // SAFETY: it was opened just now, and nobody else knows it.
        let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
        attach(&socket, &filter(ports)).map_err(Error::system("filter what a packet socket hears"))?;
        bind(&socket, index).map_err(Error::system(format!("listen at {interface}")))?;
        Ok(Overheard { socket })
    }

    /// The next packet, from its IP header on; `None` where none comes within `timeout`. What does not fit is cut off.
    ///
    /// # Errors
    /// The device is down or has vanished.
    pub fn receive<'a>(&self, buffer: &'a mut [u8], timeout: Duration) -> io::Result<Option<&'a [u8]>> {
        let mut polled = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        let timeout = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX);
        match poll(&mut polled, timeout) {
            Ok(0) | Err(Errno::EINTR) => return Ok(None),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        match recv(self.socket.as_raw_fd(), buffer, MsgFlags::empty()) {
            Ok(length) => Ok(Some(&buffer[..length])),
            Err(Errno::EAGAIN | Errno::EINTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

fn attach(socket: &OwnedFd, filter: &[libc::sock_filter]) -> Result<(), Errno> {
    let program = libc::sock_fprog {
        len: libc::c_ushort::try_from(filter.len()).unwrap_or(libc::c_ushort::MAX),
        filter: filter.as_ptr().cast_mut(),
    };
    // SAFETY: the kernel copies the program, of the length given, while the call lasts, and writes nothing.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            size_of_val(&program) as libc::socklen_t,
        )
    };
    Errno::result(result).map(drop)
}

fn bind(socket: &OwnedFd, index: u32) -> Result<(), Errno> {
    // SAFETY: plain numbers, of which all zeros are valid ones.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as libc::c_ushort;
    // All of them: of a single protocol the kernel shows only what arrives.
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = i32::try_from(index).unwrap_or(i32::MAX);
    // SAFETY: the kernel reads a live address of the length given.
    let result = unsafe {
        libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size_of_val(&address) as libc::socklen_t)
    };
    Errno::result(result).map(drop)
}

/// Where a step goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum To {
    Next,
    /// Over the next step.
    Skip,
    Ipv6,
    Accept,
    Reject,
}

struct Step {
    code: u32,
    value: u32,
    holds: To,
    else_: To,
}

/// A packet of TCP or UDP, in either family, whose source or destination port is in one of the ranges; of IPv6 without further headers
/// before theirs. Both have their ports in the same place.
fn filter(ports: &[(u16, u16)]) -> Vec<libc::sock_filter> {
    use libc::{
        BPF_ABS, BPF_B, BPF_H, BPF_IND, BPF_JEQ, BPF_JGE, BPF_JGT, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_LDX,
        BPF_MSH, BPF_RET,
    };
    let load = |code: u32, value| Step { code: BPF_LD | code, value, holds: To::Next, else_: To::Next };
    let jump = |code: u32, value, holds, else_| Step { code: BPF_JMP | code | BPF_K, value, holds, else_ };
    let end = |value| Step { code: BPF_RET | BPF_K, value, holds: To::Next, else_: To::Next };
    let among = || {
        ports.iter().flat_map(|(first, last)| {
            [
                jump(BPF_JGE, (*first).into(), To::Next, To::Skip),
                jump(BPF_JGT, (*last).into(), To::Next, To::Accept),
            ]
        })
    };
    let mut steps = vec![
        load(BPF_H | BPF_ABS, ETHER_TYPE),
        jump(BPF_JEQ, IPV4, To::Next, To::Ipv6),
        load(BPF_B | BPF_ABS, 9),
        jump(BPF_JEQ, TCP, To::Skip, To::Next),
        jump(BPF_JEQ, UDP, To::Next, To::Reject),
        // RFC 791 §3.1: ports are in the fragment of offset 0.
        load(BPF_H | BPF_ABS, 6),
        jump(BPF_JSET, 0x1fff, To::Reject, To::Next),
        Step { code: BPF_LDX | BPF_B | BPF_MSH, value: 0, holds: To::Next, else_: To::Next },
        load(BPF_H | BPF_IND, 0),
    ];
    steps.extend(among());
    steps.push(load(BPF_H | BPF_IND, 2));
    steps.extend(among());
    steps.push(end(0));
    let ipv6 = steps.len();
    steps.push(jump(BPF_JEQ, IPV6, To::Next, To::Reject));
    steps.push(load(BPF_B | BPF_ABS, 6));
    steps.push(jump(BPF_JEQ, TCP, To::Skip, To::Next));
    steps.push(jump(BPF_JEQ, UDP, To::Next, To::Reject));
    steps.push(load(BPF_H | BPF_ABS, 40));
    steps.extend(among());
    steps.push(load(BPF_H | BPF_ABS, 42));
    steps.extend(among());
    let reject = steps.len();
    steps.push(end(0));
    let accept = steps.len();
    steps.push(end(u32::MAX));
    let places = steps.iter().enumerate().map(|(at, step)| {
        let distance = |to| match to {
            To::Next => 0,
            To::Skip => 1,
            To::Ipv6 => ipv6 - at - 1,
            To::Accept => accept - at - 1,
            To::Reject => reject - at - 1,
        };
        // All are below 2 × (2 + 4 × 16) + 22.
        let short = |to| u8::try_from(distance(to)).unwrap_or(u8::MAX);
        libc::sock_filter {
            code: step.code as u16,
            jt: short(step.holds),
            jf: short(step.else_),
            k: step.value,
        }
    });
    places.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream, UdpSocket};

    #[test]
    fn a_filter_of_all_its_ranges_has_jumps_that_the_kernel_can_make() {
        let ranges = [(5060, 5061); MOST_PORT_RANGES];
        let filter = filter(&ranges);
        let length = filter.len();
        for (at, step) in filter.iter().enumerate().filter(|(_, step)| step.code & 7 == libc::BPF_JMP as u16)
        {
            assert!(step.jt < u8::MAX && step.jf < u8::MAX, "step {at}");
            assert!(at + 1 + usize::from(step.jt.max(step.jf)) < length, "step {at} of {length}");
        }
    }

    #[test]
    fn datagrams_of_the_ports_are_heard_in_both_families_and_no_others() {
        let probe = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = probe.local_addr().unwrap().port();
        let heard = match Overheard::open("lo", &[(1, 1), (port, port)]) {
            Ok(heard) => heard,
            Err(Error::NoNetRaw { .. }) => {
                println!("skipped: no right to listen");
                return;
            }
            Err(error) => panic!("{error}"),
        };
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to_other = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.send_to(b"for others", to_other.local_addr().unwrap()).unwrap();
        sender.send_to(b"to it", ("127.0.0.1", port)).unwrap();
        probe.send_to(b"from it", sender.local_addr().unwrap()).unwrap();
        let mut wanted = vec![&b"to it"[..], b"from it"];
        if let Ok(sixth) = UdpSocket::bind("[::1]:0") {
            sixth.send_to(b"in the other family", ("::1", port)).unwrap();
            wanted.push(b"in the other family");
        }
        let mut buffer = [0; 2000];
        for text in wanted {
            // The loopback device shows each packet as it leaves and as it arrives.
            for _ in 0..2 {
                let packet = heard.receive(&mut buffer, Duration::from_secs(10)).unwrap().unwrap();
                assert!(packet.ends_with(text), "{packet:?}");
                assert!(matches!(packet[0] >> 4, 4 | 6), "from the header of IP on: {packet:?}");
            }
        }
        assert_eq!(heard.receive(&mut buffer, Duration::ZERO).unwrap(), None);
    }

    #[test]
    fn segments_to_and_from_the_ports_are_heard_too() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let at = listener.local_addr().unwrap();
            let heard = match Overheard::open("lo", &[(at.port(), at.port())]) {
                Ok(heard) => heard,
                Err(Error::NoNetRaw { .. }) => {
                    println!("skipped: no right to listen");
                    return;
                }
                Err(error) => panic!("{error}"),
            };
            let mut near = TcpStream::connect(at).unwrap();
            let (mut far, _) = listener.accept().unwrap();
            near.write_all(b"what is asked").unwrap();
            far.write_all(b"what is answered").unwrap();
            let (mut wanted, mut buffer) = (vec![&b"what is asked"[..], b"what is answered"], [0; 2000]);
            while !wanted.is_empty() {
                let packet = heard.receive(&mut buffer, Duration::from_secs(10)).unwrap().unwrap();
                wanted.retain(|text| !packet.ends_with(text));
            }
        }
    }

    #[test]
    fn what_cannot_be_listened_to_is_named() {
        let line = Overheard::open("sat9", &[(5060, 5060)]).unwrap_err().to_string();
        assert!(line.starts_with("there is no network device 'sat9'"), "{line}");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                crate::capability::give_up_net_admin().unwrap();
                let line = Overheard::open("lo", &[(5060, 5060)]).unwrap_err().to_string();
                assert!(line.starts_with("listening at lo needs CAP_NET_RAW"), "{line}");
            });
        });
    }
}
