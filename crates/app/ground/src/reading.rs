//! What ground makes of a page: its documents as they are read, and what is decided about everything they name. It
//! fetches and promises nothing, so that a plan can also be made without a carrier (`explain`).

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use farhop_bundle::{
    Budget, Decision, Load, Noted, Plan, Skip, Unasked, Way, content_policies, referrer_policy,
};
use farhop_htotp::{RequestHead, ResponseHead};
use farhop_page::is_script_type;
use farhop_page::{
    Destination, Document, Hint, Mode, Options, Policy, PolicyKind, ResourceId, ResourceInfo, Steps,
};
use farhop_settings::ground::BundleSettings;
use http::{HeaderMap, StatusCode, header};
use url::Url;

use crate::owner::Known;
use crate::page::XHTML;
use crate::treatment::{charset, media_type};

/// Frames within frames that are read; deeper ones are left to the browser. The page's budget bounds them before that.
const DEEPEST: usize = 8;

/// Bytes that a page takes of which nothing is read yet, and that each resource decided on adds, about.
const PAGE: usize = 32 * 1024;
const HINT: usize = 4 * 1024;

/// What was decided about a hint.
#[derive(Debug)]
pub(crate) struct Decided {
    pub(crate) hint: Hint,
    pub(crate) decision: Decision,
    /// Redirects that led from what the hint names to what was decided about.
    pub(crate) way: Way,
}

/// Of one load of a page, shared by the documents in its frames: one budget, one user.
struct Visit {
    plan: Mutex<Plan>,
    known: Arc<Known>,
    /// One budget, however many frames.
    matching: Steps,
    /// Bytes that its documents take, about.
    size: AtomicUsize,
}

/// One document of the page. The streams of everything that is read for it share it.
pub(crate) struct Reading {
    visit: Arc<Visit>,
    document: Mutex<Document>,
    /// `None` for the page's own document, which is the plan's.
    frame: Option<Mutex<Load>>,
    /// The documents around it, the page's own first.
    around: Vec<Url>,
}

impl Reading {
    /// Of the page that answers `request`, which was `noted`, with `response`.
    pub(crate) fn page(
        request: &RequestHead,
        response: &ResponseHead,
        noted: &Noted,
        known: &Arc<Known>,
        settings: &BundleSettings,
    ) -> Option<Reading> {
        let url = Url::parse(&request.url()).ok()?;
        let options = options(request, response, known);
        let matching = options.matching.clone();
        let document = document(&url, response, options);
        let load = Load::new(url, request.fields.clone(), &response.fields, noted);
        let budget = Budget { max_requests: settings.hints as usize, ..Budget::default() };
        let plan = Mutex::new(Plan::new(load, budget));
        let visit = Visit { plan, known: Arc::clone(known), matching, size: AtomicUsize::new(PAGE) };
        Some(Reading { visit: Arc::new(visit), document, frame: None, around: Vec::new() })
    }

    /// The page's response is here, after a 103 response of which this was made: what that named stays planned, and the
    /// fields that hold from now on are the response's.
    pub(crate) fn answer(&self, request: &RequestHead, response: &ResponseHead, noted: &Noted) {
        let mut plan = lock(&self.visit.plan);
        let load = plan.load_mut();
        *load = Load::new(load.url.clone(), request.fields.clone(), &response.fields, noted);
        let xml = media_type(&response.fields) == XHTML;
        drop(plan);
        let mut document = lock(&self.document);
        document.answered(charset(&response.fields).as_deref(), xml);
        document.obey(content_policies(&response.fields));
    }

    /// Of the document in the frame that `hint` named. `None` where frames are too deep, where the browser may not show
    /// it, and where it has an origin of its own: all that such a document names is asked for with other fields.
    pub(crate) fn frame(
        &self,
        hint: &Hint,
        request: &RequestHead,
        response: &ResponseHead,
    ) -> Option<Reading> {
        if self.around.len() >= DEEPEST
            || is_confined(&response.fields)
            || lock(&self.document).is_opaque(hint)
        {
            return None;
        }
        let framed = |parent: &Load| {
            let url = Url::parse(&request.url()).ok()?;
            let load = Load::framed(parent, url, request.fields.clone(), &response.fields);
            (!load.is_opaque()).then_some(load)
        };
        let load = match &self.frame {
            None => framed(lock(&self.visit.plan).load()),
            Some(parent) => framed(&lock(parent)),
        }?;
        let matching = self.visit.matching.clone();
        let scripting = lock(&self.document).runs_scripts(hint);
        let options = Options {
            default_icon: false,
            matching,
            scripting,
            ..options(request, response, &self.visit.known)
        };
        let document = document(&load.url, response, options);
        let visit = Arc::clone(&self.visit);
        let mut around = self.around.clone();
        let mut own = self.url();
        own.set_fragment(None);
        around.push(own);
        Some(Reading { visit, document, frame: Some(Mutex::new(load)), around })
    }

