//! What of a page's hints is fetched unasked: in order, within a budget, and never against the rules.

use crate::cookies::Cookies;
use crate::family::Family;
use crate::matching::{compare, compare_always, is_unforeseen};
use crate::site::is_same_site;
use crate::unasked::{Load, Unasked, unasked_after};
use crate::urgency::{Urgency, urgency};
use crate::way::Way;
use crate::workers::Asker;
use farhop_freshness::{ResponseDirectives, Scope, Stored, storable};
use farhop_page::{Confidence, Destination, Hint, Mode, Source, Timing};
use http::header::{self, HeaderMap};
use http::{Method, StatusCode};
use std::collections::{HashMap, VecDeque};
use std::time::SystemTime;
use url::{Origin, Url};

/// How much one page may cause, its frames included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    /// Unasked requests for one page.
    pub max_requests: usize,
    /// Of these, to one origin of another site than the page's.
    pub max_per_foreign_origin: usize,
    /// Of these, for what may well not be used ([`Confidence::Guess`]).
    pub max_guesses: usize,
    /// Bytes of responses to these.
    pub max_guess_bytes: u64,
    /// Of these, for one response; so many are set aside for it while it is under way.
    pub max_bytes_per_guess: u64,
    /// Unasked requests for names in scripts ([`Source::Mention`]), which are found to be there one by one.
    pub max_mentions: usize,
    /// Bytes of responses to these; one may take no more than any guess.
    pub max_mention_bytes: u64,
}

impl Default for Budget {
    /// The median page has 80 requests, one in ten has more than 185 (FINDINGS.md); galleries have several hundred.
    fn default() -> Self {
        Budget {
            max_requests: 600,
            max_per_foreign_origin: 600,
            max_guesses: 20,
            max_guess_bytes: 256 * 1024,
            max_bytes_per_guess: 32 * 1024,
            max_mentions: 200,
            max_mention_bytes: 512 * 1024,
        }
    }
}

/// What happens with one hint.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::large_enum_variant)] // the large variant is the usual one
pub enum Decision {
    /// Promise and fetch it, at this priority.
    Fetch(Unasked, Urgency),
    /// Leave it to the browser.
    Skip(Skip),
}

/// Why a hint is left to the browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Skip {
    /// The browser will use what was decided on before; if that was a guess, and this is none, it is a guess no more.
    Duplicate,
    /// Fetched before for this page, and what came, or will come, may not be reused for this.
    UncacheableTwice,
    /// The page's budget is used up.
    OverBudget,
    /// The page's budget for guesses is used up, or that for names in scripts.
    OverGuesses,
    /// The document was fetched with credentials in `Authorization`; how far they reach is the browser's knowledge.
    Credentials,
    /// The browser holds cookies of which it is not known whether it sends them here.
    UnsureOfCookies,
    /// An unasked fetch of this URL has set a cookie before.
    SetsCookie,
    /// The site has no icon, which its browser was told: it does not ask for every page.
    NoIcon,
    /// The document's content security policy forbids it.
    ContentPolicy,
    /// A secure page may not load it over plain HTTP.
    MixedContent,
    /// This browser does not fetch such a hint.
    NotThisBrowser,
    /// The page has just asked for client hints, and what the browser says in them was not seen.
    UnknownHints,
    /// Of its kind some are asked for by the page and some by its service worker, in other words.
    UnknownAsker,
    /// The browser has asked for it in other words than were foreseen.
    AskedOtherwise,
    /// A guess at what might do something, or with cookies: only plain files are guessed.
    RiskyGuess,
}

/// Whether a guess may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// It may, and what it may take is set aside.
    Left,
    /// Not before one that is under way is over: it may take less than is set aside for it.
    SetAside,
    /// Never: the budget is spent.
    UsedUp,
}

