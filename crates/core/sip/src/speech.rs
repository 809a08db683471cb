//! What a call speaks, and what of the link that takes.

use std::net::SocketAddr;
use std::time::Duration;

use farhop_diffserv::calls::{Codec, Hop, NotWhole, rate};
use farhop_units::{BitRate, Bytes};

/// Addresses of one call that are told of; what they are full of already, others find no place in.
pub(crate) const MOST_MEDIA: usize = 8;
/// Streams of one call that are told of: both ends of each have to find a place.
pub(crate) const MOST_STREAMS: usize = MOST_MEDIA / 2;
/// RFC 3711 §5.2: the tag of a packet, 80 bits unless somebody asks for less.
const TAG: Bytes = Bytes(10);

/// What a call speaks, and where to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Speech {
    /// Its name: its `Call-ID`, or where that is longer than [`LONGEST_NAME`](crate::LONGEST_NAME) the beginning and a sum of it.
    pub call: String,
    /// The streams that both sides have accepted; none as long as there is no answer.
    pub agreed: Vec<Stream>,
    /// The streams of an offer that is neither refused nor wholly accepted yet. Where there are agreed ones they are to take the place of
    /// these.
    pub offered: Vec<Stream>,
    /// Where its packets go, at both ends as far as they are known: what is agreed before what is offered.
    pub media: Vec<SocketAddr>,
}

/// A stream of speech.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    /// The codec that it will speak, as far as is known: the first of the answer, before it the first of the offer. One that is
    /// not known here counts as G.711, which none of the usual ones exceeds.
    pub codec: Codec,
    /// How long the speech of a packet is.
    pub packet_time: Duration,
    /// Whether its packets bear what proves them true (SRTP).
    pub is_secured: bool,
}

impl Speech {
    /// What it takes of the link in each direction, all of its streams with all that is around them. While something else is
    /// offered than agreed, either may be spoken, and what takes more counts.
    ///
    /// # Errors
    /// A packet time is no whole number of its codec's frames.
    pub fn rate(&self, hop: &Hop) -> Result<BitRate, NotWhole> {
        let hop = hop.of_media(&self.media);
        let sum = |streams: &[Stream]| {
            let rates = streams.iter().map(|stream| stream.rate(&hop));
            rates.sum::<Result<u64, NotWhole>>()
        };
        Ok(BitRate(sum(&self.agreed)?.max(sum(&self.offered)?)))
    }
}

impl Stream {
    fn rate(&self, hop: &Hop) -> Result<u64, NotWhole> {
        let tag = if self.is_secured { TAG } else { Bytes(0) };
        let hop = Hop { overhead: hop.overhead + tag, ..*hop };
        Ok(rate(self.codec, self.packet_time, &hop)?.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Stream =
        Stream { codec: Codec::G729, packet_time: Duration::from_millis(20), is_secured: false };

    fn kbit(agreed: &[Stream], offered: &[Stream], media: &str) -> f64 {
        let media = media.split_whitespace().map(|it| it.parse().unwrap()).collect();
        let speech = Speech { call: "a".into(), agreed: agreed.to_vec(), offered: offered.to_vec(), media };
        speech.rate(&Hop::PLAIN).unwrap().0 as f64 / 1e3
    }

    #[test]
    fn every_stream_counts_with_all_that_is_around_it() {
        let secured = Stream { is_secured: true, ..PLAIN };
        let wide = Stream { codec: Codec::G711, ..PLAIN };
        assert_eq!(kbit(&[PLAIN], &[], "10.0.0.1:4000"), 24.0);
        assert_eq!(kbit(&[secured], &[], "10.0.0.1:4000"), 28.0);
        assert_eq!(kbit(&[PLAIN, wide], &[], "10.0.0.1:4000 10.0.0.1:4002"), 104.0);
        assert_eq!(kbit(&[secured, PLAIN], &[], "10.0.0.1:4000 [::1]:4002"), 68.0);
    }

    #[test]
    fn of_what_is_agreed_and_what_is_offered_that_counts_which_takes_more() {
        let wide = Stream { codec: Codec::G711, ..PLAIN };
        assert_eq!(kbit(&[PLAIN], &[wide], "10.0.0.1:4000"), 80.0);
        assert_eq!(kbit(&[wide], &[PLAIN], "10.0.0.1:4000"), 80.0);
    }
}
