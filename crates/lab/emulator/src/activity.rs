//! What arrived in each span of a load, and on which connections: what figures of a load's dynamics draw. Reads headers only.
//! Costs a look-up for each packet, so it is kept only where someone asks for it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use crate::flows::connection;

/// More spans and connections than these are not kept apart, so that nothing fills the memory.
const MOST_SPANS: usize = 36_000;
const MOST_CONNECTIONS: usize = 4_096;

/// One direction, span by span since the last reset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    /// How long a span is.
    pub step: Duration,
    /// Bytes that arrived in each span, layer 3 up.
    pub bytes: Vec<u64>,
    /// The spans in which each connection brought something, ascending; in the order in which they first did. A connection has
    /// the same key in both directions: protocol (6 TCP, 17 UDP) and both ends.
    pub connections: Vec<((u8, SocketAddr, SocketAddr), Vec<u32>)>,
    begin: Duration,
    places: HashMap<(u8, SocketAddr, SocketAddr), usize>,
}

impl Activity {
    /// Nothing yet, counted from `begin` on the lane's clock.
    pub(crate) fn new(step: Duration, begin: Duration) -> Activity {
        let step = step.max(Duration::from_millis(1));
        Activity { step, bytes: Vec::new(), connections: Vec::new(), begin, places: HashMap::new() }
    }

    /// A packet arrived.
    pub(crate) fn note(&mut self, at: Duration, packet: &[u8]) {
        let span = (at.saturating_sub(self.begin).as_nanos() / self.step.as_nanos()) as usize;
        if span >= MOST_SPANS {
            return;
        }
        if self.bytes.len() <= span {
            self.bytes.resize(span + 1, 0);
        }
        self.bytes[span] += packet.len() as u64;
        let Some(key) = connection(packet) else { return };
        let known = self.places.len();
        if known >= MOST_CONNECTIONS && !self.places.contains_key(&key) {
            return;
        }
        let place = *self.places.entry(key).or_insert(known);
        if place == known {
            self.connections.push((key, Vec::new()));
        }
        let spans = &mut self.connections[place].1;
        if spans.last() != Some(&(span as u32)) {
            spans.push(span as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(from: u16, to: u16) -> Vec<u8> {
        let mut packet = vec![0; 40];
        (packet[0], packet[9]) = (0x45, 6);
        packet[20..22].copy_from_slice(&from.to_be_bytes());
        packet[22..24].copy_from_slice(&to.to_be_bytes());
        packet
    }

    #[test]
    fn bytes_and_connections_stand_in_the_span_in_which_they_arrived() {
        let ms = Duration::from_millis;
        let mut activity = Activity::new(ms(100), ms(1000));
        for (at, from) in [(1010, 1), (1020, 1), (1020, 2), (1350, 1)] {
            activity.note(ms(at), &packet(from, 80));
        }
        assert_eq!(activity.bytes, [120, 0, 0, 40]);
        let spans: Vec<&[u32]> = activity.connections.iter().map(|(_, spans)| spans.as_slice()).collect();
        assert_eq!(spans, [&[0, 3][..], &[0]]);
        let mut back = Activity::new(ms(100), ms(1000));
        back.note(ms(1000), &packet(80, 1));
        assert_eq!(back.connections[0].0, activity.connections[0].0, "the same both ways");
    }

    #[test]
    fn what_comes_after_the_last_span_is_not_kept() {
        let mut activity = Activity::new(Duration::from_millis(1), Duration::ZERO);
        activity.note(Duration::from_secs(40), &packet(1, 80));
        assert!(activity.bytes.is_empty() && activity.connections.is_empty());
    }
}
