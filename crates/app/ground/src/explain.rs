//! The plan for a page, made without a carrier: what ground would promise for it, in which order, and what it would
//! leave to the browser, and why. Fetches the document and what is read for more; no images, nothing crosses.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::SystemTime;

use farhop_bundle::{Decision, Navigation, Noted, Skip, Unasked, Way, is_attachment, leads_to};
use farhop_events::ExchangeId;
use farhop_htotp::{RequestHead, ResponseHead};
use farhop_models::{ToldModel, ToldResource};
use farhop_origin::Upload;
use farhop_page::{Destination, Hint, Initiator};
use http::{HeaderMap, Method, StatusCode, Version};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use url::Url;

use crate::body::{Part, Source};
use crate::bundle::request_head;
use crate::ground::Shared;
use crate::origins::{Asked, Informed, Response};
use crate::owner::{Known, Owner};
use crate::page::{XHTML, is_document};
use crate::reading::{Decided, Reading};
use crate::redirected::MOST;
use crate::tally::{NOT_PUBLIC, skip_words, source_word};
use crate::treatment::{codings, media_type};

/// Stylesheets, modules and frames that one plan reads.
const MOST_READ: usize = 200;
/// Bytes that are read of one of them.
const LONGEST: u64 = 16 << 20;

/// The plan for a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explained {
    /// The page, after redirects.
    pub url: String,
    /// The document's status.
    pub status: u16,
    /// What else there is to say of it: redirects, why it is no page, bounds that it exceeds.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Everything that was found, in the order in which it was.
    pub resources: Vec<Explanation>,
    /// What could not be read, and why: its own needs are not in the plan.
    pub unread: Vec<String>,
    /// What earlier visits have taught of the page, by whose they were.
    #[serde(default)]
    pub learned: Vec<Learned>,
}

/// A model of the page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Learned {
    /// The user whom it serves, `None` for everyone.
    pub user: Option<String>,
    /// What the URLs of its pages are like, if it is not of this page alone.
    pub template: Option<String>,
    /// Visits that taught it; of a template: pages.
    pub visits: u32,
    /// What follows, as far as it may serve anybody.
    pub resources: Vec<Follows>,
}

/// What follows the page, as earlier visits have shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Follows {
    /// What.
    pub url: String,
    /// What it is used as.
    pub destination: String,
    /// How sure it is that the next visit asks for it.
    pub confidence_percent: u8,
    /// What is done as soon as the page is asked for: `push`, `promise`, `connect`, or nothing.
    pub means: Option<String>,
}

impl From<ToldModel> for Learned {
    fn from(told: ToldModel) -> Self {
        let follows = |one: ToldResource| Follows {
            url: one.url,
            destination: one.destination.into(),
            confidence_percent: one.confidence_percent,
            means: one.means.map(Into::into),
        };
        Learned {
            user: told.user,
            template: told.template.then_some(told.page),
            visits: told.visits,
            resources: told.resources.into_iter().map(follows).collect(),
        }
    }
}

/// What is planned for one resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// What.
    pub url: String,
    /// The mark-up that names it.
    pub source: String,
    /// Which document, stylesheet or module names it, or what is redirected there.
    pub named_by: String,
    /// `sure`, `likely` or `guess`.
    pub confidence: String,
    /// RFC 9218 urgency, 0 first; `None` if it is left to the browser.
    pub urgency: Option<u8>,
    /// Why it is left to the browser.
    pub left: Option<String>,
}

/// A readable resource that is to be read for more.
struct Unread {
    reading: Arc<Reading>,
    hint: Hint,
    unasked: Unasked,
    /// Redirects that led there.
    way: Way,
}

