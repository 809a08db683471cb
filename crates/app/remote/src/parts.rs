//! Parts of responses, as they came for requests with `Range`, or of what broke off: put together where they touch, they answer what
//! lies within one of them (RFC 9111 §3.3, §3.4), and go to the repository once all is here. In memory, bounded.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use bytes::BytesMut;
use farhop_events::Event;
use farhop_freshness::{Part, Stored};
use farhop_store::{Body, Budget, Partition, Piece};
use http::HeaderMap;

use crate::Remote;

/// Responses of which parts are kept.
const MOST: usize = 256;
/// The share of the memory for responses that parts may take.
const SHARE: u64 = 8;

/// A part as it is kept.
#[derive(Clone)]
struct Kept {
    range: Range<u64>,
    body: Body,
}

/// What is kept of one response.
struct Response {
    partition: Partition,
    url: Arc<str>,
    /// As of the whole.
    head: Arc<Stored>,
    complete: u64,
    /// In order, none touching another.
    parts: Vec<Kept>,
}

/// A part that answers a request if what it is of does.
pub(crate) struct Found {
    pub(crate) partition: Partition,
    pub(crate) head: Arc<Stored>,
    /// The part's bytes, and where in the whole they begin.
    pub(crate) body: Body,
    pub(crate) range: Range<u64>,
    pub(crate) complete: u64,
}

/// What is coming, and may be kept as a part: what is one, and what is the whole, should it break off.
pub(crate) struct Coming {
    partition: Partition,
    url: String,
    head: Stored,
    part: Part,
}

/// What becomes of the head of parts.
pub(crate) enum Renewal {
    /// It stays as it is.
    None,
    /// This takes its place.
    By(Arc<Stored>),
    /// The parts go.
    Forbidden,
}

impl Coming {
    /// `head` is that of the whole. `None` where parts of it cannot be put together with others.
    pub(crate) fn new(partition: Partition, url: &str, head: &Stored, part: Part) -> Option<Coming> {
        let may_be_kept = head.has_strong_validator();
        may_be_kept.then(|| Coming { partition, url: url.to_owned(), head: head.clone(), part })
    }

    /// Keeps it, as far as it is in `body`, which is ended; and all that it is of, if that is here now.
    pub(crate) async fn keep(mut self, remote: &Remote, body: Body) {
        let body = if body.is_whole() { Some(body) } else { begun(&body, remote.parts().budget()) };
        let Some(body) = body.filter(|body| (1..=self.part.length()).contains(&body.written())) else {
            return;
        };
        self.part.range.end = self.part.range.start + body.written();
        let Coming { partition, url, head, part } = self;
        let bytes = part.length();
        if let Some((whole, body)) = remote.parts().add(partition, &url, head, &part, body) {
            remote.repository().store(partition, &url, whole, body).await;
        }
        remote.bus().emit(Event::Stored { url: remote.bus().url(&url), bytes });
    }
}

/// See the module.
pub(crate) struct Parts {
    state: Mutex<State>,
    budget: Arc<Budget>,
}

#[derive(Default)]
struct State {
    /// What has had a part added last comes last.
    responses: Vec<Response>,
    /// When anything was last made doubtful: what was asked for before may be, too.
    invalidated: Option<SystemTime>,
}

impl Parts {
    /// None yet; their bytes count in `budget`.
    pub(crate) fn new(budget: Arc<Budget>) -> Parts {
        Parts { state: Mutex::default(), budget }
    }

    /// In which their bytes count.
    fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The parts of what is kept in `partition` for `url` and answers this request.
    pub(crate) fn find(&self, partition: Partition, url: &str, request: &HeaderMap) -> Vec<Found> {
        let state = self.lock();
        let fit = state.responses.iter().filter(|response| {
            response.partition == partition && *response.url == *url && response.head.answers(request)
        });
        let found = |response: &Response, kept: &Kept| Found {
            partition,
            head: Arc::clone(&response.head),
            body: kept.body.clone(),
            range: kept.range.clone(),
            complete: response.complete,
        };
        fit.flat_map(|response| response.parts.iter().map(|kept| found(response, kept)).collect::<Vec<_>>())
            .collect()
    }

