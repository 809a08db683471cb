//! What anyone may have of what origins answered, in ground's own store on disk: it answers as a shared cache before origins
//! (docs/store.md). Everything behind it takes such an answer for the origin's. By which rules is for `farhop_freshness` to say.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use farhop_control::Chosen;
use farhop_events::{Bus, Event, ExchangeId};
use farhop_freshness::{
    Forward, Handling, Reply, Scope, Stored, Validated, Validation, Verdict, Why, invalidated, select,
    shareable,
};
use farhop_htotp::RequestHead;
use farhop_htotp::frame::Failure;
use farhop_origin::Upload;
use farhop_replacement::Link;
use farhop_settings::ground::GroundStoreSettings;
use farhop_squeeze::{LARGEST_BASE, is_text};
use farhop_store::{
    Budget, Disk, DiskError, DiskOptions, Held, Keeping, Key, Partition, Piece, Reader, Repository, Store,
};
use farhop_units::BitRate;
use http::header::{self, HeaderMap};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use url::Url;

use crate::error::GroundError;
use crate::failure;
use crate::origins::{Asked, OriginPart, Origins, Response};
use crate::owner::Owner;
use crate::treatment::{content_length, has_body, media_type};

/// What brings a response again, as ground is to the internet: of two that are used alike, large ones go first, hardly otherwise
/// than by their size.
const INTERNET: Link = Link { round_trip: Duration::from_millis(50), rate: BitRate::mbit(100) };
/// Bytes that are read, and found to be as they were written, before anyone is told that there is an answer.
const AHEAD: usize = 256 * 1024;
/// Its word in `Cache-Status`.
const CACHE: &str = "farhop-ground";

/// See the module.
pub(crate) struct Stock {
    store: Store,
    /// The longest body that is kept.
    longest: AtomicU64,
    bus: Bus,
}

/// What there is for a request.
enum Found {
    /// It answers.
    Fresh(Held),
    /// The origin is to say whether it still does.
    Stale(Held),
    Nothing,
}

