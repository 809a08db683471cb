//! Which port stands for which connection, where a kernel is to accept connections that led elsewhere: they come to it from an address of
//! ours, each from a port of its own. Handed the time.
//!
//! ```text
//!           opens                     both sides end, or a reset            a minute
//! nothing ─────────▶ a port is its ───────────────────────────▶ ending ────────────▶ nothing
//!                        └──────────── nothing for a quarter of an hour ────────────────┘
//! ```

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use crate::read::Segment;

/// Ports that may stand for connections: above those of servers.
const FIRST: u16 = 1024;
const PORTS: usize = u16::MAX as usize - FIRST as usize + 1;
/// The kernel asks silent clients for a sign of life each minute.
const IDLE: Duration = Duration::from_secs(15 * 60);
/// Late segments and repeated ends of a connection that is over.
const ENDING: Duration = Duration::from_secs(60);
/// Openings after which it is looked for what is over.
const SWEEP: usize = 1024;
/// Time between two looks, however many want a port that there is none of.
const PAUSE: Duration = Duration::from_secs(1);

/// A connection, or a flow of datagrams: its client and where that wanted to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ends {
    /// The client.
    pub client: SocketAddr,
    /// Where it wanted to go.
    pub to: SocketAddr,
}

#[derive(Debug)]
struct Entry {
    ends: Ends,
    used: Duration,
    client_ended: bool,
    server_ended: bool,
}

impl Entry {
    fn is_over(&self, now: Duration) -> bool {
        let ended = self.client_ended && self.server_ended;
        now >= self.used + if ended { ENDING } else { IDLE }
    }

    fn see(&mut self, now: Duration, segment: &Segment, of_client: bool) {
        self.used = now;
        let side = if of_client { &mut self.client_ended } else { &mut self.server_ended };
        *side |= segment.ends;
        if segment.resets {
            (self.client_ended, self.server_ended) = (true, true);
        }
    }
}

/// See the module.
#[derive(Debug)]
pub struct Table {
    by_ends: HashMap<Ends, u16>,
    by_port: HashMap<u16, Entry>,
    most: usize,
    next: u16,
    opened: usize,
    swept: Option<Duration>,
}

impl Table {
    /// For as many connections at a time as there are ports, and no more than `most`.
    pub fn new(most: usize) -> Table {
        Table {
            by_ends: HashMap::new(),
            by_port: HashMap::new(),
            most: most.min(PORTS),
            next: FIRST,
            opened: 0,
            swept: None,
        }
    }

    /// The port that stands for the connection of a client's segment. `None` for one that was not seen to open, or that there is
    /// no port for.
    pub fn outward(&mut self, now: Duration, ends: Ends, segment: &Segment) -> Option<u16> {
        let port = match self.by_ends.get(&ends) {
            Some(port) => *port,
            None if segment.opens => self.begin(now, ends)?,
            None => return None,
        };
        let entry = self.by_port.get_mut(&port)?;
        if segment.opens {
            (entry.client_ended, entry.server_ended) = (false, false);
        }
        entry.see(now, segment, true);
        Some(port)
    }

    /// The connection that the kernel's segment to this port is of.
    pub fn inward(&mut self, now: Duration, port: u16, segment: &Segment) -> Option<Ends> {
        let entry = self.by_port.get_mut(&port)?;
        entry.see(now, segment, false);
        Some(entry.ends)
    }

    /// The connection that this port stands for.
    pub fn of(&self, port: u16) -> Option<Ends> {
        self.by_port.get(&port).map(|entry| entry.ends)
    }

    /// Whether this connection has a port.
    pub fn knows(&self, ends: Ends) -> bool {
        self.by_ends.contains_key(&ends)
    }

    fn begin(&mut self, now: Duration, ends: Ends) -> Option<u16> {
        self.opened += 1;
        let is_wanted = self.by_port.len() >= self.most || self.opened.is_multiple_of(SWEEP);
        if is_wanted && self.swept.is_none_or(|at| now >= at + PAUSE) {
            self.swept = Some(now);
            let Table { by_ends, by_port, .. } = self;
            by_port.retain(|_, entry| !entry.is_over(now));
            by_ends.retain(|_, port| by_port.contains_key(port));
        }
        if self.by_port.len() >= self.most {
            return None;
        }
        // One of them is free: there are no more entries than ports.
        while self.by_port.contains_key(&self.next) {
            self.next = self.next.checked_add(1).unwrap_or(FIRST);
        }
        let port = self.next;
        self.next = self.next.checked_add(1).unwrap_or(FIRST);
        self.by_ends.insert(ends, port);
        let entry = Entry { ends, used: now, client_ended: false, server_ended: false };
        self.by_port.insert(port, entry);
        Some(port)
    }
}
