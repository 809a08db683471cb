//! The one scheduler that all writes to a carrier pass: by class (strict), then user (deficit round
//! robin), then render priority (RFC 9218), and never more than [`Pace::ahead`] of link time before the
//! link could have taken it, so that a more urgent byte never waits behind a backlog.
//!
//! Calling order: `open` → `enqueue`/`finish` → `poll_grant` (marks the stream busy) → `written` (the carrier
//! took it all) → … → `close`. `next_wakeup` says when a grant that the pace held back is due.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use farhop_units::{BitRate, Bytes as ByteCount};

use crate::frame::{Class, Priority};

/// A stream of one session; the driver maps it to the carrier's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

/// How fast writes may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Payload rate of the direction this end writes; `None` leaves it to the carrier's windows.
    pub rate: Option<BitRate>,
    /// About what the link takes where no rate is kept to: pieces and turns are sized by it. `None` where nobody knows.
    pub about: Option<BitRate>,
    /// Link time that may be written ahead.
    pub ahead: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Pace { rate: None, about: None, ahead: Duration::from_millis(50) }
    }
}

/// Share of a contracted rate that payload gets: IP, UDP, QUIC and frame headers take the rest of a
/// 1,452-byte packet.
const PAYLOAD_SHARE: f64 = 0.95;
/// The most that one grant hands to the carrier, and the least worth waking up for: about a packet. In between it is
/// [`Pace::ahead`] of link time. A user may send as much before the next user's turn.
const LARGEST_GRANT: usize = 16 * 1024;
const SMALLEST_GRANT: usize = 1_400;

/// Link time for which a stream that is not incremental keeps its turn; where no rate is kept to, so many bytes at the most.
/// RFC 9218 §10 has it served to its end; but a download of minutes, of which nobody says what it is, must not starve what is
/// asked after it.
const STRETCH: Duration = Duration::from_millis(500);
const STRETCH_WITHOUT_RATE: u64 = 256 * 1024;

/// What a segment that waits takes besides its bytes.
const SEGMENT: usize = 128;

/// Where a stream stands in the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Class, served strictly.
    pub class: Class,
    /// Users of a class share fairly.
    pub user: u64,
    /// Render priority within a user.
    pub priority: Priority,
    /// Someone waits for it: goes ahead of what was pushed unasked with the same urgency.
    pub asked: bool,
}

/// Bytes that may go to the carrier now.
#[derive(Debug, PartialEq, Eq)]
pub struct Grant {
    /// Whose.
    pub stream: StreamId,
    /// In order; possibly none when only the end is due.
    pub segments: Vec<Bytes>,
    /// The stream ends after these.
    pub end: bool,
    /// Nothing more of it waits.
    pub drains: bool,
}

/// The order within a user: urgency, asked for or not, turn.
type Key = (u8, bool, u64, StreamId);

struct Queue {
    place: Place,
    /// Creation order; once a stretch is over, or of an incremental stream each grant, the order of that.
    turn: u64,
    /// Bytes granted since then.
    granted: u64,
    segments: VecDeque<Bytes>,
    queued: usize,
    end: bool,
    busy: bool,
}

impl Queue {
    fn is_ready(&self) -> bool {
        !self.busy && (self.queued > 0 || self.end)
    }

    fn key(&self, id: StreamId) -> Key {
        (self.place.priority.urgency, !self.place.asked, self.turn, id)
    }
}

struct User {
    deficit: i64,
    ready: BTreeSet<Key>,
}

#[derive(Default)]
struct ClassQueue {
    users: HashMap<u64, User>,
    ring: VecDeque<u64>,
}

/// See the module.
pub struct Scheduler {
    pace: Pace,
    streams: HashMap<StreamId, Queue>,
    classes: BTreeMap<Class, ClassQueue>,
    turns: u64,
    tokens: f64,
    filled: Duration,
    /// While the carrier is full only what is more urgent than this is granted.
    floor: Option<(Class, u8)>,
}