impl Stock {
    /// The store that settings name, if they name one.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(crate) fn open(settings: &GroundStoreSettings, bus: Bus) -> Result<Option<Stock>, GroundError> {
        let Some(folder) = settings.directory.clone() else { return Ok(None) };
        let key = Key::load_or_make(&settings.key)?;
        let options = DiskOptions { folder: folder.clone(), size: settings.size.0, key, link: INTERNET };
        let store = Store::on(Disk::open(options)?, Budget::new(settings.memory.0))
            .map_err(|error| DiskError::Io { folder, error })?;
        Ok(Some(Stock { store, longest: AtomicU64::new(settings.entry.0), bus }))
    }

    /// Keeps bodies of this length from now on.
    pub(crate) fn set(&self, settings: &GroundStoreSettings) {
        self.longest.store(settings.entry.0, Relaxed);
    }

    /// For `status`.
    pub(crate) async fn status(&self) -> Value {
        let extent = self.store.on_disk().await;
        extent.map_or(
            Value::Null,
            |extent| json!({ "entries": extent.entries, "bytes": extent.bytes, "refused": extent.refused }),
        )
    }

    /// Forgets everything.
    pub(crate) async fn clear(&self) {
        self.store.clear().await;
    }

    /// Forgets what is meant by its URL; gives how many responses.
    pub(crate) async fn forget(&self, chosen: Chosen) -> u64 {
        let by_url = chosen.clone();
        let forgotten = self.store.forget(None, Arc::new(move |url| by_url.is_meant(url))).await;
        if let Chosen::Url(url) = chosen {
            // Also what is on its way.
            self.store.invalidate(url.as_str()).await;
        }
        forgotten
    }

    /// Writes down what is whole, and keeps nothing more.
    pub(crate) async fn close(&self) {
        self.store.close().await;
    }

    async fn find(&self, url: &Url, request: &HeaderMap) -> Found {
        let mut found = self.store.find(Partition::Shared, url.as_str(), request).await;
        found.retain(|held| held.head.is_for_origin_of(request));
        select(&mut found, |held| &held.head);
        let Some(held) = found.into_iter().next() else { return Found::Nothing };
        match held.head.verdict(&Method::GET, request, Scope::Shared, SystemTime::now()) {
            Verdict::Fresh => Found::Fresh(held),
            Verdict::Unsatisfiable | Verdict::Validate { why: Why::Method | Why::Authorization, .. } => {
                Found::Nothing
            }
            Verdict::Revalidate | Verdict::Validate { .. } => Found::Stale(held),
        }
    }

    /// What is held as the answer to this request; `None` where its conditions are the origin's to judge, or the body is damaged.
    async fn answer(&self, held: &Held, request: &HeaderMap, done: Done<'_>) -> Option<Response> {
        let (head, now) = (&held.head, SystemTime::now());
        let reply = head.reply(&Method::GET, request, Some(held.body.written()));
        let validation = if done.validated.is_some() { Validation::Done } else { Validation::None };
        let (status, mut fields) = head.reply_head(&reply, validation, now);
        let handling = match done.validated {
            None => Handling::hit(head, Scope::Shared, now),
            Some(renewed) => renewed.handling(Some(StatusCode::NOT_MODIFIED)),
        };
        handling.tell(CACHE, &mut fields);
        let body = match reply {
            Reply::Whole => StockBody::begin(held, WHOLE).await?,
            Reply::Part(range, _) => StockBody::begin(held, range).await?,
            Reply::NotModified | Reply::Unsatisfiable(_) => StockBody::default(),
            Reply::ForOrigin => return None,
        };
        let Done { exchange, url, validated } = done;
        let validated = validated.is_some();
        self.bus.emit(Event::FromStore { exchange, url: self.bus.url(url.as_str()), validated });
        Some(Response { status, fields, body: body.into(), former: None })
    }

    /// A 304 has come that speaks of what is held, which is this from now on (RFC 9111 §4.3.4); or was, if it may not stay.
    async fn renew(&self, held: &mut Held, url: &Url, request: &HeaderMap, fresh: Stored) -> Renewed {
        let may_stay = shareable(url.scheme() == "https", request, fresh.status, &fresh.fields);
        held.head = Arc::new(fresh.clone());
        match may_stay {
            true => self.store.freshen(held.id, fresh.kept_by(Scope::Shared)).await,
            false => self.store.evict(held.id).await,
        }
        Renewed { is_held: may_stay }
    }

    /// A 304 has come: all that is held, answers this request and has the strong validator that it names is renewed, whichever
    /// of it was asked about (RFC 9111 §4.3.4), but for `asked_about`, which who asked renews.
    async fn renew_named(&self, asked: &Heard<'_>, not_modified: &HeaderMap, asked_about: Option<u64>) {
        let Heard { url, request, requested_at, .. } = *asked;
        for mut held in self.store.find(Partition::Shared, url.as_str(), request).await {
            let is_named = held.head.is_named_by(not_modified) && held.head.is_for_origin_of(request);
            let now = SystemTime::now();
            // What was asked for later knows better, but for what a clock has dated that was wrong.
            let may_be_older = held.head.requested_at <= requested_at || held.head.requested_at > now;
            if is_named && may_be_older && asked_about != Some(held.id) {
                let mut fresh = (*held.head).clone();
                fresh.freshen(request, not_modified, requested_at, now);
                self.renew(&mut held, url, request, fresh).await;
            }
        }
    }

    /// The origin has answered a request that was sent at `requested_at`: what that makes wrong goes.
    async fn hear(&self, asked: &Heard<'_>, status: StatusCode, fields: &HeaderMap) {
        let Heard { method, url, is_resource, request, requested_at, .. } = *asked;
        for url in invalidated(method, url, status, fields) {
            self.store.invalidate(url.as_str()).await;
        }
        if !is_resource || method != Method::GET && method != Method::HEAD {
            return;
        }
        let now = SystemTime::now();
        for held in self.store.find(Partition::Shared, url.as_str(), request).await {
            let head = &held.head;
            let is_wrong = match *method {
                // RFC 9111 §4.3.5.
                Method::HEAD => {
                    status == StatusCode::OK && !head.is_described_by(fields, Some(held.body.written()))
                }
                // What was asked for later knows better, but for what a clock has dated that was wrong.
                _ => {
                    (head.requested_at <= requested_at || head.requested_at > now)
                        && head.is_contradicted_by(status, fields, now)
                }
            };
            if is_wrong && head.is_for_origin_of(request) {
                self.store.evict(held.id).await;
            }
        }
        if status == StatusCode::NOT_MODIFIED {
            self.renew_named(asked, fields, None).await;
        }
    }

    /// Keeps the response while it passes, if anyone may have it.
    fn keep(&self, asked: &Heard<'_>, response: &mut Response) {
        let Heard { method, url, asker, request, requested_at, .. } = *asked;
        let (status, fields) = (response.status, &response.fields);
        let longest = self.longest.load(Relaxed);
        let may_be_kept = shareable(url.scheme() == "https", request, status, fields)
            && has_body(method, status)
            && content_length(fields).is_none_or(|length| length <= longest)
            && media_type(fields) != "text/event-stream";
        if !may_be_kept {
            return;
        }
        let mut head = Stored::new(request, status, fields, requested_at, SystemTime::now());
        // `Vary` may name it, too.
        head.nominated.remove(header::ORIGIN);
        for origin in request.get_all(header::ORIGIN) {
            head.nominated.append(header::ORIGIN, origin.clone());
        }
        let head = head.kept_by(Scope::Shared);
        let keeping = self.store.keep_passing(Partition::Shared, url.as_str(), &head, asker);
        response.body.keep(keeping.map(|keeping| Kept {
            keeping,
            room: longest,
            length: 0,
            url: url.to_string(),
            bus: self.bus.clone(),
        }));
    }
}

