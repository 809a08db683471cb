//! What a connection, or a flow of datagrams, shows of itself while it goes on: its client's first bytes, with the hello of TLS or of
//! QUIC, and how large and how many its packets are. What is encrypted shows nothing else. It says when that may change what the flow is for; which class that
//! is, `class` says. No I/O.

use std::time::Duration;

use farhop_diffserv::classify::{Flow, Opening, Protocol, Seen};
use farhop_front::tls::{ClientHello, Initials, Reading, read_hello};
use farhop_units::Bytes;

/// The longest first word, and the most pieces of it, that are looked at: hellos of browsers have some 2,000 bytes.
const LONGEST_WORD: usize = 4096;
const MOST_PIECES: u32 = 16;
/// What is kept of it: by so much every opening is told, and what a request asks for mostly.
const KEPT: usize = 256;
/// What TCP puts into a packet of Ethernet: what was read at once came in so many of them.
const SEGMENT: usize = 1448;
/// Handshakes have packets of their own sizes (keys, certificates): the first so many say nothing of how it behaves, …
const HANDSHAKE: u64 = 16;
/// … and before so many nothing is said of it.
const FEW: u64 = 32;
/// It is judged anew whenever an eighth more packets have passed than the last time.
const MORE: u64 = 8;
/// After so long without a packet what comes next is something else (as the scheduler has it), …
const PAUSE: Duration = Duration::from_secs(2);
/// … of which so many packets of before say something still: a shell remains one while its user thinks.
const REMEMBERED: u64 = 8;

/// What its client's first bytes are looked at for.
enum Listens {
    /// There is nothing more that they could say.
    No,
    /// A stream's, of which so many pieces have come.
    Stream { pieces: u32 },
    /// The hello in a QUIC client's first datagrams.
    Quic(Box<Initials>),
}

/// See the module.
pub(crate) struct Shown {
    flow: Flow,
    listens: Listens,
    /// Since the last pause, and what is remembered of before.
    seen: Seen,
    /// Packets of the handshake.
    first: u64,
    /// There were enough packets to say how it behaves.
    is_known: bool,
    judge_at: u64,
    last: Duration,
}

impl Shown {
    /// A flow that begins, of which this is known: of datagrams the first of them too.
    pub(crate) fn new(mut flow: Flow) -> Shown {
        let listens = match (flow.protocol, Opening::of(flow.protocol, &flow.first_bytes)) {
            (Protocol::Tcp, _) => Listens::Stream { pieces: 0 },
            (Protocol::Udp, Some(Opening::Quic)) => Listens::Quic(Box::default()),
            (Protocol::Udp, _) => Listens::No,
        };
        flow.first_bytes = begin(&flow.first_bytes);
        let seen = Seen { packets: 0, bytes: Bytes(0), over: Duration::ZERO };
        let last = Duration::ZERO;
        Shown { flow, listens, seen, first: 0, is_known: false, judge_at: FEW - HANDSHAKE, last }
    }

    /// What is known of it so far.
    pub(crate) fn flow(&self) -> &Flow {
        &self.flow
    }

    /// Its client says this; whether that may change what it is for.
    pub(crate) fn said(&mut self, now: Duration, bytes: &[u8]) -> bool {
        let is_news = self.listen(bytes);
        self.passed(now, bytes.len()) || is_news
    }

    /// So many bytes have passed, in either direction; whether that may change what it is for.
    pub(crate) fn passed(&mut self, now: Duration, bytes: usize) -> bool {
        let since = now.saturating_sub(self.last);
        let begins_anew = self.seen.packets > 0 && since >= PAUSE;
        if begins_anew {
            self.forget();
        } else if self.seen.packets > 0 {
            self.seen.over += since;
        }
        self.last = now;
        let packets = match self.flow.protocol {
            Protocol::Tcp => bytes.div_ceil(SEGMENT).max(1) as u64,
            Protocol::Udp => 1,
        };
        if self.first < HANDSHAKE {
            self.first += packets;
            return false;
        }
        self.seen.packets += packets;
        self.seen.bytes.0 += bytes as u64;
        self.is_known |= self.first + self.seen.packets >= FEW;
        let is_due = self.is_known && (begins_anew || self.seen.packets >= self.judge_at);
        if is_due {
            self.judge_at = self.seen.packets + (self.seen.packets / MORE).max(REMEMBERED);
            self.flow.seen = Some(self.seen);
        }
        is_due
    }

