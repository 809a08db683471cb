//! SIP (RFC 3261) and SDP (RFC 8866) as an observer reads them on their way past: which calls begin, change and end, and where
//! the packets of their speech go. BACOPT's voice events (Davern, Nashid Islam, Sreenan, 2012, §4) derive from it.
//!
//! Pure, and no party to any call: it answers nothing, and what it does not understand it passes over. All that it reads
//! is strangers' writing; it holds a bounded number of calls and reads a bounded part of each message.

mod body;
mod connections;
mod datagram;
mod dialog;
mod exchange;
mod framing;
mod message;
mod name;
mod observer;
mod packet;
mod sdp;
mod segment;
mod speech;

pub use connections::Connections;
pub use datagram::Datagram;
pub use framing::Framing;
pub use message::{Kind, Message, Method};
pub use name::LONGEST_NAME;
pub use observer::{Change, MOST_DIALOGS, Observer};
pub use sdp::{Audio, Session};
pub use segment::Segment;
pub use speech::{Speech, Stream};

/// Entry point of the fuzz target: whatever passes, reading it ends, and what is made of it is within its bounds.
#[doc(hidden)]
pub fn fuzz(data: &[u8]) {
    use farhop_diffserv::calls::Hop;
    let mut observer = Observer::default();
    let mut now = std::time::Duration::ZERO;
    let mut framing = Framing::default();
    let mut connections = Connections::default();
    // Pieces of one input meet the state that earlier ones have left.
    let _ = (Datagram::read(data), Segment::read(data));
    for piece in data.split(|byte| *byte == 0) {
        let _ = Datagram::read(piece);
        if let Some(segment) = Segment::read(piece) {
            connections.handle_segment(now, &segment, |message| assert!(message.len() <= message::LONGEST));
        }
        if let Some((place, content)) = piece.split_first_chunk::<2>() {
            let segment = fuzzed(*place, content);
            connections.handle_segment(now, &segment, |message| assert!(message.len() <= message::LONGEST));
        }
        framing.handle_bytes(piece, |message| assert!(message.len() <= message::LONGEST));
        if let Some(Change::Speaks(speech)) = observer.handle_bytes(now, piece) {
            assert!((1..=speech::MOST_MEDIA).contains(&speech.media.len()), "{speech:?}");
            assert!(speech.rate(&Hop::PLAIN).is_ok_and(|rate| rate.0 > 0), "{speech:?}");
            assert!((1..=LONGEST_NAME).contains(&speech.call.len()), "{speech:?}");
            assert!(speech.call.bytes().all(|byte| byte.is_ascii_graphic()));
        }
        now += std::time::Duration::from_secs(1);
        let _ = observer.poll_timeout(now);
    }
    assert!(observer.dialogs() <= MOST_DIALOGS);
}

/// A segment of one of few connections, with a number near those of others.
fn fuzzed(place: [u8; 2], content: &[u8]) -> Segment<'_> {
    let at = |port: u8| std::net::SocketAddr::from(([127, 0, 0, 1], u16::from(port)));
    let [flags, number] = place;
    Segment {
        from: at(flags & 1),
        to: at(2),
        number: u32::from(number).wrapping_sub(128),
        opens: flags & 2 != 0,
        ends: flags & 4 != 0,
        resets: flags & 24 == 24,
        content,
    }
}
