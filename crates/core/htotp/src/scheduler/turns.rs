//! Who is next: classes one before the other, but for a twentieth that those behind have while one before them never ends; users of a
//! class by deficit round robin with weights (Shreedhar, Varghese, 1995), streams of a user by render priority. Only what is
//! ready stands here.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use super::StreamId;
use crate::frame::Class;

/// What can be next: a stream, or a flow of datagrams by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Who {
    Flow(u64),
    Stream(StreamId),
}

/// The order within a user: urgency, asked for or not, turn.
pub(super) type Key = (u8, bool, u64, Who);

/// What a user has of a class, in hundredths of what others have: 100 unless said otherwise.
pub(super) const WEIGHT: u32 = 100;
/// Within these no turn is so short or so long that others notice.
const WEIGHTS: (u32, u32) = (1, 10_000);
/// After so many turns of a class those behind it have one: what nobody waits for is slow, and does not stand still until its
/// connections give up.
const PASSED_OVER: usize = 19;
/// Users with a weight of their own; the operator names them, and a peer might name more.
const MOST_WEIGHTS: usize = 65_536;

struct User {
    deficit: i64,
    ready: BTreeSet<Key>,
}

#[derive(Default)]
struct ClassQueue {
    users: HashMap<u64, User>,
    ring: VecDeque<u64>,
}

/// All that is ready, in its order.
#[derive(Default)]
pub(super) struct Turns {
    classes: BTreeMap<Class, ClassQueue>,
    weights: HashMap<u64, u32>,
    /// Bytes that the first class has had while others waited behind it, but for those that they have had their part of.
    passed_over: usize,
    /// Counts the turns of those behind, which they have in turn.
    behind: usize,
    /// What users have left of their turn whose only stream the carrier has yet to take a grant of: they come back to it.
    away: HashMap<(Class, u64), i64>,
}

impl Turns {
    /// What `user` has of each class from now on, in hundredths of what others have.
    pub(super) fn set_weight(&mut self, user: u64, hundredths: u32) {
        if hundredths == WEIGHT {
            self.weights.remove(&user);
        } else if self.weights.len() < MOST_WEIGHTS || self.weights.contains_key(&user) {
            self.weights.insert(user, hundredths.clamp(WEIGHTS.0, WEIGHTS.1));
        }
    }

    /// Bytes of a turn of `user`, where a turn of others is `piece`.
    fn quantum(weights: &HashMap<u64, u32>, user: u64, piece: usize) -> i64 {
        let weight = weights.get(&user).copied().unwrap_or(WEIGHT);
        (piece as i64 * i64::from(weight) / i64::from(WEIGHT)).max(1)
    }

    /// A stream has something to send.
    pub(super) fn insert(&mut self, class: Class, user: u64, key: Key, piece: usize) {
        let left = self.away.remove(&(class, user));
        let quantum = Self::quantum(&self.weights, user, piece);
        let deficit = match left {
            None => quantum,
            Some(left @ 1..) => left,
            // Its turn was over; it comes to the next one as those do who never left.
            Some(left) => left + quantum,
        };
        let queue = self.classes.entry(class).or_default();
        let its = queue.users.entry(user).or_insert_with(|| User { deficit, ready: BTreeSet::new() });
        if its.ready.is_empty() {
            match left {
                // Its turn goes on.
                Some(1..) => queue.ring.push_front(user),
                _ => queue.ring.push_back(user),
            }
        }
        its.ready.insert(key);
    }

    /// It has nothing more, or stands elsewhere. Gives what the user has left of the turn, where that was its only stream.
    pub(super) fn remove(&mut self, class: Class, user: u64, key: Key) -> Option<i64> {
        let queue = self.classes.get_mut(&class)?;
        let its = queue.users.get_mut(&user)?;
        if !its.ready.remove(&key) || !its.ready.is_empty() {
            return None;
        }
        let deficit = its.deficit;
        queue.users.remove(&user);
        queue.ring.retain(|other| *other != user);
        if queue.ring.is_empty() {
            self.classes.remove(&class);
        }
        Some(deficit)
    }

