//! The reference: what may answer a request, by a plain reading of what the origin said and of DESIGN.md's "what never
//! breaks". It asks the origin's model what it would have said to exactly this request, in each version that may still be
//! shown, and compares bytes.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::{HeaderMap, StatusCode, header};

use super::origin::{OWN, Origins, Truth, date, posted};
use super::range::content_range;
use super::reuse::{Reuse, Wish};
use super::site::{Fields, Model, serial_of, tag};
use super::user::{Ask, Browser};

/// Ages and dates are told in whole seconds, and by each end anew: so much longer may an answer seem to last.
const TOLERANCE: Duration = Duration::from_secs(2);

/// What a user sent: all that an answer may depend on.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) by: Browser,
    pub(super) user: String,
    pub(super) thing: usize,
    pub(super) ask: Ask,
    pub(super) wish: Wish,
    /// When.
    pub(super) at: Instant,
    pub(super) fields: Fields,
    /// The tag sent with it as a condition, if any.
    pub(super) tag: Option<String>,
    /// The date likewise.
    pub(super) date: Option<String>,
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
    loads: HashMap<(Browser, usize), Begun>,
    /// The first version after the last post to each thing: by anyone, and by each user.
    posted: HashMap<usize, usize>,
    posted_by: HashMap<(Browser, usize), usize>,
    /// The numbers of answers that were given.
    given: HashSet<(usize, u64)>,
    /// Cookies that may be given once only, and were.
    cookies: HashSet<u64>,
}

/// When the load of a page began.
#[derive(Debug, Clone, Copy)]
struct Begun {
    moment: u64,
    at: Instant,
}

/// What may answer a request.
struct Allowed {
    /// These versions, and none before.
    versions: Vec<usize>,
    /// From when on the origin has to have said of the content that it is what it is; nothing where it does not matter.
    said: Option<Instant>,
    /// For a load that began then it may have been fetched ahead, and given for it alone.
    ahead: Option<Instant>,
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

    /// The origin begins to fail for a thing, or is mended.
    pub(super) fn fail_or_mend(&self, thing: usize) {
        self.origins.truth(self.number, |truth| truth.fail_or_mend(thing));
    }

    /// The next body of a thing breaks off at the origin.
    pub(super) fn break_off(&self, thing: usize) {
        self.origins.truth(self.number, |truth| truth.break_off(thing));
    }

    /// A user begins to load a page.
    pub(super) fn load_begins(&self, by: Browser, page: usize) {
        let moment = self.origins.truth(self.number, |truth| truth.moment);
        self.memory().loads.insert((by, page), Begun { moment, at: Instant::now() });
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
            // What breaks off at the origin breaks off here.
            Err(_) if self.may_break_off(&memory, truth, asked) => Ok(()),
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
        let thing = asked.thing;
        let about = &self.model.things[thing];
        self.cookies(memory, truth, asked, came)?;
        let own = came.fields.get(OWN).is_none_or(|value| value.as_bytes() == asked.user.as_bytes());
        if !own {
            return Err("FOREIGN: a field that is another user's own".into());
        }
        if asked.ask == Ask::Post {
            let version = truth.born[thing].len() - 1;
            memory.posted.insert(thing, version);
            memory.posted_by.insert((asked.by, thing), version);
            let right = came.status == StatusCode::OK && came.body == posted(thing, version);
            return if right { Ok(()) } else { Err("not what the origin says to a post".into()) };
        }
        // RFC 9111 §5.2.1.7.
        if came.status == StatusCode::GATEWAY_TIMEOUT && asked.wish == Wish::OnlyCached {
            return Ok(());
        }
        if came.status == StatusCode::SERVICE_UNAVAILABLE {
            let failed = truth.has_failed(thing, self.since(memory, truth, asked));
            return if failed { Ok(()) } else { Err("WRONG: the origin has not failed".into()) };
        }
        if came.status == StatusCode::BAD_GATEWAY {
            let broken = self.may_break_off(memory, truth, asked);
            return if broken { Ok(()) } else { Err("WRONG: nothing has broken off at the origin".into()) };
        }
        let allowed = self.allowed(memory, truth, asked);
        let serial = serial_of(&came.body).unwrap_or(0);
        let is_whole = came.status == StatusCode::OK && asked.ask != Ask::Head;
        let is_new = !is_whole || memory.given.insert((thing, serial));
        let in_time =
            |body: &[u8]| allowed.is_in_time(truth.said(thing, body), about.is_numbered() && !is_new);
        if !self.is_one_of(truth, asked, came, &allowed.versions, in_time)? {
            let versions = &allowed.versions;
            return Err(match self.is_one_of(truth, asked, came, versions, |_| true)? {
                true => format!(
                    "STALE: what the origin says, or said in one of the versions {versions:?}, too long ago"
                ),
                false => format!("WRONG: not what the origin says in any of the versions {versions:?}"),
            });
        }
        let lasts = about.reuse.answers_for(asked.wish).is_some();
        let once = about.is_numbered() && (!lasts || truth.unkept.contains(&serial));
        if !once || is_new { Ok(()) } else { Err("TWICE: an answer that may not be used again was".into()) }
    }

