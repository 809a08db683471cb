//! Which earlier sections both ends hold. The writer puts a section on its [`Shelf`] and refers to it only
//! once the reader has acknowledged it, so no section waits for another stream's loss; the reader keeps it
//! in its [`Archive`] until some time after the writer has retired it, since a section that refers to it
//! may still be on the way.
//!
//! Calling order: `Shelf::encode` → bytes → `Archive::decode` → (saved id) → `Shelf::acknowledge`.
//! Sections never serve another user, and across origins only their portable lines do.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::{Lines, SectionError, SectionLimit, codec};
use crate::varint;

/// Sections that a writer keeps per context; enough for document, style, script and image.
const PER_CONTEXT: usize = 8;
/// Sections that are live or were retired less than [`GRACE`] ago, per direction of a carrier.
const MOST: usize = 1024;
/// How long the reader keeps a retired section: longer than any section can be on its way.
const GRACE: Duration = Duration::from_secs(120);
/// A section that counts for more than this is not worth keeping twice, and the reader keeps none.
const LARGEST: usize = 8 * 1024;
/// A section that still costs this much against the best reference is worth keeping itself.
const WORTH_SAVING: usize = 10;

/// Whose sections may refer to each other.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Context {
    /// The user: compression state never crosses users.
    pub user: u64,
    /// Scheme and authority.
    pub origin: Bytes,
    /// Requests and responses look nothing alike.
    pub kind: Kind,
}

/// What a section is the head of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A request head.
    Request,
    /// A response head.
    Response,
}

struct Held {
    context: Context,
    lines: Arc<Lines>,
    acknowledged: bool,
    used: u64,
}

/// The writer's side.
#[derive(Default)]
pub struct Shelf {
    held: BTreeMap<u64, Held>,
    contexts: HashMap<Context, Vec<u64>>,
    /// Per user and kind, the acknowledged section used last: a reference for new origins.
    newest: HashMap<(u64, Kind), u64>,
    retired: VecDeque<(Duration, u64)>,
    unannounced: Vec<u64>,
    next: u64,
    clock: u64,
}

/// What a section may refer to besides the shelf.
#[derive(Clone, Copy)]
pub enum Base<'a> {
    /// Nothing.
    None,
    /// The section that came before on the same stream, or the request of the exchange.
    Stream(&'a Lines),
}

/// Reference codes: 0 nothing, 1 the stream's base, then two per saved section (whole, portable).
fn whole(id: u64) -> u64 {
    2 + 2 * id
}

fn portable(id: u64) -> u64 {
    3 + 2 * id
}

impl Shelf {
    /// Writes `lines`, choosing the reference that makes them smallest.
    pub fn encode(
        &mut self,
        now: Duration,
        context: &Context,
        lines: &Lines,
        base: Base<'_>,
        out: &mut Vec<u8>,
    ) {
        let (reference, body) = self.smallest(context, lines, base);
        let changed = body.len().saturating_sub(lines.value(":path").map_or(0, Bytes::len));
        let save = (changed > WORTH_SAVING || is_referer(lines))
            && matches!(base, Base::None)
            && self.may_save(now, context, lines);
        varint::put(out, reference << 1 | u64::from(save));
        if save {
            varint::put(out, self.save(context, lines));
        }
        out.extend_from_slice(&body);
    }

    fn smallest(&mut self, context: &Context, lines: &Lines, base: Base<'_>) -> (u64, Vec<u8>) {
        let write = |reference: &Lines| {
            let mut body = Vec::new();
            codec::encode(lines, reference, &mut body);
            body
        };
        if let Base::Stream(base) = base {
            return (1, write(base));
        }
        let acknowledged = |id: &&u64| self.held.get(id).is_some_and(|held| held.acknowledged);
        let ids = self.contexts.get(context).map(Vec::as_slice).unwrap_or_default();
        let best = ids
            .iter()
            .filter(acknowledged)
            .map(|id| (*id, write(&self.held[id].lines)))
            .min_by_key(|(id, body)| (body.len(), std::cmp::Reverse(*id)));
        if let Some((id, body)) = best {
            self.touch(id);
            return (whole(id), body);
        }
        if let Some(id) =
            self.newest.get(&(context.user, context.kind)).filter(|id| self.held.contains_key(id))
        {
            return (portable(*id), write(&self.held[id].lines.portable()));
        }
        (0, write(&Lines::default()))
    }