    /// The user will be back with this much of a turn, unless it [goes](Self::go).
    pub(super) fn keep(&mut self, class: Class, user: u64, deficit: i64) {
        self.away.insert((class, user), deficit);
    }

    /// A user who has nothing to send begins anew the next time.
    pub(super) fn go(&mut self, class: Class, user: u64) {
        self.away.remove(&(class, user));
    }

    /// Class, urgency and name of whoever is next; `strictly` of the first class.
    pub(super) fn next(&mut self, piece: usize, strictly: bool) -> Option<(Class, u8, Who)> {
        let first = self.first_class()?;
        let others = self.classes.len() - 1;
        let is_due = self.passed_over >= PASSED_OVER * piece && first != Class::Expedited && !strictly;
        let place = if is_due && others > 0 { 1 + self.behind % others } else { 0 };
        self.next_of(place, piece, |_, _| true)
    }

    /// As [`Turns::next`], of what is `admitted`: the first class that has something such, and its first user.
    pub(super) fn next_admitted(
        &mut self,
        piece: usize,
        admitted: impl Fn(Class, &Key) -> bool,
    ) -> Option<(Class, u8, Who)> {
        (0..self.classes.len()).find_map(|place| self.next_of(place, piece, &admitted))
    }

    /// Whether anything ready is `admitted`.
    pub(super) fn any(&self, admitted: impl Fn(Class, &Key) -> bool) -> bool {
        let of_user = |class, user: &User| user.ready.iter().any(|key| admitted(class, key));
        self.classes.iter().any(|(class, queue)| queue.users.values().any(|user| of_user(*class, user)))
    }

    fn next_of(
        &mut self,
        place: usize,
        piece: usize,
        admitted: impl Fn(Class, &Key) -> bool,
    ) -> Option<(Class, u8, Who)> {
        let (class, queue) = self.classes.iter_mut().nth(place)?;
        let mut passed_by = 0;
        // Each round gives every user a quantum; who overdrew sits rounds out, and who has nothing admitted loses nothing.
        while passed_by < queue.ring.len() {
            let front = *queue.ring.front()?;
            let user = queue.users.get_mut(&front)?;
            let Some((urgency, .., who)) = user.ready.iter().find(|key| admitted(*class, key)).copied()
            else {
                passed_by += 1;
                queue.ring.rotate_left(1);
                continue;
            };
            let quantum = Self::quantum(&self.weights, front, piece);
            // What a link that has become slow since gave a user is no more than a turn now.
            user.deficit = user.deficit.min(quantum);
            if user.deficit > 0 || queue.ring.len() == 1 {
                return Some((*class, urgency, who));
            }
            user.deficit += quantum;
            passed_by = 0;
            queue.ring.rotate_left(1);
        }
        None
    }

    /// The class that goes first now.
    pub(super) fn first_class(&self) -> Option<Class> {
        self.classes.keys().next().copied()
    }

    /// Class and urgency of whoever was next when it was asked last.
    pub(super) fn front(&self) -> Option<(Class, u8)> {
        let (class, queue) = self.classes.iter().next()?;
        let (urgency, ..) = queue.users.get(queue.ring.front()?)?.ready.first()?;
        Some((*class, *urgency))
    }

    /// Takes `size` off the user's share, if others of the class wait too, and off that of the class, if others do behind it.
    pub(super) fn charge(&mut self, class: Class, user: u64, size: usize) {
        if self.first_class() != Some(class) {
            // Of what the others have had.
            let paid = size.saturating_mul(PASSED_OVER);
            (self.passed_over, self.behind) =
                (self.passed_over.saturating_sub(paid), self.behind.wrapping_add(1));
        } else if self.classes.len() > 1 {
            self.passed_over = self.passed_over.saturating_add(size);
        } else {
            self.passed_over = 0;
        }
        let Some(queue) = self.classes.get_mut(&class).filter(|queue| queue.ring.len() > 1) else { return };
        if let Some(user) = queue.users.get_mut(&user) {
            user.deficit -= size as i64;
        }
    }

    #[cfg(test)]
    pub(super) fn remembers_nobody(&self) -> bool {
        self.away.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }
}