/// Makes the plan for `url` as a browser with these request fields would get it.
///
/// # Errors
/// Why the page cannot be had, in words.
pub(crate) async fn explain(ground: &Shared, url: &Url, fields: HeaderMap) -> Result<Explained, String> {
    let owner = Owner { remote: "explain".into(), user: 0 };
    let mut unasked = Unasked { url: url.clone(), fields };
    let mut notes = Vec::new();
    let known = Arc::new(Known::default());
    let (request, noted, response, early) = page(ground, &owner, &known, &mut unasked, &mut notes).await?;
    let head = ResponseHead { status: response.status, fields: response.fields.clone() };
    let mut plan = Explained {
        url: unasked.url.to_string(),
        status: head.status.as_u16(),
        notes,
        resources: Vec::new(),
        unread: Vec::new(),
        learned: Vec::new(),
    };
    if !is_document(&head) {
        plan.notes.push(format!("not a page: {}", what(&head)));
        return Ok(plan);
    }
    plan.learned = ground.models.told(&unasked.url).into_iter().map(Learned::from).collect();
    let settings = ground.settings();
    let reading = Reading::page(&request, &head, &noted, &known, &settings.bundle);
    let reading = Arc::new(reading.ok_or("the page has no URL that a browser could load")?);
    let mut unread = VecDeque::new();
    if let Some(early) = &early {
        plan.take(&reading, reading.links(early, true), &mut unread);
    }
    plan.take(&reading, reading.links(&head.fields, false), &mut unread);
    read_document(&mut plan, &reading, response, &mut unread).await?;

    for _ in 0..MOST_READ {
        let Some(next) = unread.pop_front() else { break };
        let name = next.unasked.url.to_string();
        if let Err(why) = read_part(ground, &owner, &mut plan, &next, &mut unread).await {
            plan.unread.push(format!("{name}: {why}"));
            let waiting = next.reading.lost(&next.hint);
            plan.take(&next.reading, waiting, &mut unread);
        }
    }
    plan.note_bound(&reading);
    plan.unread.extend(unread.iter().map(|left| format!("{}: the plan is long enough", left.unasked.url)));
    for resource in &mut plan.resources {
        if Url::parse(&resource.url).is_ok_and(|url| ground.origins.refuses(&url)) {
            (resource.urgency, resource.left) = (None, Some(NOT_PUBLIC.into()));
        }
    }
    Ok(plan)
}

impl Explained {
    /// Says so if the document of `reading`, which has been read, names more than is taken of it.
    fn note_bound(&mut self, reading: &Reading) {
        if let Some(bound) = reading.exceeded() {
            self.notes.push(format!(
                "{} names more than {bound} resources: the rest is left to the browser and not in this plan",
                reading.url()
            ));
        }
    }

    fn take(&mut self, reading: &Arc<Reading>, decided: Vec<Decided>, unread: &mut VecDeque<Unread>) {
        for Decided { hint, decision, way, .. } in decided {
            let (urgency, left) = match &decision {
                Decision::Fetch(_, urgency) => (Some(urgency.level), None),
                // It stands in the plan.
                Decision::Skip(Skip::Duplicate) => continue,
                Decision::Skip(skip) => (None, Some(skip_words(*skip).to_owned())),
            };
            let target = match &decision {
                Decision::Fetch(unasked, _) => &unasked.url,
                Decision::Skip(_) => &hint.url,
            };
            self.resources.push(Explanation {
                url: target.to_string(),
                source: source_word(hint.source).into(),
                named_by: match &hint.initiator {
                    _ if !way.is_empty() => format!("redirect of {}", hint.url),
                    Initiator::Document => "document".into(),
                    Initiator::Sheet(url) | Initiator::Module(url) => url.to_string(),
                },
                confidence: format!("{:?}", hint.confidence).to_lowercase(),
                urgency,
                left,
            });
            if let Decision::Fetch(unasked, _) = decision
                && matches!(hint.destination, Destination::Style | Destination::Script | Destination::Frame)
            {
                unread.push_back(Unread { reading: Arc::clone(reading), hint, unasked, way });
            }
        }
    }
}

/// The page, redirects followed and told in `notes`, and its 103 response; `unasked` is what was asked for last.
async fn page(
    ground: &Shared,
    owner: &Owner,
    known: &Known,
    unasked: &mut Unasked,
    notes: &mut Vec<String>,
) -> Result<(RequestHead, Noted, Response, Option<HeaderMap>), String> {
    let mut before = Vec::new();
    for _ in 0..=MOST {
        let (informed, mut informing) = mpsc::unbounded_channel();
        let (request, response) = fetch(ground, owner, unasked, Some(informed)).await?;
        let noted = known.cookies().note_request(&unasked.url, &request.fields, SystemTime::now());
        known.cookies().note_response(&noted, &unasked.url, &response.fields, SystemTime::now());
        let Some(target) = leads_to(&unasked.url, response.status, &response.fields) else {
            let informed = std::iter::from_fn(|| informing.try_recv().ok());
            let mut early = informed.filter(|informed| informed.status == StatusCode::EARLY_HINTS);
            let early = early.next().map(|informed| informed.fields);
            return Ok((request, noted, response, early));
        };
        let Unasked { url, fields } = &*unasked;
        let navigation = Navigation { method: &Method::GET, url, fields, jar: noted.jar };
        let foreseen =
            navigation.redirected(response.status, &response.fields, &known.cookies(), SystemTime::now());
        notes.push(match foreseen {
            Some(_) => format!("redirected by {url}, which ground follows"),
            None => format!("redirected by {url}, which is left to the browser"),
        });
        let next = foreseen.unwrap_or_else(|| Unasked { url: target, fields: fields.clone() });
        before.push(std::mem::replace(unasked, next));
        if before.contains(unasked) {
            let from = before.last().map_or(&unasked.url, |last| &last.url);
            return Err(format!("a redirect loop: {from} leads back to {}", unasked.url));
        }
    }
    Err(format!("it is redirected more than {MOST} times, in the end to {}", unasked.url))
}