    fn touch(&mut self, id: u64) {
        self.clock += 1;
        if let Some(held) = self.held.get_mut(&id) {
            held.used = self.clock;
            self.newest.insert((held.context.user, held.context.kind), id);
        }
    }

    fn may_save(&mut self, now: Duration, context: &Context, lines: &Lines) -> bool {
        while self.retired.front().is_some_and(|(when, _)| *when + GRACE + GRACE < now) {
            self.retired.pop_front();
        }
        // Retiring makes no room before its time has passed: then there is no use in it.
        if lines.size() > LARGEST || self.held.len() + self.retired.len() >= MOST {
            return false;
        }
        let ids = self.contexts.get(context).map(Vec::as_slice).unwrap_or_default();
        if ids.iter().filter(|id| !self.held[id].acknowledged).count() >= PER_CONTEXT / 2 {
            return false;
        }
        if ids.len() >= PER_CONTEXT {
            let oldest =
                ids.iter().filter(|id| self.held[id].acknowledged).min_by_key(|id| self.held[id].used);
            match oldest.copied() {
                Some(id) => self.retire(now, id),
                None => return false,
            }
        }
        if self.held.len() >= MOST / 2 {
            let oldest = self
                .held
                .iter()
                .filter(|(_, h)| h.acknowledged)
                .min_by_key(|(_, h)| h.used)
                .map(|(id, _)| *id);
            if let Some(id) = oldest {
                self.retire(now, id);
            }
        }
        true
    }

    fn save(&mut self, context: &Context, lines: &Lines) -> u64 {
        let id = self.next;
        self.next += 1;
        self.clock += 1;
        let lines = Arc::new(lines.clone());
        self.held.insert(id, Held { context: context.clone(), lines, acknowledged: false, used: self.clock });
        self.contexts.entry(context.clone()).or_default().push(id);
        id
    }

    fn retire(&mut self, now: Duration, id: u64) {
        let Some(held) = self.held.remove(&id) else { return };
        if let Some(ids) = self.contexts.get_mut(&held.context) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.contexts.remove(&held.context);
            }
        }
        self.newest.retain(|_, newest| *newest != id);
        self.retired.push_back((now, id));
        self.unannounced.push(id);
    }

    /// The reader has `id`: sections may refer to it from now on.
    pub fn acknowledge(&mut self, id: u64) {
        if let Some(held) = self.held.get_mut(&id) {
            held.acknowledged = true;
            self.touch(id);
        }
    }

    /// The next retired section that the reader has to be told of.
    pub fn poll_retired(&mut self) -> Option<u64> {
        self.unannounced.pop()
    }
}

struct Kept {
    lines: Arc<Lines>,
    retired: bool,
}

/// The reader's side.
#[derive(Default)]
pub struct Archive {
    held: HashMap<u64, Kept>,
    retired: VecDeque<(Duration, u64)>,
}

impl Archive {
    /// Reads a section; also gives the id under which it was kept, to be acknowledged.
    ///
    /// # Errors
    /// Malformed bytes, a reference to a section that is not here, or more sections than agreed.
    pub fn decode(
        &mut self,
        now: Duration,
        mut input: Bytes,
        base: Base<'_>,
        limit: SectionLimit,
    ) -> Result<(Lines, Option<u64>), SectionError> {
        while self.retired.front().is_some_and(|(when, _)| *when + GRACE < now) {
            if let Some((_, id)) = self.retired.pop_front() {
                self.held.remove(&id);
            }
        }
        let header = varint::take(&mut input).ok_or(SectionError::Truncated)?;
        let saved = match header & 1 {
            1 => Some(varint::take(&mut input).ok_or(SectionError::Truncated)?),
            _ => None,
        };
        let held = |id: u64| {
            self.held.get(&id).map(|kept| Arc::clone(&kept.lines)).ok_or(SectionError::NoSuchSection)
        };
        let lines = match (header >> 1, base) {
            (0, _) => codec::decode(input, &Lines::default(), limit)?,
            (1, Base::Stream(base)) => codec::decode(input, base, limit)?,
            (1, Base::None) => return Err(SectionError::NoSuchSection),
            (code, _) if code % 2 == 0 => codec::decode(input, held((code - 2) / 2)?.as_ref(), limit)?,
            (code, _) => codec::decode(input, &held((code - 3) / 2)?.portable(), limit)?,
        };
        if let Some(id) = saved {
            // Whatever the peer does, this is all that is ever kept for it: MOST × LARGEST.
            if self.held.len() >= MOST || lines.size() > LARGEST || self.held.contains_key(&id) {
                return Err(SectionError::CannotKeep);
            }
            self.held.insert(id, Kept { lines: Arc::new(lines.clone()), retired: false });
        }
        Ok((lines, saved))
    }