    /// Reads on, and decides about what that finds.
    pub(crate) fn read(&self, on: impl FnOnce(&mut Document) -> Vec<Hint>) -> Vec<Decided> {
        let mut document = lock(&self.document);
        let mut hints = VecDeque::from(on(&mut document));
        let mut policies = VecDeque::from(document.policies());
        let mut all = Vec::new();
        while let Some(hint) = hints.pop_front() {
            while let Some(policy) = policies.pop_front_if(|policy| policy.from <= hint.order) {
                self.obey(&policy);
            }
            let way = Way::default();
            let decision = self.decide(&hint, &hint.url, &way);
            match decision {
                Decision::Skip(_) => hints.extend(document.resource_lost(&hint)),
                Decision::Fetch(..) => self.weigh(HINT),
            }
            all.push(Decided { hint, decision, way });
        }
        policies.iter().for_each(|policy| self.obey(policy));
        all
    }

    /// So many bytes more were read for the page.
    pub(crate) fn weigh(&self, bytes: usize) {
        self.visit.size.fetch_add(bytes, Relaxed);
    }

    /// Bytes that the page takes, about: what is made of its text is as long.
    pub(crate) fn size(&self) -> usize {
        self.visit.size.load(Relaxed)
    }

    /// Follows the `Link` fields of a response, of a 103 response if `early`.
    pub(crate) fn links(&self, fields: &HeaderMap, early: bool) -> Vec<Decided> {
        self.read(|document| {
            let values = fields.get_all(header::LINK).into_iter().filter_map(|value| value.to_str().ok());
            values.flat_map(|value| document.link_field(value, early)).collect()
        })
    }

    /// The user's browser asked for `url`, which nobody foresaw, with these fields.
    pub(crate) fn asked(&self, url: &Url, request: &HeaderMap) {
        let mut document = lock(&self.document);
        let assumed = document.viewport().clone();
        document.asked(url);
        if *document.viewport() != assumed {
            self.visit.known.learn_screen(agent(request), document.viewport());
        }
    }

    /// Where the document is.
    pub(crate) fn url(&self) -> Url {
        match &self.frame {
            None => lock(&self.visit.plan).load().url.clone(),
            Some(load) => lock(load).url.clone(),
        }
    }

    /// How many resources a document may name, once this one has named more.
    pub(crate) fn exceeded(&self) -> Option<usize> {
        lock(&self.document).exceeded()
    }

    /// What the hint names will not be read: decides about what had waited for it.
    pub(crate) fn lost(&self, hint: &Hint) -> Vec<Decided> {
        self.read(|document| document.resource_lost(hint))
    }

    /// What was asked for with `request`, which `hint` named or to which this way led from that, answers with `response`
    /// and is not read: decides about where it leads in turn, or about what had waited for it.
    pub(crate) fn redirected(
        &self,
        hint: &Hint,
        way: &Way,
        request: &Unasked,
        response: &ResponseHead,
    ) -> Vec<Decided> {
        let led = |load: &Load| load.led(hint, way, request, response.status, &response.fields);
        let led = match &self.frame {
            None => led(lock(&self.visit.plan).load()),
            Some(load) => led(&lock(load)),
        };
        let decided = led.map(|(way, target)| (self.decide(hint, &target, &way), way));
        match decided {
            Some((decision @ Decision::Fetch(..), way)) => {
                vec![Decided { hint: hint.clone(), decision, way }]
            }
            _ => self.lost(hint),
        }
    }

    /// What `hint` named answers at `url`. `None` if there is nothing to read in it.
    pub(crate) fn begin(&self, hint: &Hint, url: &Url, response: &ResponseHead) -> Option<ResourceId> {
        let mut document = lock(&self.document);
        if is_refused(hint, &response.fields, document.takes_any_sheet(url)) {
            return None;
        }
        let charset = charset(&response.fields);
        document.resource_begins(hint, url, &info(response, charset.as_deref()))
    }

    /// The browser asked for `url`, which nobody foresaw and which answers so. `None` if there is nothing to read in it.
    pub(crate) fn unforeseen(&self, url: &Url, response: &ResponseHead) -> Option<ResourceId> {
        let destination = match &*media_type(&response.fields) {
            "text/css" => Destination::Style,
            "text/javascript" | "application/javascript" | "application/x-javascript" => Destination::Script,
            _ => return None,
        };
        let charset = charset(&response.fields);
        lock(&self.document).unforeseen(url, destination, &info(response, charset.as_deref()))
    }

