//! The reference: what may answer a request, by a plain reading of what the origin said and of DESIGN.md's "what never
//! breaks". It asks the origin's model what it would have said to exactly this request, in each version that may still be
//! shown, and compares bytes.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use http::{HeaderMap, StatusCode, header};

use super::origin::{Origins, Truth, posted};
use super::range::content_range;
use super::site::{Fields, Model, serial_of, tag};
use super::user::{Ask, Browser};

/// What a user sent: all that an answer may depend on.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) by: Browser,
    pub(super) user: String,
    pub(super) thing: usize,
    pub(super) ask: Ask,
    pub(super) fields: Fields,
    /// The tag sent with it as a condition, if any.
    pub(super) tag: Option<String>,
    /// Whether the user wants the origin's own word.
    pub(super) reload: bool,
}

/// What came back.
#[derive(Debug, Clone)]
pub(super) struct Came {
    pub(super) status: StatusCode,
    pub(super) fields: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// What a history has shown.
#[derive(Debug, Default, Clone)]
pub(super) struct Findings {
    pub(super) answers: u64,
    pub(super) at_origin: u64,
    pub(super) wrong: Vec<String>,
}

/// The judge of one history.
#[derive(Debug, Clone)]
pub(super) struct Judge {
    model: Arc<Model>,
    origins: Origins,
    number: u64,
    memory: Arc<Mutex<Memory>>,
}

#[derive(Debug, Default)]
struct Memory {
    findings: Findings,
    /// When each user last began to load each page.
    loads: HashMap<(Browser, usize), u64>,
    /// The first version after the last post to each thing: by anyone, and by each user.
    posted: HashMap<usize, usize>,
    posted_by: HashMap<(Browser, usize), usize>,
    /// The numbers of answers that may be given once only, and were.
    given: HashSet<(usize, u64)>,
}

impl Judge {
    pub(super) fn new(model: Arc<Model>, origins: Origins, number: u64) -> Judge {
        Judge { model, origins, number, memory: Arc::default() }
    }

    pub(super) fn model(&self) -> &Model {
        &self.model
    }

    pub(super) fn next_moment(&self) {
        self.origins.truth(self.number, |truth| truth.moment += 1);
    }

    /// The origin changes a thing.
    pub(super) fn change(&self, thing: usize) {
        self.origins.truth(self.number, |truth| truth.change(thing));
    }

    /// A user begins to load a page.
    pub(super) fn load_begins(&self, by: Browser, page: usize) {
        let moment = self.origins.truth(self.number, |truth| truth.moment);
        self.memory().loads.insert((by, page), moment);
    }

    pub(super) fn findings(&self) -> Findings {
        let asked = self.origins.truth(self.number, |truth| truth.asked);
        Findings { at_origin: asked, ..self.memory().findings.clone() }
    }

    /// Judges an answer, or what came in its place.
    pub(super) fn judge(&self, asked: &Asked, came: Result<Came, String>) {
        let mut memory = self.memory();
        memory.findings.answers += 1;
        let verdict = self.origins.truth(self.number, |truth| match &came {
            Ok(came) => self.verdict(&mut memory, truth, asked, came),
            Err(why) => Err(why.clone()),
        });
        if let Err(why) = verdict {
            let thing = &self.model.things[asked.thing];
            let shown = came.map(|came| {
                let text: String = String::from_utf8_lossy(&came.body).chars().take(240).collect();
                format!("{} {:?} '{text}'", came.status, came.fields)
            });
            let shown = shown.unwrap_or_default();
            memory.findings.wrong.push(format!("{why}\n  asked {asked:?}\n  of {thing:?}\n  came {shown}"));
        }
    }