    /// Keeps `part`, whose bytes are `body`, of what `head` is the head of. Gives the whole once it is there, which is then
    /// kept here no longer. What is of another representation goes.
    pub(crate) fn add(
        &self,
        partition: Partition,
        url: &str,
        head: Stored,
        part: &Part,
        body: Body,
    ) -> Option<(Stored, Body)> {
        if !body.is_whole() || body.written() != part.length() {
            return None;
        }
        let mut state = self.lock();
        // RFC 9111 §4.4: what was asked for before an unsafe request is not to be used after it.
        // Where the clock has gone back since, nobody knows which was first.
        let now = SystemTime::now();
        if state.invalidated.is_some_and(|at| head.requested_at <= at || head.requested_at > now) {
            return None;
        }
        let responses = &mut state.responses;
        let before = responses.iter().position(|response| {
            response.partition == partition
                && *response.url == *url
                && response.head.nominated == head.nominated
        });
        let before = before.map(|at| responses.remove(at));
        let goes_on = |before: &Response| before.complete == part.complete && before.head.goes_with(&head);
        let (head, mut parts) = match before.filter(goes_on) {
            // RFC 9111 §3.4: the stored fields MUST be updated by those of the new part.
            Some(before) => (head.joined_to(&before.head), before.parts),
            None => (head, Vec::new()),
        };
        self.join(&mut parts, Kept { range: part.range.clone(), body });
        if let [Kept { range, body }] = &*parts
            && *range == (0..part.complete)
        {
            return Some((head, body.clone()));
        }
        let head = Arc::new(head);
        responses.push(Response { partition, url: url.into(), head, complete: part.complete, parts });
        self.make_room(responses);
        None
    }

    /// Puts a part to those that it touches. The bytes of both are the same where they overlap.
    fn join(&self, parts: &mut Vec<Kept>, mut new: Kept) {
        let touches =
            |kept: &mut Kept| kept.range.start <= new.range.end && new.range.start <= kept.range.end;
        let touching: Vec<Kept> = parts.extract_if(.., touches).collect();
        for kept in touching {
            let (first, second) = if kept.range.start <= new.range.start { (kept, new) } else { (new, kept) };
            if second.range.end <= first.range.end {
                new = first;
                continue;
            }
            let joint = first.range.start..second.range.end;
            let overlap = (first.range.end - second.range.start) as usize;
            let bytes = match (read(&first.body), read(&second.body)) {
                (Some(mut all), Some(rest)) => {
                    all.extend_from_slice(&rest[overlap..]);
                    all.freeze()
                }
                // One of them can be read no more: the other stands for itself.
                (None, _) => {
                    new = second;
                    continue;
                }
                (_, None) => {
                    new = first;
                    continue;
                }
            };
            new = Kept { range: joint, body: Body::whole(&self.budget, bytes, None) };
        }
        let at = parts.partition_point(|kept| kept.range.start < new.range.start);
        parts.insert(at, new);
    }

    /// Drops what had a part added longest ago, until the rest is within its bounds.
    fn make_room(&self, responses: &mut Vec<Response>) {
        let bytes = |response: &Response| response.parts.iter().map(|kept| kept.body.written()).sum::<u64>();
        let mut total: u64 = responses.iter().map(bytes).sum();
        let most = self.budget.most() / SHARE;
        let mut gone = 0;
        while responses.len() - gone > MOST || (total > most && gone < responses.len()) {
            total -= bytes(&responses[gone]);
            gone += 1;
        }
        responses.drain(..gone);
    }

    /// The origin has spoken of what is kept in `partition` for `url`: what follows for each head.
    pub(crate) fn renew(&self, partition: Partition, url: &str, renewal: impl Fn(&Stored) -> Renewal) {
        self.lock().responses.retain_mut(|response| {
            if response.partition != partition || *response.url != *url {
                return true;
            }
            match renewal(&response.head) {
                Renewal::None => true,
                Renewal::Forbidden => false,
                Renewal::By(head) => {
                    response.head = head;
                    true
                }
            }
        });
    }

    /// Drops all parts of `url`, whosever they are: something newer is known of it.
    pub(crate) fn forget(&self, url: &str) {
        self.lock().responses.retain(|response| *response.url != *url);
    }