    /// What a response that was fetched for `hint` tells of others.
    pub(crate) fn answered(&self, request: &Unasked, status: StatusCode, response: &HeaderMap) {
        lock(&self.visit.plan).answered(request, status, response, SystemTime::now());
    }

    /// Most bytes that a guess may take.
    pub(crate) fn guess_allowance(&self) -> u64 {
        lock(&self.visit.plan).guess_allowance()
    }

    /// A guess took this many bytes.
    pub(crate) fn spent_on_guess(&self, hint: &Hint, bytes: u64) {
        lock(&self.visit.plan).spent_on_guess(hint, bytes);
    }

    fn obey(&self, policy: &Policy) {
        let say = |load: &mut Load| match policy.kind {
            PolicyKind::Content => load.add_content_policy(&policy.text),
            // Only a page in a window may ask for them.
            PolicyKind::ClientHints if self.frame.is_none() => load.ask_client_hints(&policy.text),
            PolicyKind::ClientHints => {}
        };
        match &self.frame {
            None => say(lock(&self.visit.plan).load_mut()),
            Some(load) => say(&mut lock(load)),
        }
    }

    fn decide(&self, hint: &Hint, target: &Url, way: &Way) -> Decision {
        // HTML, "process the iframe attributes": no document is loaded within itself (in Chromium once, which is left to it).
        if hint.destination == Destination::Frame && self.around.contains(target) {
            return Decision::Skip(Skip::NotThisBrowser);
        }
        let (mut plan, never, mut cookies) =
            (lock(&self.visit.plan), self.visit.known.never(), self.visit.known.cookies());
        let now = SystemTime::now();
        let decision = match &self.frame {
            None => plan.decide_after(None, hint, target, way, &never, &cookies, now),
            Some(load) => plan.decide_after(Some(&lock(load)), hint, target, way, &never, &cookies, now),
        };
        if decision == Decision::Skip(Skip::UnknownHints) {
            plan.load().awaits_hints(&mut cookies, now);
        }
        if hint.destination == Destination::Frame {
            match &self.frame {
                None => plan.load().names_frame(target, &mut cookies, now),
                Some(load) => lock(load).names_frame(target, &mut cookies, now),
            }
        }
        decision
    }
}

/// Whether a response says where it may be framed or is sandboxed by itself. Whether this page may is left to the
/// browser.
fn is_confined(fields: &HeaderMap) -> bool {
    let policies = fields.get_all(header::CONTENT_SECURITY_POLICY).into_iter();
    fields.contains_key(header::X_FRAME_OPTIONS)
        || policies.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split([',', ';'])).any(
            |directive| {
                let name = directive.split_ascii_whitespace().next().unwrap_or_default();
                ["frame-ancestors", "sandbox"].iter().any(|own| name.eq_ignore_ascii_case(own))
            },
        )
}

/// Whether browsers make nothing of what `hint` named, since it is said to be something else; `any_sheet` where the type of a
/// style sheet does not matter to the document.
fn is_refused(hint: &Hint, fields: &HeaderMap, any_sheet: bool) -> bool {
    let kind = media_type(fields);
    let sniffed = fields.get(header::X_CONTENT_TYPE_OPTIONS).and_then(|value| value.to_str().ok());
    let nosniff = sniffed.is_some_and(|value| {
        value.split(',').next().is_some_and(|word| word.trim().eq_ignore_ascii_case("nosniff"))
    });
    match hint.destination {
        // HTML, "fetch a single module script"; Fetch, "should response to request be blocked due to nosniff".
        Destination::Script if hint.mode != Mode::NoCors || nosniff => !is_script_type(&kind),
        // Chromium takes a sheet without any type for one (recorded).
        Destination::Style => kind != "text/css" && (nosniff || !(any_sheet || kind.is_empty())),
        _ => false,
    }
}

fn info<'a>(response: &ResponseHead, charset: Option<&'a str>) -> ResourceInfo<'a> {
    ResourceInfo { charset, referrer_policy: referrer_policy(&response.fields) }
}

fn agent(request: &HeaderMap) -> &str {
    request.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default()
}

fn options(request: &RequestHead, response: &ResponseHead, known: &Known) -> Options {
    let accept = request.fields.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    let jpeg_xl = accept.is_some_and(|accept| accept.contains("image/jxl"));
    let xml = media_type(&response.fields) == XHTML;
    Options { viewport: known.screen(agent(&request.fields)), jpeg_xl, xml, ..Options::default() }
}