    /// The writer will not refer to `id` any more.
    pub fn retire(&mut self, now: Duration, id: u64) {
        if let Some(kept) = self.held.get_mut(&id).filter(|kept| !kept.retired) {
            kept.retired = true;
            self.retired.push_back((now, id));
        }
    }
}

/// Documents and stylesheets name other resources, whose `Referer` is then their URL.
fn is_referer(lines: &Lines) -> bool {
    lines
        .value("accept")
        .is_some_and(|accept| accept.starts_with(b"text/html") || accept.starts_with(b"text/css"))
}

/// For fuzzing: any bytes decode or are refused, and what decodes is written and read again.
#[doc(hidden)]
pub fn fuzz(data: &[u8]) {
    let mut archive = Archive::default();
    let base = Lines(vec![super::Line::new(":path", "/a/b"), super::Line::new("accept", "*/*")]);
    let limit = SectionLimit { bytes: 64 * 1024, lines: 256 };
    for part in data.split(|b| *b == 0xff) {
        let read = archive.decode(Duration::ZERO, Bytes::copy_from_slice(part), Base::Stream(&base), limit);
        if let Ok((lines, _)) = read {
            assert!(limit.admits(&lines), "more than the limit");
            let mut again = Vec::new();
            codec::encode(&lines, &base, &mut again);
            assert_eq!(codec::decode(again.into(), &base, limit), Ok(lines));
        }
        archive.retire(Duration::ZERO, part.len() as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Line;
    use super::*;

    const NOW: Duration = Duration::from_secs(1);

    fn context(user: u64, origin: &str) -> Context {
        Context { user, origin: Bytes::copy_from_slice(origin.as_bytes()), kind: Kind::Request }
    }

    fn head(path: &str) -> Lines {
        Lines(vec![
            Line::new(":method", "GET"),
            Line::new(":scheme", "http"),
            Line::new(":authority", "www.site.test"),
            Line::new(":path", path),
            Line::new(
                "user-agent",
                "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/156.0.0.0 Safari/537.36",
            ),
            Line::new("cookie", "session=0123456789abcdef0123456789abcdef"),
        ])
    }

    fn cross(
        shelf: &mut Shelf,
        archive: &mut Archive,
        context: &Context,
        lines: &Lines,
    ) -> (usize, Option<u64>) {
        let mut out = Vec::new();
        shelf.encode(NOW, context, lines, Base::None, &mut out);
        let size = out.len();
        let (read, saved) = archive.decode(NOW, out.into(), Base::None, SectionLimit::default()).unwrap();
        assert_eq!(&read, lines);
        (size, saved)
    }

    #[test]
    fn only_an_acknowledged_section_is_referred_to() {
        let (mut shelf, mut archive) = (Shelf::default(), Archive::default());
        let user = context(1, "http://www.site.test");
        let (first, saved) = cross(&mut shelf, &mut archive, &user, &head("/"));
        let (second, _) = cross(&mut shelf, &mut archive, &user, &head("/a"));
        assert!(second > first / 2, "refers to a section that may be lost");
        shelf.acknowledge(saved.unwrap());
        let (third, _) = cross(&mut shelf, &mut archive, &user, &head("/b"));
        assert!(third < 10, "{third} bytes");
    }

    #[test]
    fn another_user_gains_nothing_from_this_ones_sections() {
        let (mut shelf, mut archive) = (Shelf::default(), Archive::default());
        let (first, saved) = cross(&mut shelf, &mut archive, &context(1, "http://www.site.test"), &head("/"));
        shelf.acknowledge(saved.unwrap());
        let (other, _) = cross(&mut shelf, &mut archive, &context(2, "http://www.site.test"), &head("/"));
        assert_eq!(first, other);
    }

    #[test]
    fn another_origin_never_refers_to_cookies() {
        let (mut shelf, mut archive) = (Shelf::default(), Archive::default());
        let (_, saved) = cross(&mut shelf, &mut archive, &context(1, "http://www.site.test"), &head("/"));
        shelf.acknowledge(saved.unwrap());
        let (size, _) = cross(&mut shelf, &mut archive, &context(1, "http://cdn.test"), &head("/"));
        assert!(size > 32, "the cookie must be spelled out: {size}");
    }

    #[test]
    fn a_retired_section_stays_readable_while_heads_are_on_their_way() {
        let (mut shelf, mut archive) = (Shelf::default(), Archive::default());
        let user = context(1, "http://www.site.test");
        let (_, saved) = cross(&mut shelf, &mut archive, &user, &head("/"));
        shelf.acknowledge(saved.unwrap());
        let mut late = Vec::new();
        shelf.encode(NOW, &user, &head("/late"), Base::None, &mut late);
        shelf.retire(NOW, saved.unwrap());
        archive.retire(NOW, shelf.poll_retired().unwrap());
        assert!(archive.decode(NOW, late.clone().into(), Base::None, SectionLimit::default()).is_ok());
        let much_later = NOW + GRACE * 2;
        assert!(archive.decode(much_later, late.into(), Base::None, SectionLimit::default()).is_err());
    }

    #[test]
    fn the_archive_stays_bounded_over_many_origins() {
        let (mut shelf, mut archive) = (Shelf::default(), Archive::default());
        for n in 0..5000u64 {
            let now = Duration::from_secs(n);
            let mut out = Vec::new();
            shelf.encode(
                now,
                &context(1, &format!("http://{n}.test")),
                &head(&"/x".repeat(20)),
                Base::None,
                &mut out,
            );
            let (_, saved) = archive.decode(now, out.into(), Base::None, SectionLimit::default()).unwrap();
            if let Some(id) = saved {
                shelf.acknowledge(id);
            }
            while let Some(id) = shelf.poll_retired() {
                archive.retire(now, id);
            }
        }
        assert!(archive.held.len() <= MOST, "{}", archive.held.len());
        assert!(shelf.held.len() <= MOST / 2);
    }

    #[test]
    fn a_shelf_that_may_keep_no_more_gives_up_none_of_what_it_has() {
        let mut shelf = Shelf::default();
        let mut first = Vec::new();
        for n in 0..3 * MOST {
            let mut out = Vec::new();
            shelf.encode(NOW, &context(1, &format!("http://{n}.test")), &head("/"), Base::None, &mut out);
            first.extend(shelf.held.keys().copied());
            first.iter().for_each(|id| shelf.acknowledge(*id));
            first.clear();
        }
        assert_eq!(shelf.held.len() + shelf.retired.len(), MOST);
        assert_eq!(shelf.held.len(), MOST / 2);
    }

    /// What a writer that keeps to no rule says.
    fn saved(id: u64, section: &Lines) -> Bytes {
        let mut out = Vec::new();
        varint::put(&mut out, 1);
        varint::put(&mut out, id);
        codec::encode(section, &Lines::default(), &mut out);
        out.into()
    }

    #[test]
    fn a_peer_cannot_make_the_archive_keep_more_than_agreed() {
        let mut archive = Archive::default();
        let mut keep = |id, lines: &Lines| {
            archive.decode(NOW, saved(id, lines), Base::None, SectionLimit::default()).map(|_| ())
        };
        let long = Lines(vec![Line::new("x-own", &"v".repeat(LARGEST))]);
        assert_eq!(keep(0, &long), Err(SectionError::CannotKeep));
        assert_eq!(keep(0, &head("/")), Ok(()));
        assert_eq!(keep(0, &head("/")), Err(SectionError::CannotKeep));
        for id in 1..MOST as u64 {
            assert_eq!(keep(id, &head("/")), Ok(()));
        }
        assert_eq!(keep(u64::MAX >> 2, &head("/")), Err(SectionError::CannotKeep));
        (0..10_000).for_each(|_| archive.retire(NOW, 7));
        assert_eq!(archive.retired.len(), 1);
    }
}