/// A request that an origin has answered.
#[derive(Clone, Copy)]
struct Heard<'a> {
    method: &'a Method,
    url: &'a Url,
    /// It was sent in the words of its URL: its answer tells of what is held under that.
    is_resource: bool,
    /// Who has asked, by a number that is hardly another's.
    asker: u64,
    request: &'a HeaderMap,
    requested_at: SystemTime,
}

/// What is told of an answer from the store.
struct Done<'a> {
    exchange: ExchangeId,
    url: &'a Url,
    /// The origin has confirmed it.
    validated: Option<Renewed>,
}

/// What became of what is held when the origin confirmed it.
#[derive(Clone, Copy)]
struct Renewed {
    is_held: bool,
}

impl Renewed {
    /// What is told of it; `status` is that of the origin's answer, where that is not the answer's own.
    fn handling(self, status: Option<StatusCode>) -> Handling {
        let status = status.map(|status| status.as_u16());
        Handling::Forwarded { why: Forward::Stale, status, stored: self.is_held, collapsed: false }
    }
}

/// Answers from the store where that may be, and else asks the origin, which keeps what may be kept.
///
/// # Errors
/// There is no response.
pub(crate) async fn fetch(origins: &Origins, stock: &Stock, asked: Asked<'_>) -> Result<Response, Failure> {
    // What an unsafe request makes doubtful goes by the URL, however that was written; what is held and kept, by its own words.
    let Some(url) = asked.head.normalised() else { return origins.ask(asked).await };
    let is_resource = asked.head.is_for(&url);
    let (method, request) = (&asked.head.method, &asked.head.fields);
    let asker = number_of(asked.owner);
    let heard = || Heard { method, url: &url, is_resource, asker, request, requested_at: SystemTime::now() };
    if asked.head.is_of_its_connection() || asked.head.logs_in_connection() {
        return origins.ask(asked).await;
    }
    if !is_resource || !takes_part(&asked) || origins.refuses(&url) {
        let heard = heard();
        let response = origins.ask(asked).await?;
        stock.hear(&heard, response.status, &response.fields).await;
        return Ok(response);
    }
    let done = |validated| Done { exchange: asked.exchange, url: &url, validated };
    let mut stale = None;
    match stock.find(&url, request).await {
        Found::Fresh(held) => {
            if let Some(answer) = stock.answer(&held, request, done(None)).await {
                return Ok(answer);
            }
        }
        Found::Stale(mut held) => {
            let mut question = asked.head.clone();
            if held.head.make_conditional(&mut question.fields) {
                let heard = heard();
                let mut response = origins.ask(asked.with(&question)).await?;
                if response.status != StatusCode::NOT_MODIFIED {
                    response.former = Former::of(Some(&held), response.status).await;
                    stock.hear(&heard, response.status, &response.fields).await;
                    let is_part = response.status == StatusCode::PARTIAL_CONTENT;
                    if response.status.is_success() && !is_part {
                        // RFC 9111 §4.3.3: it is not suitable any more, even if nothing takes its place.
                        stock.store.evict(held.id).await;
                    }
                    stock.keep(&heard, &mut response);
                    return Ok(response);
                }
                stock.renew_named(&heard, &response.fields, Some(held.id)).await;
                let now = SystemTime::now();
                match held.head.validated_by(request, &response.fields, heard.requested_at, now) {
                    Validated::Stored(fresh) => {
                        let renewed = stock.renew(&mut held, &url, request, *fresh).await;
                        let length = Some(held.body.written());
                        if held.head.reply(method, request, length) == Reply::NotModified {
                            // In the origin's own words.
                            renewed.handling(None).tell(CACHE, &mut response.fields);
                            return Ok(response);
                        }
                        if let Some(answer) = stock.answer(&held, request, done(Some(renewed))).await {
                            return Ok(answer);
                        }
                    }
                    Validated::Client => return Ok(response),
                    Validated::Neither => {}
                }
            } else {
                stale = Some(held);
            }
        }
        Found::Nothing => {}
    }
    let heard = heard();
    let mut response = origins.ask(asked).await?;
    response.former = Former::of(stale.as_ref(), response.status).await;
    stock.hear(&heard, response.status, &response.fields).await;
    stock.keep(&heard, &mut response);
    Ok(response)
}

fn number_of(owner: &Owner) -> u64 {
    let mut hasher = DefaultHasher::new();
    owner.hash(&mut hasher);
    hasher.finish()
}