fn document(url: &Url, response: &ResponseHead, options: Options) -> Mutex<Document> {
    let mut document = Document::new(url, charset(&response.fields).as_deref(), options);
    document.obey(content_policies(&response.fields));
    Mutex::new(document)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is planned is advice: no invariant spans a panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_settings::GroundSettings;
    use http::Method;

    fn request(path: &str) -> RequestHead {
        let agent = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
        let fields = HeaderMap::from_iter([
            (header::ACCEPT, "text/html".parse().unwrap()),
            (header::USER_AGENT, agent.parse().unwrap()),
        ]);
        RequestHead {
            method: Method::GET,
            scheme: "http".into(),
            authority: "site.test".into(),
            path: path.into(),
            fields,
        }
    }

    fn answer(fields: &[(&'static str, &'static str)]) -> ResponseHead {
        let mut head = ResponseHead { status: StatusCode::OK, fields: HeaderMap::new() };
        for (name, value) in fields {
            head.fields.append(*name, value.parse().unwrap());
        }
        head
    }

    fn page() -> Reading {
        page_of(&answer(&[]))
    }

    fn page_of(response: &ResponseHead) -> Reading {
        let (request, known) = (request("/"), Arc::new(Known::default()));
        let url = Url::parse(&request.url()).unwrap();
        let noted = known.cookies().note_request(&url, &request.fields, SystemTime::now());
        let text = "allow = ['127.0.0.0/8']\n[[remote]]\nname = 'ship'\nkeys = ['made in the test']";
        let settings: GroundSettings = farhop_settings::parse(text, "".as_ref(), &[]).unwrap();
        Reading::page(&request, response, &noted, &known, &settings.bundle).unwrap()
    }

    fn names(decided: &[Decided]) -> Vec<&str> {
        decided.iter().map(|one| one.hint.url.path()).collect()
    }

    fn named(page: &Reading, html: &str) -> Hint {
        page.read(|document| document.html(html.as_bytes())).remove(0).hint
    }

    #[test]
    fn documents_with_an_origin_of_their_own_are_not_read() {
        let page = page();
        let frame = named(&page, "<iframe src=/f></iframe>");
        let sandboxed = named(&page, "<iframe sandbox src=/s></iframe>");
        assert!(page.frame(&sandboxed, &request("/s"), &answer(&[])).is_none());
        let read = |name, value| page.frame(&frame, &request("/f"), &answer(&[(name, value)])).is_some();
        assert!(!read("content-security-policy", "default-src 'self'; Sandbox allow-scripts"));
        assert!(read("content-security-policy", "default-src 'self'"));
    }

    #[test]
    fn what_browsers_refuse_for_its_type_is_not_read() {
        let page = page();
        let html = "<!doctype html><link rel=stylesheet href=a.css><script type=module src=m.js></script><script src=c.js></script>";
        let hints: Vec<Hint> =
            page.read(|document| document.html(html.as_bytes())).into_iter().map(|one| one.hint).collect();
        let read = |at: usize, fields: &[(&'static str, &'static str)]| {
            page.begin(&hints[at], &hints[at].url, &answer(fields)).is_some()
        };
        let (plain, nosniff) = (("content-type", "text/plain"), ("x-content-type-options", "NoSniff"));
        assert!(!read(1, &[plain]), "a module's type counts without a word of sniffing");
        assert!(!read(0, &[plain]) && read(2, &[plain]), "and a sheet's, not a classic script's");
        for (at, kind) in [(0, "text/css"), (1, "text/javascript"), (2, "application/javascript")] {
            assert!(!read(at, &[plain, nosniff]), "{kind}");
            assert!(read(at, &[("content-type", kind), nosniff]), "{kind}");
        }
    }

    #[test]
    fn a_style_sheet_of_another_type_counts_in_quirks_mode_alone() {
        let read = |doctype: &str, sheet: &str, fields: &[(&'static str, &'static str)]| {
            let page = page();
            let hint = named(&page, &format!("{doctype}<link rel=stylesheet href='{sheet}'>"));
            page.begin(&hint, &hint.url, &answer(fields)).is_some()
        };
        let (plain, nosniff) = (("content-type", "text/plain"), ("x-content-type-options", "nosniff"));
        assert!(read("", "a.css", &[plain]));
        assert!(!read("", "a.css", &[plain, nosniff]));
        assert!(!read("", "//cdn.test/a.css", &[plain]), "of the same origin alone");
        assert!(!read("<!doctype html>", "a.css", &[plain]));
        assert!(read("<!doctype html>", "a.css", &[]), "without any type");
    }

    #[test]
    fn a_policy_in_the_head_holds_for_what_comes_after_it() {
        let policy = "<meta http-equiv=content-security-policy content=\"img-src 'none'\">";
        let html = format!("<link rel=preload as=image href=/a.png>{policy}<body><img src=/b.png>");
        for size in [1, html.len()] {
            let page = page();
            let pieces = html.as_bytes().chunks(size);
            let decided: Vec<_> =
                pieces.flat_map(|piece| page.read(|document| document.html(piece))).collect();
            let forbidden = |one: &Decided| matches!(one.decision, Decision::Skip(Skip::ContentPolicy));
            let told: Vec<_> = decided.iter().map(|one| (one.hint.url.path(), forbidden(one))).collect();
            assert_eq!(
                told,
                [("/a.png", false), ("/favicon.ico", true), ("/b.png", true)],
                "in pieces of {size}"
            );
        }
    }

    #[test]
    fn xhtml_is_read_as_xml() {
        let script =
            "<html xmlns='http://www.w3.org/1999/xhtml'><script src='a.js'/><img src='a.png'/></html>";
        let read = |kind| {
            let page = page_of(&answer(&[("content-type", kind)]));
            let decided = page.read(|document| document.html(script.as_bytes()));
            names(&decided).join(" ")
        };
        assert_eq!(read("application/xhtml+xml"), "/a.js /a.png");
        assert_eq!(read("text/html"), "/a.js", "the rest is the script's");
    }

    #[test]
    fn frames_that_say_where_they_may_be_shown_are_not_read() {
        let page = page();
        let frame = named(&page, "<iframe src=/f></iframe>");
        let read = |name, value| page.frame(&frame, &request("/f"), &answer(&[(name, value)])).is_some();
        assert!(!read("x-frame-options", "DENY"));
        assert!(!read("content-security-policy", "frame-ancestors 'none'"));
    }

    #[test]
    fn a_frame_that_runs_no_scripts_shows_what_stands_in_noscript() {
        let read = |sandbox: &str| {
            let page = page();
            let frame = named(&page, &format!("<iframe sandbox='{sandbox}' src=/f></iframe>"));
            let frame = page.frame(&frame, &request("/f"), &answer(&[])).unwrap();
            let html = b"<noscript><img src=a.png></noscript><script type=module>import './m.js'</script>";
            names(&frame.read(|document| document.html(html))).join(" ")
        };
        assert_eq!(read("allow-same-origin"), "/a.png");
        assert_eq!(read("allow-same-origin allow-scripts"), "/m.js");
    }

    #[test]
    fn frames_are_read_however_deep_honest_pages_nest_them_but_in_no_circle() {
        let mut around = page();
        for depth in 1..=DEEPEST {
            let (path, inner) =
                (format!("/{depth}"), format!("<iframe src=/{depth}></iframe><iframe src=/></iframe>"));
            let decided = around.read(|document| document.html(inner.as_bytes()));
            let fetched: Vec<_> =
                decided.iter().filter(|one| matches!(one.decision, Decision::Fetch(..))).collect();
            assert_eq!(fetched.iter().map(|one| one.hint.url.path()).collect::<Vec<_>>(), [&*path]);
            around = around.frame(&fetched[0].hint, &request(&path), &answer(&[])).unwrap();
        }
        let deepest = named(&around, "<iframe src=/deeper></iframe>");
        assert!(around.frame(&deepest, &request("/deeper"), &answer(&[])).is_none());
    }

    #[test]
    fn frames_spend_the_budget_of_their_page() {
        let page = page();
        let framed = named(&page, "<iframe src=/f></iframe>");
        let styled = b"<p style='background:url(a.png)'>x</p>";
        let frame = page.frame(&framed, &request("/f"), &answer(&[])).unwrap();
        assert_eq!(names(&frame.read(|document| document.html(styled))), ["/a.png"]);
        let slow = ":not(:has(.a)) ~ * ~ *{background:url(b.png)}".repeat(2_000);
        let html = format!("<style>{slow}</style>{}", "<p></p>".repeat(20_000));
        page.read(|document| document.html(html.as_bytes()));
        page.read(Document::html_end);
        assert_eq!(page.visit.matching.left(), 0);
        let frame = page.frame(&framed, &request("/f"), &answer(&[])).unwrap();
        assert!(frame.read(|document| document.html(styled)).is_empty());
    }
}