    /// Drops the parts of `url` in `partition` of whose response `is_wrong` is true.
    pub(crate) fn forget_where(&self, partition: Partition, url: &str, is_wrong: impl Fn(&Stored) -> bool) {
        self.lock().responses.retain(|response| {
            response.partition != partition || *response.url != *url || !is_wrong(&response.head)
        });
    }

    /// Drops all parts of the URLs that are meant, whosever they are or of this partition alone.
    pub(crate) fn forget_chosen(&self, partition: Option<Partition>, is_meant: impl Fn(&str) -> bool) {
        let is_of_it = |response: &Response| partition.is_none_or(|only| response.partition == only);
        self.lock().responses.retain(|response| !is_of_it(response) || !is_meant(&response.url));
    }

    /// Drops all parts of `url`, and for what was asked for before `now` and is still to come.
    pub(crate) fn invalidate(&self, url: &str, now: SystemTime) {
        self.forget(url);
        self.lock().invalidated = Some(now);
    }

    /// Drops everything.
    pub(crate) fn clear(&self) {
        self.lock().responses.clear();
    }
}

/// What has come of a body that broke off, as one that is whole; `None` where its beginning is gone.
fn begun(body: &Body, budget: &Arc<Budget>) -> Option<Body> {
    let reader = body.reader()?;
    let mut bytes = BytesMut::new();
    while let Some(Ok(Piece::Data(piece))) = reader.take() {
        bytes.extend_from_slice(&piece);
    }
    Some(Body::whole(budget, bytes.freeze(), None))
}