/// Decisions for one load of one page.
#[derive(Debug)]
pub struct Plan {
    load: Load,
    budget: Budget,
    asked: HashMap<Url, Vec<Asked>>,
    requests: usize,
    foreign: HashMap<Origin, usize>,
    guesses: usize,
    guess_bytes: u64,
    /// For each of which the most that it may take is set aside.
    guesses_under_way: u64,
    mentions: usize,
    mention_bytes: u64,
}

/// One request that was decided on.
#[derive(Debug)]
struct Asked {
    mode: Mode,
    destination: Destination,
    fields: HeaderMap,
    /// It is only guessed so far, from this.
    guess: Option<Source>,
    /// Set once its response is known to be one that a browser may reuse.
    reusable: Option<Stored>,
}

impl Plan {
    /// A plan for what `load` will need.
    pub fn new(load: Load, budget: Budget) -> Self {
        Plan {
            load,
            budget,
            asked: HashMap::new(),
            requests: 0,
            foreign: HashMap::new(),
            guesses: 0,
            guess_bytes: 0,
            guesses_under_way: 0,
            mentions: 0,
            mention_bytes: 0,
        }
    }

    /// Nothing is fetched from now on that may well not be used.
    pub fn leave_guesses(&mut self) {
        self.budget.max_guesses = 0;
        self.budget.max_mentions = 0;
    }

    /// The load that is planned for.
    pub fn load(&self) -> &Load {
        &self.load
    }

    /// The same, for what the document's mark-up adds to it.
    pub fn load_mut(&mut self) -> &mut Load {
        &mut self.load
    }

    /// Decides at `now` about the next hint of the document, in the order they are found.
    pub fn decide(
        &mut self,
        hint: &Hint,
        never: &NeverUnasked,
        cookies: &Cookies,
        now: SystemTime,
    ) -> Decision {
        self.decide_after(None, hint, &hint.url, &Way::default(), never, cookies, now)
    }

    /// Decides about `target`, to which redirects led on this way from what `hint` names, be it in the document in `frame`
    /// or in the page's own: the page's budget is the same.
    #[allow(clippy::too_many_arguments)] // what the hint is, where it led, what is known
    pub fn decide_after(
        &mut self,
        frame: Option<&Load>,
        hint: &Hint,
        target: &Url,
        way: &Way,
        never: &NeverUnasked,
        cookies: &Cookies,
        now: SystemTime,
    ) -> Decision {
        let request = self.room_for(target).and_then(|()| {
            let load = frame.unwrap_or(&self.load);
            unasked_if(load, hint, || unasked_after(load, hint, target, way, cookies, now), never)
        });
        decision(request.and_then(|request| self.admit(hint, request)), hint)
    }

    /// The response to what was decided on has arrived: says whether the browser can use it for other hints too.
    pub fn answered(&mut self, request: &Unasked, status: StatusCode, response: &HeaderMap, now: SystemTime) {
        let Some(asked) = self
            .asked
            .get_mut(&request.url)
            .and_then(|all| all.iter_mut().find(|asked| asked.fields == request.fields))
        else {
            return;
        };
        let may_be_kept = storable(&Method::GET, &request.fields, status, response, Scope::Private).is_ok();
        let stored = Stored::new(&request.fields, status, response, now, now);
        if may_be_kept
            && stored.is_fresh(Scope::Private, now)
            && !ResponseDirectives::of(response).wants_validation()
        {
            asked.reusable = Some(stored);
        }
    }