/// What a response is that is no page, in words.
fn what(head: &ResponseHead) -> String {
    let kind = media_type(&head.fields);
    match () {
        () if is_attachment(&head.fields) => "an attachment".into(),
        () if kind.is_empty() => "it has no content type".into(),
        () if kind == "text/html" || kind == XHTML => format!("status {}", head.status.as_u16()),
        () => kind,
    }
}

async fn fetch(
    ground: &Shared,
    owner: &Owner,
    unasked: &Unasked,
    informed: Option<mpsc::UnboundedSender<Informed>>,
) -> Result<(RequestHead, Response), String> {
    let head = request_head(unasked).ok_or("the URL names no host")?;
    let (exchange, version) = (ExchangeId(0), Version::HTTP_11);
    let asked = Asked { owner, exchange, head: &head, version, upload: Upload::empty(), informed };
    let response = ground.origins.ask(asked).await.map_err(|failure| failure.to_string())?;
    Ok((head, response))
}

async fn read_document(
    plan: &mut Explained,
    reading: &Arc<Reading>,
    response: Response,
    unread: &mut VecDeque<Unread>,
) -> Result<(), String> {
    let codings = codings(&response.fields).map_err(|error| error.to_string())?;
    let mut source = Source::new(response.body, &codings);
    while source.received() < LONGEST {
        match source.next().await.map_err(|failure| failure.to_string())? {
            Part::Bytes(bytes) => {
                plan.take(reading, reading.read(|document| document.html(&bytes)), unread);
            }
            Part::End(_) => break,
        }
    }
    plan.take(reading, reading.read(|document| document.html_end()), unread);
    Ok(())
}

/// Reads a stylesheet, a module, or a document in a frame.
async fn read_part(
    ground: &Shared,
    owner: &Owner,
    plan: &mut Explained,
    part: &Unread,
    unread: &mut VecDeque<Unread>,
) -> Result<(), String> {
    let (request, response) = fetch(ground, owner, &part.unasked, None).await?;
    let head = ResponseHead { status: response.status, fields: response.fields.clone() };
    part.reading.answered(&part.unasked, head.status, &head.fields);
    if head.status.is_redirection() {
        let decided = part.reading.redirected(&part.hint, &part.way, &part.unasked, &head);
        let is_followed = decided.iter().any(|one| one.hint == part.hint);
        plan.take(&part.reading, decided, unread);
        if !is_followed {
            plan.unread.push(format!("{}: it is redirected, which is left to the browser", part.unasked.url));
        }
        return Ok(());
    }
    if part.hint.destination == Destination::Frame {
        let Some(frame) = part.reading.frame(&part.hint.url, &request, &head).filter(|_| is_document(&head))
        else {
            return Ok(());
        };
        let frame = Arc::new(frame);
        let read = read_document(plan, &frame, response, unread).await;
        plan.note_bound(&frame);
        return read;
    }
    if head.status != StatusCode::OK {
        return Err(format!("answered with status {}", head.status.as_u16()));
    }
    let Some(id) = part.reading.begin(&part.hint, &part.unasked.url, &head) else { return Ok(()) };
    let codings = codings(&head.fields).map_err(|error| error.to_string())?;
    let mut source = Source::new(response.body, &codings);
    while source.received() < LONGEST {
        match source.next().await.map_err(|failure| failure.to_string())? {
            Part::Bytes(bytes) => {
                let decided = part.reading.read(|document| document.resource(id, &bytes));
                plan.take(&part.reading, decided, unread);
            }
            Part::End(_) => break,
        }
    }
    plan.take(&part.reading, part.reading.read(|document| document.resource_end(id)), unread);
    Ok(())
}