/// All bytes of a body that is whole.
fn read(body: &Body) -> Option<BytesMut> {
    let reader = body.reader()?;
    let mut bytes = BytesMut::new();
    loop {
        match reader.take()? {
            Ok(Piece::Data(piece)) => bytes.extend_from_slice(&piece),
            Ok(Piece::End(_)) => return Some(bytes),
            Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use http::{HeaderValue, StatusCode, header};

    const WHOLE: &[u8] = b"0123456789";
    const URL: &str = "http://a.test/";

    fn head(tag: &'static str) -> Stored {
        let fields = HeaderMap::from_iter([(header::ETAG, HeaderValue::from_static(tag))]);
        Stored::new(
            &HeaderMap::new(),
            StatusCode::OK,
            &fields,
            SystemTime::UNIX_EPOCH,
            SystemTime::UNIX_EPOCH,
        )
    }

    fn parts(budget: u64) -> Parts {
        Parts::new(Budget::new(budget))
    }

    fn add(parts: &Parts, tag: &'static str, range: Range<usize>) -> Option<Bytes> {
        let body = Body::whole(&parts.budget, Bytes::from_static(&WHOLE[range.clone()]), None);
        let part = Part { range: range.start as u64..range.end as u64, complete: 10 };
        let (_, body) = parts.add(Partition::Shared, URL, head(tag), &part, body)?;
        read(&body).map(BytesMut::freeze)
    }

    fn kept(parts: &Parts) -> Vec<(Range<u64>, Bytes)> {
        let found = parts.find(Partition::Shared, URL, &HeaderMap::new());
        found.into_iter().map(|found| (found.range, read(&found.body).unwrap().freeze())).collect()
    }

    #[test]
    fn parts_are_joined_where_they_touch_until_they_are_the_whole() {
        let parts = parts(1 << 20);
        for (range, expected) in [
            (2..4, vec![(2, 4)]),
            (6..8, vec![(2, 4), (6, 8)]),
            (4..5, vec![(2, 5), (6, 8)]),
            (3..4, vec![(2, 5), (6, 8)]),
            (4..7, vec![(2, 8)]),
            (0..3, vec![(0, 8)]),
        ] {
            assert_eq!(add(&parts, "\"1\"", range.clone()), None);
            let kept = kept(&parts);
            let ranges: Vec<_> = kept.iter().map(|(range, _)| (range.start, range.end)).collect();
            assert_eq!(ranges, expected, "after {range:?}");
            for (range, bytes) in kept {
                assert_eq!(bytes, WHOLE[range.start as usize..range.end as usize]);
            }
        }
        assert_eq!(add(&parts, "\"1\"", 8..10).as_deref(), Some(WHOLE));
        assert!(kept(&parts).is_empty(), "the whole is kept elsewhere");
    }

    #[test]
    fn every_order_of_parts_gives_the_same_bytes() {
        for seed in 0..500_usize {
            let parts = parts(1 << 20);
            let mut state = seed * 2_654_435_761 + 1;
            let mut next = |below: usize| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % below
            };
            for _ in 0..8 {
                let start = next(10);
                let range = start..start + 1 + next(10 - start);
                if let Some(whole) = add(&parts, "\"1\"", range) {
                    assert_eq!(&whole[..], WHOLE, "seed {seed}");
                }
                for (range, bytes) in kept(&parts) {
                    assert_eq!(&bytes[..], &WHOLE[range.start as usize..range.end as usize], "seed {seed}");
                }
            }
        }
    }

    #[test]
    fn what_is_of_another_representation_is_not_mixed_in() {
        let parts = parts(1 << 20);
        assert_eq!((add(&parts, "\"1\"", 0..5), add(&parts, "\"2\"", 5..10)), (None, None));
        assert_eq!(kept(&parts), [(5..10, Bytes::from_static(b"56789"))]);
    }

    #[test]
    fn what_came_of_a_body_that_broke_off_is_there_as_long_as_its_beginning_is() {
        let budget = Budget::new(1 << 20);
        let (mut intake, body) = Body::new(&budget, 1 << 20);
        for piece in [&WHOLE[..3], &WHOLE[3..7]] {
            intake.push(Bytes::from_static(piece));
        }
        intake.fail(farhop_store::Broken::Lost);
        let kept = begun(&body, &budget).unwrap();
        assert_eq!((kept.is_whole(), read(&kept).unwrap()), (true, BytesMut::from(&WHOLE[..7])));
        let (intake, given_up) = Body::new(&budget, 1 << 20);
        drop(intake);
        assert!(begun(&given_up, &budget).is_none());
    }

    #[test]
    fn a_renewed_head_takes_the_place_of_the_old_one_or_the_parts_go() {
        let parts = parts(1 << 20);
        add(&parts, "\"1\"", 2..4);
        parts.renew(Partition::User(1), URL, |_| Renewal::Forbidden);
        parts.renew(Partition::Shared, "http://b.test/", |_| Renewal::Forbidden);
        parts.renew(Partition::Shared, URL, |_| Renewal::None);
        assert_eq!(kept(&parts).len(), 1);
        parts.renew(Partition::Shared, URL, |_| Renewal::By(head("\"2\"").into()));
        let found = parts.find(Partition::Shared, URL, &HeaderMap::new());
        assert_eq!(found[0].head.fields[header::ETAG], "\"2\"");
        parts.renew(Partition::Shared, URL, |_| Renewal::Forbidden);
        assert!(kept(&parts).is_empty());
    }

    #[test]
    fn parts_are_bounded_in_number_and_bytes_and_go_when_they_are_doubtful() {
        let parts = parts(8 * 12);
        add(&parts, "\"1\"", 0..6);
        assert_eq!(kept(&parts).len(), 1);
        let body = Body::whole(&parts.budget, Bytes::from_static(b"01234567"), None);
        let part = Part { range: 0..8, complete: 10 };
        assert!(parts.add(Partition::Shared, "http://b.test/", head("\"1\""), &part, body).is_none());
        assert!(kept(&parts).is_empty(), "room was made");
        parts.forget("http://b.test/");
        assert!(parts.lock().responses.is_empty());
        let body = Body::whole(&parts.budget, Bytes::from_static(b"0"), None);
        let part = Part { range: 0..8, complete: 10 };
        assert!(parts.add(Partition::Shared, URL, head("\"1\""), &part, body).is_none());
        assert!(parts.lock().responses.is_empty(), "fewer bytes than said");
        parts.invalidate("http://b.test/", SystemTime::UNIX_EPOCH);
        add(&parts, "\"1\"", 0..6);
        assert!(kept(&parts).is_empty(), "it was asked for before");
    }
}