    /// Cookies are the user's for whom they were set.
    fn cookies(&self, memory: &mut Memory, truth: &Truth, asked: &Asked, came: &Came) -> Result<(), String> {
        let cookies = came.fields.get_all(header::SET_COOKIE).iter().filter_map(|value| value.to_str().ok());
        for cookie in cookies {
            let value = cookie.split(';').next().and_then(|pair| pair.split_once('=')?.1.parse::<u64>().ok());
            if value.and_then(|value| truth.cookies.get(&value)) != Some(&asked.user) {
                return Err(format!("FOREIGN: the cookie '{cookie}' was set for somebody else"));
            }
            let once = self.model.things[asked.thing].reuse == Reuse::WithoutCookie;
            if once && !value.is_some_and(|value| memory.cookies.insert(value)) {
                return Err(format!("TWICE: the cookie '{cookie}' may not be given again without asking"));
            }
        }
        Ok(())
    }

    /// Whether this is what the origin says to this request in one of these versions, in a content that `fits`.
    fn is_one_of(
        &self,
        truth: &Truth,
        asked: &Asked,
        came: &Came,
        versions: &[usize],
        fits: impl Fn(&[u8]) -> bool,
    ) -> Result<bool, String> {
        let thing = asked.thing;
        let about = &self.model.things[thing];
        let serial = serial_of(&came.body).unwrap_or(0);
        let body =
            |version: usize, serial| self.model.body(thing, version, &asked.user, &asked.fields, serial);
        let bodies = || versions.iter().map(|v| body(*v, serial)).filter(|body| fits(body));
        // The number of an answer need not stand in a part of it.
        let last = if about.is_numbered() { truth.serial } else { 0 };
        let of_parts = || {
            let each = versions.iter().flat_map(move |v| (0..=last).map(move |serial| (*v, serial)));
            each.map(|(v, serial)| body(v, serial)).filter(|body| fits(body))
        };
        let field = |name| came.fields.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let tagged = about.tagged;
        // The origin gives parts of what has a tag; of the whole that is held of anything else, whoever holds it may (RFC 9110 §14.2).
        let parted = tagged || about.reuse.lasts();
        Ok(match (asked.ask, came.status) {
            (Ask::IfModifiedSince, StatusCode::NOT_MODIFIED) => {
                let same = |version: usize| {
                    asked.date.is_some() && about.modified_s(version).map(date) == asked.date
                };
                // What has numbers is known by them alone: any may be the one that is held.
                let fits = |version: usize| about.is_numbered() || fits(&body(version, 0));
                versions.iter().any(|version| same(*version) && fits(*version))
            }
            (_, StatusCode::NOT_MODIFIED) => {
                let sent = asked.tag.as_deref().filter(|_| asked.ask == Ask::IfNoneMatch);
                tagged && bodies().any(|body| Some(tag(&body).as_str()) == sent)
            }
            (Ask::Head, StatusCode::OK) => {
                let told = |body: &[u8]| !tagged || tag(body) == field(header::ETAG);
                came.body.is_empty() && of_parts().any(|body| told(&body))
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
        })
    }

    /// Whether what answers this request may have broken off. What lasts may have been on its way, for somebody else or
    /// while it was asked about, before this request was sent.
    fn may_break_off(&self, memory: &Memory, truth: &Truth, asked: &Asked) -> bool {
        let lasts = self.model.things[asked.thing].reuse.answers_for(asked.wish).is_some() && !asked.reload;
        let underway = |at: Instant| truth.has_broken_since(asked.thing, at);
        truth.has_broken(asked.thing, self.since(memory, truth, asked))
            || (lasts && asked.at.checked_sub(TOLERANCE).is_none_or(underway))
    }

    /// What may answer this request.
    fn allowed(&self, memory: &Memory, truth: &Truth, asked: &Asked) -> Allowed {
        let (thing, reuse) = (asked.thing, self.model.things[asked.thing].reuse);
        // RFC 9111 §4.4: what came before a post through the same cache is gone; for what is the user's own, before a post
        // by this user.
        let by_anyone = memory.posted.get(&thing).copied().unwrap_or(0);
        let by_user = memory.posted_by.get(&(asked.by, thing)).copied().unwrap_or(0);
        let born = &truth.born[thing];
        let since = self.since(memory, truth, asked);
        let current = |floor: usize| {
            let shown = move |version: &usize| born.get(version + 1).is_none_or(|ended| *ended > since);
            (floor..born.len()).filter(shown).collect()
        };
        match reuse.answers_for(asked.wish).filter(|_| !asked.reload) {
            // All is of this moment, or of the load of the page that names it, for which it may have been fetched ahead.
            None => Allowed { versions: current(by_user), said: None, ahead: None },
            Some(_) if reuse.is_excused() && truth.has_failed(thing, since) => {
                Allowed { versions: (by_anyone..born.len()).collect(), said: None, ahead: None }
            }
            Some(lasts) => {
                let ahead = self.load(memory, asked).map(|begun| begun.at);
                let said = asked.at.checked_sub(lasts + TOLERANCE);
                Allowed { versions: (by_anyone..born.len()).collect(), said, ahead }
            }
        }
    }

    /// The load for which what this is asks may have been fetched ahead.
    fn load(&self, memory: &Memory, asked: &Asked) -> Option<Begun> {
        let pages = self.model.pages_with(asked.thing);
        let loads = pages.iter().filter_map(|page| memory.loads.get(&(asked.by, *page)));
        loads.copied().max_by_key(|begun| begun.at)
    }

    /// The first moment of which an answer may be that is asked of the origin.
    fn since(&self, memory: &Memory, truth: &Truth, asked: &Asked) -> u64 {
        self.load(memory, asked).map_or(truth.moment, |begun| begun.moment)
    }

    fn memory(&self) -> std::sync::MutexGuard<'_, Memory> {
        self.memory.lock().expect("no holder of this lock panics")
    }
}

impl Allowed {
    /// Whether a content may be given that was last said to be what it is at this time; `again` if it was given before.
    fn is_in_time(&self, said: Option<Instant>, again: bool) -> bool {
        let Some(since) = self.said else { return true };
        said.is_some_and(|said| said >= since || (!again && self.ahead.is_some_and(|begun| said >= begun)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_over_may_be_given_once_for_the_load_that_it_was_fetched_for() {
        let begun = Instant::now();
        let at = |seconds| begun + Duration::from_secs(seconds);
        let allowed = Allowed { versions: vec![0], said: Some(at(10)), ahead: Some(at(5)) };
        assert!(allowed.is_in_time(Some(at(10)), true), "it lasts");
        assert!(!allowed.is_in_time(Some(at(9)), true) && allowed.is_in_time(Some(at(9)), false));
        assert!(!allowed.is_in_time(Some(at(4)), false) && !allowed.is_in_time(None, false));
        assert!(Allowed { said: None, ..allowed }.is_in_time(None, true), "time does not matter");
    }
}