    /// The browser asked for `url` with these fields at `now`, whatever was promised: notes whether a service worker asks where
    /// the page was expected to, or the other way round, and whether its words were foreseen.
    pub fn asked(
        &self,
        url: &Url,
        fields: &HeaderMap,
        never: &mut NeverUnasked,
        cookies: &mut Cookies,
        now: SystemTime,
    ) {
        let decided = self.asked.get(url).map_or(&[][..], Vec::as_slice);
        let is_unforeseen = |asked: &Asked| is_unforeseen(&asked.fields, fields);
        match decided.iter().any(is_unforeseen)
            && decided.iter().all(|asked| compare(&asked.fields, fields).is_err())
        {
            true => never.mistaken(url),
            false => never.asked(url),
        }
        let by_worker = |fields: &HeaderMap| fields.get("sec-fetch-dest").is_some_and(|dest| dest == "empty");
        let others = |fields: &HeaderMap| {
            let mut others = fields.clone();
            others.remove("sec-fetch-dest");
            others
        };
        let (is_by_worker, own) = (by_worker(fields), others(fields));
        let is_otherwise = |asked: &&Asked| {
            asked.destination != Destination::Fetch
                && by_worker(&asked.fields) != is_by_worker
                && compare(&others(&asked.fields), &own).is_ok()
        };
        if let Some(asked) = decided.iter().find(is_otherwise) {
            let asker = if is_by_worker { Asker::Worker } else { Asker::Page };
            let (load, page) = (&self.load, &self.load.url);
            cookies.note_asker(load.jar, (page, url), asked.destination, asker, now);
        }
    }

    /// The most bytes that the response to a [`Confidence::Guess`] may take: what is longer is to be withdrawn.
    pub fn guess_allowance(&self) -> u64 {
        self.budget.max_bytes_per_guess
    }

    /// The fetch of what `hint` guesses is about to begin: sets aside what it may take, where that is left. What begins is to be
    /// told of to [`Plan::spent_on_guess`] once it is over.
    pub fn begin_guess(&mut self, hint: &Hint) -> Room {
        if hint.source == Source::Mention {
            return Room::Left;
        }
        let room = self.room_for_guess();
        self.guesses_under_way += u64::from(room == Room::Left);
        room
    }

    fn room_for_guess(&self) -> Room {
        let most = self.guess_allowance();
        let taken = |under_way: u64| self.guess_bytes.saturating_add(most.saturating_mul(under_way + 1));
        match self.budget.max_guess_bytes {
            max if taken(self.guesses_under_way) <= max => Room::Left,
            max if taken(0) <= max => Room::SetAside,
            _ => Room::UsedUp,
        }
    }

    /// The response to `hint`, which [began](Plan::begin_guess), took this many bytes in all, no more than
    /// [`Plan::guess_allowance`], and is over.
    pub fn spent_on_guess(&mut self, hint: &Hint, bytes: u64) {
        if hint.source == Source::Mention {
            self.mention_bytes = self.mention_bytes.saturating_add(bytes);
        } else {
            self.guesses_under_way = self.guesses_under_way.saturating_sub(1);
            self.guess_bytes = self.guess_bytes.saturating_add(bytes);
        }
    }

    /// What was guessed was not sent after all: if the page names it by itself, it is decided on anew.
    pub fn forget_guess(&mut self, request: &Unasked) {
        if let Some(all) = self.asked.get_mut(&request.url) {
            all.retain(|asked| asked.guess.is_none() || asked.fields != request.fields);
            if all.is_empty() {
                self.asked.remove(&request.url);
            }
        }
    }

    /// Whether a request more is in the budget at all: what a page names beyond it costs next to nothing.
    fn room_for(&self, url: &Url) -> Result<(), Skip> {
        match self.requests < self.budget.max_requests {
            true => Ok(()),
            false if self.asked.contains_key(url) => Err(Skip::Duplicate),
            false => Err(Skip::OverBudget),
        }
    }