impl Scheduler {
    /// A scheduler that starts with a full allowance.
    pub fn new(now: Duration, pace: Pace) -> Self {
        let mut scheduler = Scheduler {
            pace,
            streams: HashMap::new(),
            classes: BTreeMap::new(),
            turns: 0,
            tokens: 0.0,
            filled: now,
            floor: None,
        };
        scheduler.tokens = scheduler.allowance();
        scheduler
    }

    /// Bytes that may be ahead of the link.
    fn allowance(&self) -> f64 {
        let ahead = |rate: BitRate| rate.bytes_in(self.pace.ahead).0.max(SMALLEST_GRANT as u64) as f64;
        self.pace.rate.map_or(f64::MAX, ahead)
    }

    /// Bytes that one grant takes at the most, and that a user may send before the next one's turn: what is asked meanwhile
    /// waits for that, so on a slow link it is little.
    fn piece(&self) -> usize {
        let ahead = |rate: BitRate| rate.bytes_in(self.pace.ahead).0 as usize;
        let known = self.pace.rate.or(self.pace.about);
        known.map_or(LARGEST_GRANT, |rate| ahead(rate).clamp(SMALLEST_GRANT, LARGEST_GRANT))
    }

    /// Bytes for which a stream that is not incremental keeps its turn.
    fn stretch(&self) -> u64 {
        let about = || self.pace.about.map_or(u64::MAX, |rate| rate.bytes_in(STRETCH).0);
        let unpaced = || about().clamp(LARGEST_GRANT as u64 / 8, STRETCH_WITHOUT_RATE);
        self.pace.rate.map_or_else(unpaced, |rate| rate.bytes_in(STRETCH).0)
    }

    /// Changes the pace.
    pub fn set_pace(&mut self, now: Duration, pace: Pace) {
        self.refill(now);
        self.pace = pace;
        self.tokens = self.tokens.min(self.allowance());
    }

    /// The link takes about this much, whether or not a rate is kept to.
    pub fn set_about(&mut self, rate: BitRate) {
        self.pace.about = Some(rate);
    }

    /// The carrier is full of writes of this rank (`None`: it has room): until that changes only what is more urgent
    /// is granted, since a carrier serves the writes that wait for it in no order.
    pub fn set_floor(&mut self, floor: Option<(Class, u8)>) {
        self.floor = floor;
    }

    /// Class and urgency of a stream.
    pub fn rank(&self, id: StreamId) -> Option<(Class, u8)> {
        self.streams.get(&id).map(|queue| (queue.place.class, queue.place.priority.urgency))
    }

    /// A stream will write.
    pub fn open(&mut self, id: StreamId, place: Place) {
        self.turns += 1;
        let queue = Queue {
            place,
            turn: self.turns,
            granted: 0,
            segments: VecDeque::new(),
            queued: 0,
            end: false,
            busy: false,
        };
        self.streams.insert(id, queue);
    }

    /// Moves a stream to another place; what it has queued moves along.
    pub fn replace(&mut self, id: StreamId, place: Place) {
        self.unready(id);
        if let Some(queue) = self.streams.get_mut(&id) {
            queue.place = place;
        }
        self.ready(id);
    }

    /// Adds bytes to the end of a stream.
    pub fn enqueue(&mut self, id: StreamId, bytes: Bytes) {
        if let Some(queue) = self.streams.get_mut(&id) {
            queue.queued += bytes.len();
            queue.segments.push_back(bytes);
        }
        self.ready(id);
    }

    /// The stream ends after what is queued.
    pub fn finish(&mut self, id: StreamId) {
        if let Some(queue) = self.streams.get_mut(&id) {
            queue.end = true;
        }
        self.ready(id);
    }

    /// Bytes not yet handed to the carrier.
    pub fn queued(&self, id: StreamId) -> usize {
        self.streams.get(&id).map_or(0, |queue| queue.queued)
    }