    /// How large its packets are is remembered, and how many of them there were is not.
    fn forget(&mut self) {
        let Seen { packets, bytes, over } = self.seen;
        if packets > REMEMBERED {
            let part = |of: u128| of * u128::from(REMEMBERED) / u128::from(packets);
            let number = |of: u128| u64::try_from(part(of)).unwrap_or(u64::MAX);
            let over = Duration::from_nanos(number(over.as_nanos()));
            self.seen = Seen { packets: REMEMBERED, bytes: Bytes(number(bytes.0.into())), over };
        }
        self.judge_at = FEW;
    }

    /// More of the first bytes; whether they say more than before.
    fn listen(&mut self, bytes: &[u8]) -> bool {
        match &mut self.listens {
            Listens::No => false,
            Listens::Stream { pieces } => {
                *pieces += 1;
                let is_last = *pieces >= MOST_PIECES;
                self.listen_to_stream(bytes, is_last)
            }
            Listens::Quic(initials) => {
                let reading = initials.read(bytes);
                if reading != Reading::NeedMore {
                    self.listens = Listens::No;
                }
                let Reading::Hello(hello) = reading else { return false };
                take_down(&mut self.flow, hello);
                true
            }
        }
    }

    fn listen_to_stream(&mut self, bytes: &[u8], is_last: bool) -> bool {
        let before = (Opening::of(self.flow.protocol, &self.flow.first_bytes), self.flow.sni.is_some());
        let room = LONGEST_WORD - self.flow.first_bytes.len().min(LONGEST_WORD);
        let mut word = std::mem::take(&mut self.flow.first_bytes);
        word.extend_from_slice(&bytes[..bytes.len().min(room)]);
        let is_open = hear(&mut self.flow, word);
        if !is_open || is_last || self.flow.first_bytes.len() >= LONGEST_WORD {
            self.listens = Listens::No;
            self.flow.first_bytes = begin(&self.flow.first_bytes);
        }
        let after = (Opening::of(self.flow.protocol, &self.flow.first_bytes), self.flow.sni.is_some());
        before != after || !self.flow.alpn.is_empty()
    }
}

/// What is kept of first bytes once nothing more is read of them.
fn begin(word: &[u8]) -> Vec<u8> {
    word[..word.len().min(KEPT)].to_vec()
}

/// Takes down what a client's first bytes say: how they begin, and what a TLS hello names and offers. Whether more of them could say more.
pub(crate) fn hear(flow: &mut Flow, word: Vec<u8>) -> bool {
    let reading = read_hello(&word);
    let needs_more = reading == Reading::NeedMore;
    if let Reading::Hello(hello) = reading {
        take_down(flow, hello);
    }
    let is_known = Opening::of(flow.protocol, &word).is_some();
    flow.first_bytes = word;
    // The longest that an opening is told by.
    needs_more || (!is_known && flow.first_bytes.len() < 20)
}