    fn admit(&mut self, hint: &Hint, request: Unasked) -> Result<Unasked, Skip> {
        self.check_repeated(hint, &request)?;
        // Nothing is remembered of what is refused here: a page of very many hints takes no more than its budget.
        let is_mention = hint.source == Source::Mention;
        if is_mention
            && (self.mentions >= self.budget.max_mentions
                || self.mention_bytes > self.budget.max_mention_bytes)
        {
            return Err(Skip::OverGuesses);
        }
        let is_guess = hint.confidence == Confidence::Guess && !is_mention;
        // What is only set aside comes back: they are fetched in turn.
        let guessed_enough = self.guesses >= self.budget.max_guesses || self.room_for_guess() == Room::UsedUp;
        if is_guess && guessed_enough {
            return Err(Skip::OverGuesses);
        }
        let origin = request.url.origin();
        if !is_same_site(&request.url, &self.load.url) {
            let used = self.foreign.get(&origin).copied().unwrap_or(0);
            if used >= self.budget.max_per_foreign_origin {
                return Err(Skip::OverBudget);
            }
            self.foreign.insert(origin, used + 1);
        }
        self.requests += 1;
        self.mentions += usize::from(is_mention);
        self.guesses += usize::from(is_guess);
        self.asked.entry(request.url.clone()).or_default().push(Asked {
            mode: hint.mode,
            destination: hint.destination,
            fields: request.fields.clone(),
            guess: (hint.confidence == Confidence::Guess).then_some(hint.source),
            reusable: None,
        });
        Ok(request)
    }

    fn check_repeated(&mut self, hint: &Hint, request: &Unasked) -> Result<(), Skip> {
        let Some(before) = self.asked.get_mut(&request.url) else { return Ok(()) };
        for asked in before.iter_mut() {
            // A preload and its use, or the same image in two places, are one fetch to a browser.
            let is_same = asked.mode == hint.mode && asked.destination == hint.destination;
            let reuses = |stored: &Stored| {
                stored.answers(&request.fields) && compare_always(&asked.fields, &request.fields).is_ok()
            };
            if is_same || asked.reusable.as_ref().is_some_and(reuses) {
                let is_named = is_same && hint.confidence != Confidence::Guess;
                // What the page names by itself takes no other guess's place.
                match asked.guess.take_if(|_| is_named) {
                    Some(Source::Mention) => self.mentions = self.mentions.saturating_sub(1),
                    Some(_) => self.guesses = self.guesses.saturating_sub(1),
                    None => {}
                }
                return Err(Skip::Duplicate);
            }
        }
        // Where a cache would keep both, both are worth it. What is still on its way may turn out not to be kept. What is for the next
        // page comes last, and this one does not wait for it.
        let is_for_next = |asked: &Asked| asked.destination == Destination::Prefetch;
        if before.iter().all(|asked| asked.reusable.is_some() || is_for_next(asked)) {
            Ok(())
        } else {
            Err(Skip::UncacheableTwice)
        }
    }
}

fn decision(request: Result<Unasked, Skip>, hint: &Hint) -> Decision {
    match request {
        Ok(request) => Decision::Fetch(request, urgency(hint)),
        Err(skip) => Decision::Skip(skip),
    }
}

fn unasked_if(
    load: &Load,
    hint: &Hint,
    request: impl FnOnce() -> Result<Unasked, Skip>,
    never: &NeverUnasked,
) -> Result<Unasked, Skip> {
    if !fetches(load.family(), hint) {
        return Err(Skip::NotThisBrowser);
    }
    let request = request()?;
    if request.url.origin() == load.url.origin() && load.request.contains_key(header::AUTHORIZATION) {
        return Err(Skip::Credentials);
    }
    if hint.confidence == Confidence::Guess && !is_harmless(&request) {
        return Err(Skip::RiskyGuess);
    }
    never.why(&request.url).map_or(Ok(request), Err)
}

/// Extensions of what only gives what it is, to anyone: images, fonts, styles and scripts.
const PLAIN_FILES: [&str; 17] = [
    "avif", "bmp", "css", "gif", "ico", "jpeg", "jpg", "js", "jxl", "mjs", "otf", "png", "svg", "ttf",
    "webp", "woff", "woff2",
];

/// Whether asking does nothing even where the browser never would have asked: a script may name `/logout`, too.
fn is_harmless(request: &Unasked) -> bool {
    let file = request.url.path().rsplit('/').next().unwrap_or_default();
    let is_plain = file
        .rsplit_once('.')
        .is_some_and(|(_, extension)| PLAIN_FILES.iter().any(|plain| extension.eq_ignore_ascii_case(plain)));
    is_plain && request.url.query().is_none() && !request.fields.contains_key(header::COOKIE)
}