/// Whether what is held may answer it, and it may be kept what answers it: a GET with nothing in its body.
fn takes_part(asked: &Asked<'_>) -> bool {
    asked.head.method == Method::GET && !asked.head.upgrades() && asked.upload.is_empty()
}

impl<'a> Asked<'a> {
    /// The same, which has no body, with another head.
    pub(crate) fn with<'b>(&self, head: &'b RequestHead) -> Asked<'b>
    where
        'a: 'b,
    {
        let informed = self.informed.clone();
        let (owner, exchange, version) = (self.owner, self.exchange, self.version);
        Asked { owner, exchange, head, version, upload: Upload::empty(), informed }
    }
}

/// All bytes of a body.
const WHOLE: Range<u64> = 0..u64::MAX;

/// A text that was held and is not right any more: what has come in its place may be sent against it (`kin`). It is being read
/// already, so that all of it comes although it is gone from the store.
pub(crate) struct Former {
    pub(crate) fields: HeaderMap,
    pub(crate) body: StockBody,
}

impl Former {
    /// What was held, where an answer of this status is another version of it and it can be what that is sent against.
    async fn of(held: Option<&Held>, status: StatusCode) -> Option<Former> {
        let Held { head, body, .. } = held?;
        let is_version = status == StatusCode::OK && head.status == StatusCode::OK;
        if !is_version || body.written() > LARGEST_BASE as u64 || !is_text(&media_type(&head.fields)) {
            return None;
        }
        Some(Former { fields: head.fields.clone(), body: StockBody::begin(held?, WHOLE).await? })
    }
}

/// A body from the store, or the bytes of one range of it.
#[derive(Default)]
pub(crate) struct StockBody {
    ahead: VecDeque<Bytes>,
    rest: Option<Reader>,
    /// Bytes before the first that is given, and from there to the last.
    skip: u64,
    left: u64,
    trailers: Option<HeaderMap>,
}

impl StockBody {
    /// Begins to read these bytes of it, or those up to its end; `None` if it is damaged, as far as is read by now.
    async fn begin(held: &Held, range: Range<u64>) -> Option<StockBody> {
        let (skip, left) = (range.start, range.end - range.start);
        let mut body = StockBody { rest: Some(held.body.reader()?), skip, left, ..StockBody::default() };
        let mut length = 0;
        while length < AHEAD {
            match body.read().await.ok()? {
                OriginPart::Bytes(bytes) => {
                    length += bytes.len();
                    body.ahead.push_back(bytes);
                }
                OriginPart::End(trailers) => {
                    body.trailers = trailers;
                    break;
                }
            }
        }
        Some(body)
    }

    /// The next part. Cancel-safe.
    ///
    /// # Errors
    /// It turns out to be damaged.
    pub(crate) async fn next(&mut self) -> Result<OriginPart, Failure> {
        match self.ahead.pop_front() {
            Some(bytes) => Ok(OriginPart::Bytes(bytes)),
            None => self.read().await,
        }
    }

    async fn read(&mut self) -> Result<OriginPart, Failure> {
        let damaged = || failure::internal(&"what is held of it is damaged and will be fetched anew");
        while let Some(rest) = self.rest.as_mut().filter(|_| self.left > 0) {
            let mut bytes = match rest.next().await {
                Ok(Piece::Data(bytes)) => bytes,
                Ok(Piece::End(trailers)) => {
                    (self.rest, self.trailers) = (None, trailers);
                    break;
                }
                Err(_) => return Err(damaged()),
            };
            let skipped = self.skip.min(bytes.len() as u64);
            self.skip -= skipped;
            drop(bytes.split_to(skipped as usize));
            bytes.truncate(self.left.min(bytes.len() as u64) as usize);
            self.left -= bytes.len() as u64;
            if !bytes.is_empty() {
                return Ok(OriginPart::Bytes(bytes));
            }
        }
        Ok(OriginPart::End(self.trailers.clone()))
    }
}

/// A response that is kept while it passes. Dropped before its end, nothing of it is.
pub(crate) struct Kept {
    keeping: Keeping,
    room: u64,
    length: u64,
    url: String,
    bus: Bus,
}

impl Kept {
    /// The next bytes of it; `false` where it is too long.
    pub(crate) fn take(&mut self, bytes: &Bytes) -> bool {
        self.length += bytes.len() as u64;
        let has_room = self.length <= self.room;
        if has_room {
            self.keeping.write(bytes);
        }
        has_room
    }

    /// That was all of it, of which so many bytes came from the origin.
    pub(crate) fn whole(mut self, trailers: Option<HeaderMap>, received: u64) {
        tokio::spawn(async move {
            self.keeping.ended(trailers, received);
            if self.keeping.finish().await.is_some() {
                self.bus.emit(Event::Stored { url: self.bus.url(&self.url), bytes: self.length });
            }
        });
    }
}