    fn verdict(&self, memory: &mut Memory, truth: &Truth, asked: &Asked, came: &Came) -> Result<(), String> {
        let text = String::from_utf8_lossy(&came.body);
        for other in Browser::ALL.into_iter().filter(|other| *other != asked.by) {
            if text.contains(&other.sid(self.number)) {
                return Err("FOREIGN: another user's name stands in it".into());
            }
        }
        let cookies = came.fields.get_all(header::SET_COOKIE).iter().filter_map(|value| value.to_str().ok());
        for cookie in cookies {
            let value = cookie.split(';').next().and_then(|pair| pair.split_once('=')?.1.parse::<u64>().ok());
            if value.and_then(|value| truth.cookies.get(&value)) != Some(&asked.user) {
                return Err(format!("FOREIGN: the cookie '{cookie}' was set for somebody else"));
            }
        }
        let thing = asked.thing;
        if asked.ask == Ask::Post {
            let version = truth.born[thing].len() - 1;
            memory.posted.insert(thing, version);
            memory.posted_by.insert((asked.by, thing), version);
            let right = came.status == StatusCode::OK && came.body == posted(thing, version);
            return if right { Ok(()) } else { Err("not what the origin says to a post".into()) };
        }
        let versions = self.versions(memory, truth, asked);
        let serial = serial_of(&came.body).unwrap_or(0);
        let body =
            |version: usize, serial| self.model.body(thing, version, &asked.user, &asked.fields, serial);
        let bodies = || versions.iter().map(|v| body(*v, serial));
        // The number of an answer need not stand in a part of it.
        let of_parts = || versions.iter().flat_map(|v| (0..=truth.serial).map(|serial| body(*v, serial)));
        let field = |name| came.fields.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let tagged = self.model.things[thing].tagged;
        // The origin gives parts of what has a tag; of the whole that is held of anything else, whoever holds it may (RFC 9110 §14.2).
        let parted = tagged || self.model.things[thing].reuse.lasts();
        let right = match (asked.ask, came.status) {
            (_, StatusCode::NOT_MODIFIED) => {
                let sent = asked.tag.as_deref().filter(|_| asked.ask == Ask::IfNoneMatch);
                tagged && bodies().any(|body| Some(tag(&body).as_str()) == sent)
            }
            (Ask::Head, StatusCode::OK) => {
                came.body.is_empty() && (!tagged || bodies().any(|body| tag(&body) == field(header::ETAG)))
            }
            (Ask::Range(bounds) | Ask::IfRange(bounds), StatusCode::PARTIAL_CONTENT) => {
                parted
                    && of_parts().any(|body| {
                        let Some(range) = bounds.of(body.len()) else { return false };
                        let told = content_range(&range, body.len());
                        // RFC 9110 §13.1.5: a part of nothing but what was seen before.
                        let is_seen = asked.tag.as_ref().is_none_or(|seen| *seen == tag(&body));
                        is_seen && came.body == body[range] && field(header::CONTENT_RANGE) == told
                    })
            }
            (Ask::Range(bounds) | Ask::IfRange(bounds), StatusCode::RANGE_NOT_SATISFIABLE) => {
                parted
                    && of_parts().any(|body| {
                        let is_seen = asked.tag.as_ref().is_none_or(|seen| *seen == tag(&body));
                        let told = format!("bytes */{}", body.len());
                        is_seen && bounds.of(body.len()).is_none() && field(header::CONTENT_RANGE) == told
                    })
            }
            (_, StatusCode::OK) => bodies().any(|body| {
                let tag = if tagged { tag(&body) } else { String::new() };
                came.body == body && field(header::ETAG) == tag
            }),
            (_, status) => return Err(format!("status {status}")),
        };
        if !right {
            return Err(format!("WRONG: not what the origin says in any of the versions {versions:?}"));
        }
        let once = !tagged && !self.model.things[thing].reuse.lasts();
        let new = asked.ask == Ask::Head || !once || memory.given.insert((thing, serial));
        if new { Ok(()) } else { Err("TWICE: an answer that may not be used again was".into()) }
    }

    /// The versions of the thing that may answer this request.
    fn versions(&self, memory: &Memory, truth: &Truth, asked: &Asked) -> Vec<usize> {
        let thing = asked.thing;
        let lasts = self.model.things[thing].reuse.lasts() && !asked.reload;
        // What lasts may be of any moment; all else is of this one, or of the load of the page that names it, for which it
        // may have been fetched ahead.
        let since = if lasts {
            0
        } else {
            let pages = self.model.pages_with(thing);
            let loads = pages.iter().filter_map(|page| memory.loads.get(&(asked.by, *page)));
            loads.copied().max().unwrap_or(truth.moment)
        };
        // RFC 9111 §4.4: what came before a post through the same cache is gone; for what is the user's own, before a post
        // by this user.
        let floor = if lasts { memory.posted.get(&thing) } else { memory.posted_by.get(&(asked.by, thing)) };
        let born = &truth.born[thing];
        let shown = |version: &usize| born.get(version + 1).is_none_or(|ended| *ended > since);
        (floor.copied().unwrap_or(0)..born.len()).filter(shown).collect()
    }

    fn memory(&self) -> std::sync::MutexGuard<'_, Memory> {
        self.memory.lock().expect("no holder of this lock panics")
    }
}