fn fetches(family: Family, hint: &Hint) -> bool {
    let from_field = matches!(hint.source, Source::LinkField | Source::EarlyHints);
    match (family, hint.destination) {
        // Tools fetch what they are told to; a wrong guess would only cost the link.
        (Family::Unknown, _) => false,
        // Only Firefox obeys stylesheets in Link fields; a preload of a style is obeyed by all and blocks nothing.
        (_, Destination::Style) if from_field && hint.timing != Timing::Async => family == Family::Firefox,
        (_, Destination::Icon) if from_field => false,
        // Recorded from Chromium; what other families make of an icon is theirs.
        (_, Destination::Icon) if hint.source == Source::OtherIcon => family == Family::Chromium,
        (_, Destination::Manifest) => family == Family::Chromium && !from_field,
        // Recorded from Chromium; a 103 response preloads and connects, no more (HTML, "process early hint headers").
        (_, Destination::Prefetch) => family == Family::Chromium && hint.source != Source::EarlyHints,
        _ => true,
    }
}

/// URLs that are not fetched unasked again, or not for a while, and why. Bounded: the oldest go first.
#[derive(Debug, Default)]
pub struct NeverUnasked {
    urls: HashMap<Url, Bar>,
    order: VecDeque<Url>,
    max: usize,
}

#[derive(Debug, Clone, Copy)]
enum Bar {
    Always(Skip),
    /// Asked for in other words than were foreseen: left to the browser so many times more, of so many.
    Otherwise {
        left: u8,
        of: u8,
    },
}

/// How often what was asked for otherwise is left to the browser, at first and at most; twice as often each time that it shows again.
const LEFT: u8 = 2;
const LEFT_AT_MOST: u8 = 64;

impl NeverUnasked {
    /// Remembers at most `max` URLs.
    pub fn new(max: usize) -> Self {
        NeverUnasked { max, ..NeverUnasked::default() }
    }

    /// Bytes that all this takes, about.
    pub fn size(&self) -> usize {
        self.order.iter().map(|url| 2 * (url.as_str().len() + size_of::<Url>())).sum()
    }

    /// An unasked fetch of `url` was answered with `response`. Returns whether it is barred from now on, as doing so set a cookie
    /// (DESIGN.md).
    pub fn note(&mut self, url: &Url, response: &HeaderMap) -> bool {
        let sets_cookie = response.contains_key(header::SET_COOKIE);
        if sets_cookie {
            self.bar(url, Skip::SetsCookie);
        }
        sets_cookie
    }

    /// Has `url` barred from now on.
    pub fn bar(&mut self, url: &Url, why: Skip) {
        self.set(url, Bar::Always(why));
    }

    /// `url` was asked for in other words than were foreseen. That will most likely be so again, but need not be.
    fn mistaken(&mut self, url: &Url) {
        let times = match self.urls.get(url) {
            Some(Bar::Always(_)) => return,
            Some(Bar::Otherwise { of, .. }) => of.saturating_mul(2).min(LEFT_AT_MOST),
            None => LEFT,
        };
        self.set(url, Bar::Otherwise { left: times, of: times });
    }

    /// `url` was asked for.
    fn asked(&mut self, url: &Url) {
        if let Some(Bar::Otherwise { left, .. }) = self.urls.get_mut(url) {
            *left = left.saturating_sub(1);
        }
    }

    fn set(&mut self, url: &Url, bar: Bar) {
        if self.urls.insert(url.clone(), bar).is_none() {
            self.order.push_back(url.clone());
            if self.order.len() > self.max
                && let Some(oldest) = self.order.pop_front()
            {
                self.urls.remove(&oldest);
            }
        }
    }

    /// Why `url` is barred, if it is.
    pub fn why(&self, url: &Url) -> Option<Skip> {
        match self.urls.get(url)? {
            Bar::Always(why) => Some(*why),
            Bar::Otherwise { left, .. } => (*left > 0).then_some(Skip::AskedOtherwise),
        }
    }
}
