//! What is kept of models, as a text: JSON with a version, small enough to read by eye. In that of everyone's is nothing that a
//! single user has shown, or two; users' own are a text of their own.

use serde::{Deserialize, Serialize};
use url::Url;

use crate::history::History;
use crate::model::{LONGEST_URL, Model, Resource, STEADY};
use crate::models::{LONGEST_PAGE, Limits, Models, Of, Whose};
use crate::needs::{Needs, SavedNeeds};
use crate::pattern::plain;
use crate::visit::{Asked, Policies, User, Visit};

/// Of this format.
const VERSION: u64 = 2;

/// Why a text cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SavedError {
    /// It is of another version of the program.
    #[error("it is of version {0}, and this program reads version {VERSION}")]
    Version(u64),
    /// It is no such text at all.
    #[error("it is damaged ({0})")]
    Damaged(String),
}

impl From<serde_json::Error> for SavedError {
    fn from(error: serde_json::Error) -> Self {
        SavedError::Damaged(error.to_string())
    }
}

/// Read first: in another version everything else may mean something else.
#[derive(Deserialize)]
struct Versioned {
    version: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    version: u64,
    models: Vec<SavedModel>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedModel {
    /// Whose; everyone's is nobody's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user: Option<SavedUser>,
    page: String,
    template: bool,
    visits: u32,
    at: u64,
    used_percent: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    referrer_policy: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    content_policies: Vec<String>,
    resources: Vec<SavedResource>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedUser {
    remote: String,
    epoch: u64,
    number: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedResource {
    url: String,
    needs: SavedNeeds,
    history: History,
    at: u64,
    delay_ms: u32,
    #[serde(default = "steady", skip_serializing_if = "is_steady")]
    steady: u8,
}

fn steady() -> u8 {
    STEADY
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_steady(steady: &u8) -> bool {
    *steady == STEADY
}

impl Models {
    /// What may be written down of everyone's.
    pub fn to_text(&self) -> String {
        self.text_of(|whose| *whose == Whose::All)
    }

    /// What users' own models are.
    pub fn own_to_text(&self) -> String {
        self.text_of(|whose| *whose != Whose::All)
    }

    fn text_of(&self, is_meant: impl Fn(&Whose) -> bool) -> String {
        // The one used last at the front: where a reader has less room, that is what it takes.
        let mut all: Vec<_> = self.kept.iter().filter(|((whose, _), _)| is_meant(whose)).collect();
        all.sort_by_key(|(_, kept)| std::cmp::Reverse(kept.used));
        let models =
            all.into_iter().filter_map(|((whose, of), kept)| saved(whose, of, &kept.model)).collect();
        // Strings and numbers only: nothing in it can fail to be JSON.
        serde_json::to_string_pretty(&Saved { version: VERSION, models }).unwrap_or_default()
    }

    /// What [`Models::to_text`] wrote, as far as `limits` allow.
    ///
    /// # Errors
    /// The text is of another version, or damaged.
    pub fn from_text(text: &str, limits: Limits) -> Result<Models, SavedError> {
        let mut models = Models::new(limits);
        models.take(read(text, false)?);
        Ok(models)
    }

    /// Adds what [`Models::own_to_text`] wrote, as far as there is room.
    ///
    /// # Errors
    /// The text is of another version, or damaged: nothing of it is added.
    pub fn add_own(&mut self, text: &str) -> Result<(), SavedError> {
        self.take(read(text, true)?);
        Ok(())
    }

    fn take(&mut self, read: Vec<(Whose, Of, Model)>) {
        let all: Vec<_> = read.into_iter().rev().zip(1..).collect();
        for ((whose, of, model), used) in all.into_iter().rev() {
            self.restore(whose, of, model, used);
        }
    }
}

/// The models of a text, which are all users' `own` or all everyone's.
fn read(text: &str, own: bool) -> Result<Vec<(Whose, Of, Model)>, SavedError> {
    let Versioned { version } = serde_json::from_str(text)?;
    if version != VERSION {
        return Err(SavedError::Version(version));
    }
    let saved: Saved = serde_json::from_str(text)?;
    let one = |model: SavedModel| {
        let page = model.page.clone();
        let read = model.read().filter(|(whose, ..)| own != (*whose == Whose::All));
        read.ok_or_else(|| SavedError::Damaged(format!("the model of {page:?}")))
    };
    saved.models.into_iter().map(one).collect()
}

/// `None` where nothing of it may be written down.
fn saved(whose: &Whose, of: &Of, model: &Model) -> Option<SavedModel> {
    let shown = model.resources.iter().filter(|resource| resource.shown_by.is_none());
    let resources: Vec<SavedResource> = shown
        .map(|resource| SavedResource {
            url: resource.url.as_str().to_owned(),
            needs: SavedNeeds::from(&resource.needs),
            history: resource.history,
            at: resource.at,
            delay_ms: resource.delay_ms,
            steady: resource.steady,
        })
        .collect();
    let user = match whose {
        Whose::All => None,
        Whose::Own(User { remote, epoch, number }) => {
            Some(SavedUser { remote: remote.to_string(), epoch: *epoch, number: *number })
        }
    };
    (!resources.is_empty()).then(|| SavedModel {
        user,
        page: of.text().to_owned(),
        template: matches!(of, Of::Template(_)),
        visits: model.visits,
        at: model.at,
        used_percent: model.trust,
        referrer_policy: model.policies.referrer.clone(),
        content_policies: model.policies.content.clone(),
        resources,
    })
}

impl SavedModel {
    /// `None` for what nobody wrote.
    fn read(self) -> Option<(Whose, Of, Model)> {
        let url = fetchable(&self.page, LONGEST_PAGE)?;
        let of = match self.template {
            true => Of::Template(self.page),
            false if plain(&url) == self.page => Of::Page(self.page),
            false => return None,
        };
        if self.used_percent > 100 {
            return None;
        }
        let whose = match self.user {
            None => Whose::All,
            Some(SavedUser { remote, epoch, number }) => {
                Whose::Own(User { remote: remote.into(), epoch, number })
            }
        };
        let read = |resource: SavedResource| resource.read(&whose);
        let resources = self.resources.into_iter().map(read).collect::<Option<Vec<_>>>()?;
        let policies = Policies { referrer: self.referrer_policy, content: self.content_policies };
        // What is kept for all, and what is too long, was never written.
        let policies = Some(&policies).filter(|own| own.kept(whose == Whose::All) == **own)?.clone();
        let (visits, at, trust) = (self.visits, self.at, self.used_percent);
        Some((whose, of, Model { visits, at, trust, policies, resources }))
    }
}

impl SavedResource {
    fn read(self, whose: &Whose) -> Option<Resource> {
        let url = fetchable(&self.url, LONGEST_URL)?;
        let may = |needs: &Needs| needs.may_be_learned() && (*whose != Whose::All || needs.may_be_shared());
        let needs = self.needs.read().filter(may)?;
        if url.as_str() != self.url || !self.history.is_valid() || self.steady > STEADY {
            return None;
        }
        let (history, at, delay_ms, steady) = (self.history, self.at, self.delay_ms, self.steady);
        Some(Resource { url, needs, history, at, delay_ms, shown_by: None, steady })
    }
}

fn fetchable(text: &str, longest: usize) -> Option<Url> {
    let url = Url::parse(text).ok().filter(|_| text.len() <= longest)?;
    matches!(url.scheme(), "http" | "https").then_some(url)
}

/// Entry point of the fuzz target: bytes as a file of models, which is refused in words or read as it was meant; and as the
/// URLs of visits, which are learned within the bounds.
#[doc(hidden)]
pub fn fuzz(data: &[u8]) {
    let limits = Limits { bytes: 64 * 1024 };
    let text = String::from_utf8_lossy(data);
    if let Ok(models) = Models::from_text(&text, limits) {
        let again = models.to_text();
        let read = Models::from_text(&again, limits).map(|models| models.to_text());
        assert_eq!(read.ok(), Some(again), "what is written is read back");
    }
    let mut models = Models::new(limits);
    if models.add_own(&text).is_ok() {
        let again = models.own_to_text();
        let mut read = Models::new(limits);
        assert!(read.add_own(&again).is_ok() && read.own_to_text() == again, "what is written is read back");
    }
    let mut lines = text.lines().filter_map(|line| Url::parse(line).ok());
    let mut now = 0;
    while let Some(page) = lines.next() {
        let number = now % 4;
        let mut visit = Visit::new(User { remote: "ship".into(), epoch: 1, number }, page.clone());
        for (url, needs) in lines.by_ref().take(8).zip(crate::needs::kinds()) {
            let delay = std::time::Duration::from_millis(now);
            let (foreseen, unkept) = (number == 1, number == 2);
            visit.asked.push(Asked { url, needs, delay, anyones: true, foreseen, unkept });
        }
        models.learn(&visit, now);
        assert!(models.bytes() <= limits.bytes, "{}", models.bytes());
        models.foresee(&visit.user, &page, now);
        now += 1;
    }
}