    /// Bytes of memory that these take, about: a body in very small pieces takes many times its length.
    pub fn held(&self, id: StreamId) -> usize {
        self.streams.get(&id).map_or(0, |queue| queue.queued + queue.segments.len() * SEGMENT)
    }

    /// The carrier has taken the last grant of this stream.
    pub fn written(&mut self, id: StreamId) {
        if let Some(queue) = self.streams.get_mut(&id) {
            queue.busy = false;
        }
        self.ready(id);
    }

    /// Forgets a stream and what it has queued.
    pub fn close(&mut self, id: StreamId) {
        self.unready(id);
        self.streams.remove(&id);
    }

    fn ready(&mut self, id: StreamId) {
        let Some(queue) = self.streams.get(&id).filter(|queue| queue.is_ready()) else { return };
        let new = User { deficit: self.piece() as i64, ready: BTreeSet::new() };
        let class = self.classes.entry(queue.place.class).or_default();
        let user = class.users.entry(queue.place.user).or_insert(new);
        if user.ready.is_empty() {
            class.ring.push_back(queue.place.user);
        }
        user.ready.insert(queue.key(id));
    }

    fn unready(&mut self, id: StreamId) {
        let Some(queue) = self.streams.get(&id) else { return };
        let Some(class) = self.classes.get_mut(&queue.place.class) else { return };
        let Some(user) = class.users.get_mut(&queue.place.user) else { return };
        if user.ready.remove(&queue.key(id)) && user.ready.is_empty() {
            class.users.remove(&queue.place.user);
            class.ring.retain(|other| *other != queue.place.user);
            if class.ring.is_empty() {
                self.classes.remove(&queue.place.class);
            }
        }
    }