fn take_down(flow: &mut Flow, hello: ClientHello) {
    flow.sni = hello.sni.and_then(|name| name.parse().ok());
    let text = |protocol: Vec<u8>| String::from_utf8(protocol).ok();
    flow.alpn = hello.alpn.into_iter().filter_map(text).collect();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    fn flow(protocol: Protocol) -> Flow {
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        Flow::new(protocol, at("192.0.2.1:4000"), at("198.51.100.7:443"))
    }

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    /// A hello of TLS 1.2 for this host, which offers these protocols.
    fn hello(host: &str, alpn: &[&str]) -> Vec<u8> {
        let long = |content: &[u8]| [&(content.len() as u16).to_be_bytes()[..], content].concat();
        let extension = |kind: u16, content: &[u8]| [&kind.to_be_bytes()[..], &long(content)].concat();
        let name = extension(0, &long(&[&[0][..], &long(host.as_bytes())].concat()));
        let offered: Vec<u8> =
            alpn.iter().flat_map(|it| [&[it.len() as u8][..], it.as_bytes()].concat()).collect();
        let extensions = [name, extension(16, &long(&offered))].concat();
        let body = [&[3, 3][..], &[7; 32], &[0], &[0, 2, 0x13, 0x01], &[1, 0], &long(&extensions)].concat();
        let message = [&[1, 0][..], &long(&body)].concat();
        [&[22, 3, 1][..], &long(&message)].concat()
    }

    #[test]
    fn a_hello_is_read_whatever_the_pieces_in_which_it_comes() {
        let hello = hello("download.windowsupdate.com", &["h2", "http/1.1"]);
        for piece in [hello.len(), 100, 40] {
            let mut shown = Shown::new(flow(Protocol::Tcp));
            let news: Vec<bool> = hello.chunks(piece).map(|piece| shown.said(ms(0), piece)).collect();
            assert!(news[0] && *news.last().unwrap(), "that it is TLS, and for whom: {news:?}");
            let flow = shown.flow();
            assert_eq!(
                flow.sni.as_ref().map(ToString::to_string).as_deref(),
                Some("download.windowsupdate.com")
            );
            assert_eq!(flow.alpn, ["h2", "http/1.1"]);
            assert!(!shown.said(ms(1), b"no hello any more"));
        }
    }

    /// RFC 9001 A.2, for example.com: in one datagram, and the same hello in two, its end first. Each after its length.
    const WHOLE: &[u8] = include_bytes!("../../../../fuzz/corpus/front_initials/rfc9001");
    const HALVES: &[u8] = include_bytes!("../../../../fuzz/corpus/front_initials/two-datagrams");

    #[test]
    fn the_hello_of_quic_is_read_from_as_many_datagrams_as_it_takes() {
        for (datagrams, count) in [(WHOLE, 1), (HALVES, 2)] {
            let datagrams: Vec<&[u8]> = datagrams.chunks(2 + 1200).map(|it| &it[2..]).collect();
            let mut flow = flow(Protocol::Udp);
            flow.first_bytes = datagrams[0].to_vec();
            let mut shown = Shown::new(flow);
            let news: Vec<bool> = datagrams.iter().map(|it| shown.said(ms(0), it)).collect();
            assert_eq!(news.iter().position(|it| *it), Some(count - 1), "with the last of {count}");
            let flow = shown.flow();
            assert_eq!(flow.sni.as_ref().map(ToString::to_string).as_deref(), Some("example.com"));
            assert_eq!(flow.alpn, ["alpn"]);
            assert!(matches!(shown.listens, Listens::No) && flow.first_bytes.len() == KEPT);
        }
    }

    #[test]
    fn datagrams_of_another_protocol_are_not_looked_into() {
        let mut flow = flow(Protocol::Udp);
        flow.first_bytes = b"anything".to_vec();
        let mut shown = Shown::new(flow);
        assert!(matches!(shown.listens, Listens::No) && !shown.said(ms(0), &WHOLE[2..]));
        assert!(shown.flow().sni.is_none());
    }

    #[test]
    fn no_client_has_more_read_than_a_word() {
        let mut shown = Shown::new(flow(Protocol::Tcp));
        let endless = [&[22, 3, 1, 0x40, 0, 1, 0, 0x3f, 0xf0][..], &[0; 30_000]].concat();
        for piece in endless.chunks(3_000) {
            shown.said(ms(0), piece);
        }
        assert_eq!(shown.flow().first_bytes.len(), KEPT);
        assert!(matches!(shown.listens, Listens::No));
        let mut shown = Shown::new(flow(Protocol::Tcp));
        for piece in endless.chunks(1).take(1_000) {
            shown.said(ms(0), piece);
        }
        assert_eq!(shown.flow().first_bytes.len(), MOST_PIECES as usize);
        assert!(matches!(shown.listens, Listens::No));
    }

    #[test]
    fn it_is_judged_seldom_and_more_seldom_the_longer_it_lasts() {
        let mut shown = Shown::new(flow(Protocol::Udp));
        let due = (0..100_000).filter(|packet| shown.passed(ms(*packet), 1200)).count();
        assert!((40..90).contains(&due), "{due}");
        let seen = shown.flow().seen.unwrap();
        assert_eq!(seen.mean_packet(), Bytes(1200));
        assert!(seen.rate().is_some_and(|rate| (9_000_000..10_000_000).contains(&rate.0)), "{seen:?}");
    }

    #[test]
    fn what_a_handshake_is_like_says_nothing_of_what_follows() {
        let mut shown = Shown::new(flow(Protocol::Tcp));
        for piece in 0..HANDSHAKE / 2 {
            assert!(!shown.passed(ms(piece), 1_500), "two packets each");
        }
        let due: Vec<bool> = (0..24).map(|key| shown.passed(ms(100 * key), 36)).collect();
        assert!(due.contains(&true));
        assert_eq!(shown.flow().seen.unwrap().mean_packet(), Bytes(36), "keystrokes alone count");
    }

    #[test]
    fn after_a_pause_what_was_carried_counts_no_more_and_what_packets_are_like_does() {
        let mut shown = Shown::new(flow(Protocol::Tcp));
        for piece in 0..1_000 {
            shown.passed(ms(10 * piece), 32 * 1024);
        }
        assert!(shown.flow().seen.unwrap().bytes.0 > 20_000_000);
        assert!(shown.passed(ms(12_500), 100), "it is judged at once");
        let seen = shown.flow().seen.unwrap();
        assert!(seen.bytes.0 < 20_000 && seen.mean_packet().0 > 1_000, "{seen:?}");
    }
}
