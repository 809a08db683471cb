//! What crosses: datagrams that QUIC cannot mistake for its own. docs/fec.md specifies them.
//!
//! QUIC's first byte is 0x40 and above as long as neither end offers to grease the QUIC bit (RFC 9287); version
//! negotiation has 0x80. The types here are from 4 to 15, which RFC 9443 §2 leaves to be dropped by whoever shares a port.

/// First byte of the first half of a datagram, and of the second.
const FIRST_HALF: u8 = 0x04;
const SECOND_HALF: u8 = 0x05;
/// First byte of a datagram with a QUIC packet behind a sequence number. Bit 0: the packet may be covered by a
/// repair. Bit 1: the header is as long as that of a repair.
const SOURCE: u8 = 0x08;
const KEPT: u8 = 0x01;
const ROOMY: u8 = 0x02;
/// First byte of a repair. Bit 0: what it brings back shall count as a sign of congestion.
const REPAIR: u8 = 0x0c;
const LOUD: u8 = 0x01;
/// First byte of a report.
const REPORT: u8 = 0x0e;
/// First byte of a hello.
const HELLO: u8 = 0x0f;

/// Bytes before the QUIC packet of a source.
pub const HEADER: usize = 5;
/// Bytes by which a repair may be longer than the longest QUIC packet that it covers, and the bytes before the
/// packet in a source that makes sure that there is room for such a repair on the path.
pub const ROOM: usize = 9;
/// Bytes of a repair before its sum.
const REPAIR_HEADER: usize = 7;
/// Bytes of a hello's token.
pub const TOKEN: usize = 8;

/// A datagram of this layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Datagram<'a> {
    /// A QUIC packet.
    Source(Source<'a>),
    /// A sum of QUIC packets.
    Repair(Repair<'a>),
    /// What the receiver of the other direction has seen.
    Report(Report),
    /// An end says that it reads this layer.
    Hello(Hello),
    /// Half of any other datagram, or of one of QUIC's.
    Half(Half<'a>),
}

/// A QUIC packet with its place in the sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source<'a> {
    /// Counts the sources of a direction.
    pub sequence: u32,
    /// Whether a repair may cover it.
    pub kept: bool,
    /// The packet.
    pub packet: &'a [u8],
}

/// A sum of consecutive QUIC packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repair<'a> {
    /// Sequence number of the first packet covered.
    pub first: u32,
    /// How many are covered, 1 to 128.
    pub count: u8,
    /// Which repair, 0 to 127; decides the coefficients.
    pub number: u8,
    /// Whether what it brings back counts as a sign of congestion.
    pub loud: bool,
    /// The sum.
    pub sum: &'a [u8],
}

/// What a receiver has seen since the layer came up. Counters wrap around.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    /// The newest sequence number seen.
    pub newest: u32,
    /// Packets that did not arrive by themselves, whether brought back or not.
    pub lost: u32,
    /// Runs of such packets without a received one between.
    pub runs: u32,
    /// Packets brought back.
    pub recovered: u32,
}

/// An end says that it reads this layer, and whether it has heard the same from the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    /// The other's hello is here.
    pub heard: bool,
    /// Only the two ends know it.
    pub token: [u8; TOKEN],
}

/// Half of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Half<'a> {
    /// Both halves have it, and none sent shortly before or after.
    pub number: u16,
    /// Whether it is the second.
    pub is_second: bool,
    /// Its bytes.
    pub bytes: &'a [u8],
}

/// Whether a datagram is of this layer and no QUIC packet.
pub fn is_ours(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| (FIRST_HALF..=HELLO).contains(first))
}

/// Whether a datagram is one QUIC packet of an established connection (short header, RFC 9000 §17.3): only such are framed.
pub fn is_framable(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| (0x40..0x80).contains(first))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