    fn refill(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.filled).as_secs_f64();
        self.filled = self.filled.max(now);
        match self.pace.rate {
            Some(rate) => {
                let payload = rate.0 as f64 / 8.0 * PAYLOAD_SHARE;
                self.tokens = (self.tokens + passed * payload).min(self.allowance());
            }
            None => self.tokens = f64::MAX,
        }
    }

    /// The bytes to write next, if any are queued and the pace allows.
    pub fn poll_grant(&mut self, now: Duration) -> Option<Grant> {
        self.refill(now);
        let quantum = self.piece() as i64;
        let (class, ring) = self.classes.iter_mut().next()?;
        // What keeps the carrier alive does not wait for the pace (it still pays).
        if self.tokens <= 0.0 && *class != Class::Expedited {
            return None;
        }
        // Each round gives every user a quantum; who overdrew sits rounds out.
        let (urgency, .., id) = *loop {
            let user = ring.users.get_mut(ring.ring.front()?)?;
            // What a link that has become slow since gave a user is no more than a turn now.
            user.deficit = user.deficit.min(quantum);
            if user.deficit > 0 || ring.ring.len() == 1 {
                break user.ready.first()?;
            }
            user.deficit += quantum;
            ring.ring.rotate_left(1);
        };
        if self.floor.is_some_and(|floor| (*class, urgency) >= floor) {
            return None;
        }
        Some(self.grant(id))
    }

    fn grant(&mut self, id: StreamId) -> Grant {
        let (most, stretch) = (self.piece(), self.stretch());
        let mut grant = Grant { stream: id, segments: Vec::new(), end: false, drains: true };
        let size = self.streams.get(&id).map_or(0, |queue| queue.queued.min(most));
        self.charge(id, size);
        self.unready(id);
        if let Some(queue) = self.streams.get_mut(&id) {
            let mut wanted = size;
            while wanted > 0 {
                let Some(mut segment) = queue.segments.pop_front() else { break };
                if segment.len() > wanted {
                    queue.segments.push_front(segment.split_off(wanted));
                }
                wanted -= segment.len();
                grant.segments.push(segment);
            }
            queue.queued -= size;
            grant.drains = queue.queued == 0;
            queue.busy = true;
            if queue.queued == 0 && queue.end {
                queue.end = false;
                grant.end = true;
            }
            queue.granted += size as u64;
            if queue.place.priority.incremental || queue.granted >= stretch {
                self.turns += 1;
                (queue.turn, queue.granted) = (self.turns, 0);
            }
        }
        self.tokens -= size as f64;
        grant
    }

    /// Takes `size` off the user's share, if others of the class wait too.
    fn charge(&mut self, id: StreamId, size: usize) {
        let Some(place) = self.streams.get(&id).map(|queue| queue.place) else { return };
        let Some(class) = self.classes.get_mut(&place.class).filter(|class| class.ring.len() > 1) else {
            return;
        };
        if let Some(user) = class.users.get_mut(&place.user) {
            user.deficit -= size as i64;
        }
    }

    /// When the pace allows the next grant; `None` when nothing waits for it.
    pub fn next_wakeup(&self, now: Duration) -> Option<Duration> {
        let rate = self.pace.rate?;
        if self.classes.is_empty() || self.is_floored() {
            // A full carrier says when it has room again; asking it over and over would spin.
            return None;
        }
        let wanted = (self.allowance() / 4.0).min(SMALLEST_GRANT as f64) - self.tokens;
        let payload = rate.0 as f64 / 8.0 * PAYLOAD_SHARE;
        // A rate of nothing never allows anything.
        let wait = Duration::try_from_secs_f64((wanted / payload).max(0.0)).ok()?;
        now.checked_add(wait)
    }

    /// True when what `poll_grant` came upon last is not above the floor.
    fn is_floored(&self) -> bool {
        let front = || {
            let (class, queue) = self.classes.iter().next()?;
            let (urgency, ..) = queue.users.get(queue.ring.front()?)?.ready.first()?;
            Some((*class, *urgency))
        };
        self.floor.is_some_and(|floor| front().is_some_and(|rank| rank >= floor))
    }

    /// Bytes queued over all streams.
    pub fn backlog(&self) -> ByteCount {
        ByteCount(self.streams.values().map(|queue| queue.queued as u64).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Duration = Duration::ZERO;

    fn place(class: Class, user: u64, urgency: u8, incremental: bool) -> Place {
        Place { class, user, priority: Priority { urgency, incremental }, asked: true }
    }

    /// Opens a stream with `size` bytes queued.
    fn fill(scheduler: &mut Scheduler, id: u64, place: Place, size: usize) -> StreamId {
        scheduler.open(StreamId(id), place);
        scheduler.enqueue(StreamId(id), Bytes::from(vec![0; size]));
        StreamId(id)
    }

    /// Takes everything in order and counts bytes per stream until `most` are taken.
    fn order(scheduler: &mut Scheduler, now: Duration, most: usize) -> Vec<(u64, usize)> {
        let (mut taken, mut all) = (0, Vec::<(u64, usize)>::new());
        while let Some(grant) = scheduler.poll_grant(now) {
            let size: usize = grant.segments.iter().map(Bytes::len).sum();
            match all.last_mut() {
                Some((id, sum)) if *id == grant.stream.0 => *sum += size,
                _ => all.push((grant.stream.0, size)),
            }
            scheduler.written(grant.stream);
            taken += size;
            if taken >= most {
                break;
            }
        }
        all
    }

    #[test]
    fn a_more_urgent_stream_goes_first_and_equals_go_in_turn() {
        let mut s = Scheduler::new(START, Pace::default());
        fill(&mut s, 1, place(Class::Web, 1, 5, false), 100_000);
        fill(&mut s, 2, place(Class::Web, 1, 1, false), 100_000);
        fill(&mut s, 3, place(Class::Web, 1, 5, false), 100_000);
        assert_eq!(order(&mut s, START, usize::MAX), [(2, 100_000), (1, 100_000), (3, 100_000)]);
    }

    #[test]
    fn incremental_streams_share() {
        let mut s = Scheduler::new(START, Pace::default());
        fill(&mut s, 1, place(Class::Web, 1, 5, true), 64 * 1024);
        fill(&mut s, 2, place(Class::Web, 1, 5, true), 64 * 1024);
        let turns: Vec<u64> = order(&mut s, START, usize::MAX).into_iter().map(|(id, _)| id).collect();
        assert_eq!(turns, [1, 2].repeat(64 * 1024 / LARGEST_GRANT));
    }

    #[test]
    fn what_is_asked_later_waits_for_half_a_second_of_a_long_download_and_not_for_its_end() {
        let rate = BitRate::kbit(64);
        let mut s = Scheduler::new(START, Pace { rate: Some(rate), ..Pace::default() });
        fill(&mut s, 1, place(Class::Web, 1, 3, false), 300_000);
        let (mut now, mut before) = (START, 0);
        while before < 50_000 {
            now = s.next_wakeup(now).unwrap().max(now + Duration::from_micros(100));
            before += order(&mut s, now, usize::MAX).iter().map(|(_, size)| size).sum::<usize>();
        }
        fill(&mut s, 2, place(Class::Web, 1, 3, false), 500);
        let asked = now;
        while s.queued(StreamId(2)) > 0 {
            now = s.next_wakeup(now).unwrap().max(now + Duration::from_micros(100));
            order(&mut s, now, usize::MAX);
        }
        assert!(now - asked <= STRETCH + Duration::from_millis(250), "{:?}", now - asked);
    }

    #[test]
    fn users_of_a_class_share_whatever_their_number_of_streams() {
        let mut s = Scheduler::new(START, Pace::default());
        for id in 0..50 {
            fill(&mut s, id, place(Class::Web, 1, 3, false), 100_000);
        }
        fill(&mut s, 99, place(Class::Web, 2, 3, false), 200_000);
        let second: usize =
            order(&mut s, START, 400_000).iter().filter(|(id, _)| *id == 99).map(|(_, size)| size).sum();
        assert!((150_000..=200_000).contains(&second), "{second} of 400000");
    }

    #[test]
    fn a_class_waits_for_the_classes_before_it() {
        let mut s = Scheduler::new(START, Pace::default());
        fill(&mut s, 1, place(Class::Bulk, 1, 0, false), 100_000);
        fill(&mut s, 2, place(Class::Web, 1, 7, false), 100_000);
        assert_eq!(order(&mut s, START, usize::MAX)[0].0, 2);
    }

    #[test]
    fn no_more_than_fifty_milliseconds_of_link_time_go_ahead() {
        let rate = BitRate::mbit(8);
        let mut s = Scheduler::new(START, Pace { rate: Some(rate), ..Pace::default() });
        fill(&mut s, 1, place(Class::Web, 1, 3, false), 10_000_000);
        let ahead: usize = order(&mut s, START, usize::MAX).iter().map(|(_, size)| size).sum();
        assert!(ahead <= 50_000 + LARGEST_GRANT, "{ahead}");
        let (mut now, mut sent) = (START, 0);
        while now < Duration::from_secs(5) {
            now = s.next_wakeup(now).unwrap().max(now + Duration::from_micros(100));
            sent += order(&mut s, now, usize::MAX).iter().map(|(_, size)| size).sum::<usize>();
        }
        let rate = sent as f64 * 8.0 / 5.0 / 8e6;
        assert!((0.94..=0.96).contains(&rate), "{rate} of the link's rate");
    }

    #[test]
    fn on_a_slow_link_another_users_first_bytes_wait_for_about_one_packet() {
        let rate = BitRate::kbit(64);
        let mut s = Scheduler::new(START, Pace { rate: Some(rate), ..Pace::default() });
        fill(&mut s, 1, place(Class::Web, 1, 3, false), 300_000);
        let (mut now, mut before) = (START, 0);
        while before < 20_000 {
            now = s.next_wakeup(now).unwrap().max(now + Duration::from_micros(100));
            before += order(&mut s, now, usize::MAX).iter().map(|(_, size)| size).sum::<usize>();
        }
        fill(&mut s, 2, place(Class::Web, 2, 3, false), 500);
        let asked = now;
        while s.queued(StreamId(2)) > 0 {
            now = s.next_wakeup(now).unwrap().max(now + Duration::from_micros(100));
            order(&mut s, now, usize::MAX);
        }
        // One that has left already, and the first user's turn.
        let packet = rate.time_for(ByteCount(1452));
        assert!(now - asked <= 2 * packet + packet / 10, "{:?}", now - asked);
    }

    #[test]
    fn pieces_and_turns_follow_what_the_link_takes_where_no_rate_is_kept_to() {
        let sizes = |about| {
            let mut s = Scheduler::new(START, Pace { about, ..Pace::default() });
            fill(&mut s, 1, place(Class::Web, 1, 3, false), 1_000_000);
            fill(&mut s, 2, place(Class::Web, 1, 3, false), 1_000_000);
            let first: usize = s.poll_grant(START).unwrap().segments.iter().map(Bytes::len).sum();
            s.written(StreamId(1));
            (first, first + order(&mut s, START, 500_000).first().map_or(0, |(_, size)| *size))
        };
        assert_eq!(sizes(None), (LARGEST_GRANT, STRETCH_WITHOUT_RATE as usize));
        // Half a second of 64 kbit/s are 4,000 bytes, whole packets.
        assert_eq!(sizes(Some(BitRate::kbit(64))), (SMALLEST_GRANT, 3 * SMALLEST_GRANT));
        assert_eq!(sizes(Some(BitRate::mbit(1))).0, 6_250);
        assert_eq!(sizes(Some(BitRate::mbit(100))), (LARGEST_GRANT, STRETCH_WITHOUT_RATE as usize));
    }

    #[test]
    fn a_stream_is_not_granted_twice_before_the_carrier_took_it() {
        let mut s = Scheduler::new(START, Pace::default());
        fill(&mut s, 1, place(Class::Web, 1, 3, false), 100_000);
        assert!(s.poll_grant(START).is_some());
        assert_eq!(s.poll_grant(START), None);
        s.written(StreamId(1));
        assert!(s.poll_grant(START).is_some());
    }

    #[test]
    fn the_end_comes_with_the_last_bytes_or_alone() {
        let mut s = Scheduler::new(START, Pace::default());
        let id = fill(&mut s, 1, place(Class::Web, 1, 3, false), 10);
        s.finish(id);
        assert!(s.poll_grant(START).unwrap().end);
        s.open(StreamId(2), place(Class::Web, 1, 3, false));
        s.finish(StreamId(2));
        let grant = s.poll_grant(START).unwrap();
        assert!(grant.end && grant.segments.is_empty());
        s.written(StreamId(2));
        assert_eq!(s.poll_grant(START), None);
    }

    #[test]
    fn a_full_carrier_is_given_only_what_is_more_urgent() {
        let rate = Some(BitRate::mbit(8));
        let mut s = Scheduler::new(START, Pace { rate, ..Pace::default() });
        fill(&mut s, 1, place(Class::Web, 1, 3, false), 10);
        s.set_floor(Some((Class::Web, 3)));
        assert_eq!(s.poll_grant(START), None);
        assert_eq!(s.next_wakeup(START), None, "asked again and again while the carrier is full");
        fill(&mut s, 2, place(Class::Web, 1, 1, false), 10);
        assert_eq!(s.poll_grant(START).unwrap().stream, StreamId(2));
        s.set_floor(None);
        assert_eq!(s.poll_grant(START).unwrap().stream, StreamId(1));
    }

    #[test]
    fn a_closed_stream_leaves_nothing_behind() {
        let mut s = Scheduler::new(START, Pace::default());
        let id = fill(&mut s, 1, place(Class::Web, 1, 3, false), 10);
        s.close(id);
        assert_eq!(s.poll_grant(START), None);
        assert!(s.classes.is_empty() && s.streams.is_empty());
    }
}