impl<'a> Datagram<'a> {
    /// Reads a datagram; `None` if it is none of this layer's or does not keep to its layout.
    pub fn decode(datagram: &'a [u8]) -> Option<Datagram<'a>> {
        let (kind, rest) = datagram.split_first()?;
        match *kind {
            FIRST_HALF | SECOND_HALF => {
                let (number, bytes) = rest.split_first_chunk()?;
                let half =
                    Half { number: u16::from_be_bytes(*number), is_second: *kind == SECOND_HALF, bytes };
                (!bytes.is_empty()).then_some(Datagram::Half(half))
            }
            SOURCE..REPAIR => {
                let header = if kind & ROOMY == 0 { HEADER } else { ROOM };
                let sequence = u32_at(rest, 0)?;
                let packet = datagram.get(header..).filter(|packet| is_framable(packet))?;
                Some(Datagram::Source(Source { sequence, kept: kind & KEPT != 0, packet }))
            }
            REPAIR..REPORT => {
                let (first, count, number) = (u32_at(rest, 0)?, *rest.get(4)?, *rest.get(5)?);
                let sum = datagram.get(REPAIR_HEADER..).filter(|sum| !sum.is_empty())?;
                let valid = (1..=128).contains(&count) && number < 128;
                let loud = kind & LOUD != 0;
                valid.then_some(Datagram::Repair(Repair { first, count, number, loud, sum }))
            }
            REPORT => {
                let number = |index: usize| u32_at(rest, 4 * index);
                let report =
                    Report { newest: number(0)?, lost: number(1)?, runs: number(2)?, recovered: number(3)? };
                (rest.len() == 16).then_some(Datagram::Report(report))
            }
            HELLO => {
                let (heard, token) = rest.split_first()?;
                let token = <[u8; TOKEN]>::try_from(token).ok()?;
                (*heard < 2).then_some(Datagram::Hello(Hello { heard: *heard == 1, token }))
            }
            _ => None,
        }
    }

    /// Appends the datagram.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Datagram::Source(source) => encode_source(out, source, false),
            Datagram::Repair(repair) => {
                out.push(REPAIR | if repair.loud { LOUD } else { 0 });
                out.extend(repair.first.to_be_bytes());
                out.extend([repair.count, repair.number]);
                out.extend(repair.sum);
            }
            Datagram::Report(report) => {
                out.push(REPORT);
                for number in [report.newest, report.lost, report.runs, report.recovered] {
                    out.extend(number.to_be_bytes());
                }
            }
            Datagram::Hello(hello) => {
                out.extend([HELLO, u8::from(hello.heard)]);
                out.extend(hello.token);
            }
            Datagram::Half(half) => {
                out.push(if half.is_second { SECOND_HALF } else { FIRST_HALF });
                out.extend(half.number.to_be_bytes());
                out.extend(half.bytes);
            }
        }
    }
}

/// Appends a source; `roomy` makes its header as long as a repair's, so that a path which carries it carries repairs of
/// packets as long as this one.
pub(crate) fn encode_source(out: &mut Vec<u8>, source: &Source<'_>, roomy: bool) {
    let kept = if source.kept { KEPT } else { 0 };
    out.push(SOURCE | kept | if roomy { ROOMY } else { 0 });
    out.extend(source.sequence.to_be_bytes());
    out.resize(out.len() + if roomy { ROOM - HEADER } else { 0 }, 0);
    out.extend(source.packet);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(datagram: &Datagram<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        datagram.encode(&mut out);
        out
    }

    #[test]
    fn what_is_written_is_read_and_never_taken_for_quic() {
        let packet = [0x5f; 40];
        let source = |kept| Datagram::Source(Source { sequence: 0xfffe_0001, kept, packet: &packet });
        let report = Report { newest: 1, lost: 2, runs: 3, recovered: u32::MAX };
        for datagram in [
            source(true),
            source(false),
            Datagram::Repair(Repair { first: 7, count: 128, number: 127, loud: true, sum: &[1] }),
            Datagram::Repair(Repair { first: 7, count: 1, number: 0, loud: false, sum: &packet }),
            Datagram::Report(report),
            Datagram::Hello(Hello { heard: true, token: [9; 8] }),
            Datagram::Half(Half { number: 0xfe01, is_second: false, bytes: &packet }),
            Datagram::Half(Half { number: 2, is_second: true, bytes: &[0xc0] }),
        ] {
            let bytes = encoded(&datagram);
            assert!(is_ours(&bytes) && !is_framable(&bytes));
            assert_eq!(Datagram::decode(&bytes), Some(datagram));
        }
        assert!(!is_ours(&packet) && is_framable(&packet));
        assert!(!is_ours(&[0xc0]) && !is_framable(&[0xc0]) && !is_ours(&[0x80]) && !is_ours(&[]));
    }

    #[test]
    fn a_roomy_source_is_as_much_longer_than_its_packet_as_a_repair() {
        let source = Source { sequence: 5, kept: true, packet: &[0x40; 100] };
        let mut roomy = Vec::new();
        encode_source(&mut roomy, &source, true);
        assert_eq!(Datagram::decode(&roomy), Some(Datagram::Source(source)));
        let sum = [0; crate::symbol::LENGTH + 100];
        let repair = Datagram::Repair(Repair { first: 5, count: 1, number: 0, loud: false, sum: &sum });
        assert_eq!((roomy.len(), encoded(&repair).len()), (100 + ROOM, 100 + ROOM));
    }

    #[test]
    fn what_breaks_the_layout_is_refused() {
        for bytes in [
            &[0x04, 0, 0][..],
            &[0x05, 0],
            &[0x06, 0, 0, 1],
            &[0x08, 0, 0, 0],
            &[0x08, 0, 0, 0, 1],
            &[0x08, 0, 0, 0, 1, 0xc0],
            &[0x0a, 0, 0, 0, 1, 0x40],
            &[0x0c, 0, 0, 0, 1, 1, 1],
            &[0x0c, 0, 0, 0, 1, 0, 1, 7],
            &[0x0c, 0, 0, 0, 1, 129, 1, 7],
            &[0x0c, 0, 0, 0, 1, 1, 128, 7],
            &[0x0e; 16],
            &[0x0f, 2, 0, 0, 0, 0, 0, 0, 0, 0],
            &[0x0f, 0, 0, 0, 0, 0, 0, 0, 0],
            &[0x10, 0, 0, 0, 0, 0, 0, 0, 0],
        ] {
            assert_eq!(Datagram::decode(bytes), None, "{bytes:x?}");
        }
    }
}
