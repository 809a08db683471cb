//! What shapes the request for a resource and its rank, as it was seen; in words where it is written down.

use farhop_page::{Destination, Mode, ReferrerPolicy};
use serde::{Deserialize, Serialize};
use url::Url;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needs {
    /// What it is used as.
    pub destination: Destination,
    /// CORS mode and credentials.
    pub mode: Mode,
    /// The script or stylesheet that asks for it, by its URL; `None`: the document.
    pub initiator: Option<Url>,
    /// What decides how much of the page is told to it, where the page's own policy does not.
    pub referrer_policy: Option<ReferrerPolicy>,
    /// Whether the request told its origin, where that was seen and not foreseen by rule.
    pub origin: Option<bool>,
    /// Fields that a script has written itself, by their names in lower case.
    pub said: Vec<(String, String)>,
    /// RFC 9218, 0 to 7, where it was told.
    pub urgency: Option<u8>,
}

impl Needs {
    /// Of what the document asks for, with nothing special about it.
    pub fn new(destination: Destination, mode: Mode) -> Self {
        let (initiator, referrer_policy, origin, urgency) = (None, None, None, None);
        Needs { destination, mode, initiator, referrer_policy, origin, said: Vec::new(), urgency }
    }

    /// Whether it may be learned for everyone (DESIGN.md, "No user learns of another"): what only gives what it is.
    pub(crate) fn may_be_shared(&self) -> bool {
        let plain = matches!(
            self.destination,
            Destination::Script | Destination::Style | Destination::Image | Destination::Font
        );
        plain && self.said.is_empty()
    }

    /// Whether it may be learned at all: documents in frames bring pages of their own.
    pub(crate) fn may_be_learned(&self) -> bool {
        !matches!(self.destination, Destination::Frame | Destination::Object | Destination::Embed)
    }

    /// Bytes that it takes besides its own size, about.
    pub(crate) fn size(&self) -> usize {
        let initiator = self.initiator.as_ref().map_or(0, |url| url.as_str().len());
        let said: usize = self.said.iter().map(|(name, value)| name.len() + value.len()).sum();
        initiator + said + self.said.len() * size_of::<(String, String)>()
    }
}

/// [`Needs`] as they stand in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SavedNeeds {
    destination: String,
    mode: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    initiator: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    referrer_policy: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    urgency: Option<u8>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    said: Vec<(String, String)>,
}

impl From<&Needs> for SavedNeeds {
    fn from(needs: &Needs) -> Self {
        SavedNeeds {
            destination: destination_word(needs.destination).to_owned(),
            mode: mode_word(needs.mode).to_owned(),
            initiator: needs.initiator.as_ref().map(|url| url.as_str().to_owned()),
            referrer_policy: needs.referrer_policy.map(|policy| policy.as_str().to_owned()),
            origin: needs.origin,
            urgency: needs.urgency,
            said: needs.said.clone(),
        }
    }
}

impl SavedNeeds {
    /// `None` for what nobody wrote.
    pub(crate) fn read(&self) -> Option<Needs> {
        let initiator = match &self.initiator {
            Some(text) => Some(Url::parse(text).ok()?),
            None => None,
        };
        let referrer_policy = match &self.referrer_policy {
            Some(token) => Some(ReferrerPolicy::from_token(token).filter(|policy| policy.as_str() == token)?),
            None => None,
        };
        let destination = DESTINATIONS.iter().find(|(_, word)| *word == self.destination)?.0;
        let mode = MODES.iter().find(|(_, word)| *word == self.mode)?.0;
        let is_lower = |name: &str| !name.is_empty() && !name.contains(|c: char| c.is_ascii_uppercase());
        if self.urgency.is_some_and(|level| level > 7) || !self.said.iter().all(|(name, _)| is_lower(name)) {
            return None;
        }
        let (origin, urgency, said) = (self.origin, self.urgency, self.said.clone());
        Some(Needs { destination, mode, initiator, referrer_policy, origin, said, urgency })
    }
}

const DESTINATIONS: [(Destination, &str); 15] = [
    (Destination::Script, "script"),
    (Destination::Style, "style"),
    (Destination::Image, "image"),
    (Destination::Font, "font"),
    (Destination::Icon, "icon"),
    (Destination::Manifest, "manifest"),
    (Destination::Json, "json"),
    (Destination::Fetch, "fetch"),
    (Destination::Track, "track"),
    (Destination::Worker, "worker"),
    (Destination::SharedWorker, "shared worker"),
    (Destination::Frame, "frame"),
    (Destination::Object, "object"),
    (Destination::Embed, "embed"),
    (Destination::Prefetch, "prefetch"),
];

const MODES: [(Mode, &str); 5] = [
    (Mode::NoCors, "no-cors"),
    (Mode::Cors, "cors"),
    (Mode::CorsWithCredentials, "cors with credentials"),
    (Mode::CorsAnonymous, "cors without credentials"),
    (Mode::SameOrigin, "same-origin"),
];

/// One of each kind, for the fuzz target.
pub(crate) fn kinds() -> impl Iterator<Item = Needs> {
    DESTINATIONS
        .iter()
        .zip(MODES.iter().cycle())
        .map(|((destination, _), (mode, _))| Needs::new(*destination, *mode))
}

/// The destination in a word.
pub(crate) fn destination_word(destination: Destination) -> &'static str {
    DESTINATIONS.iter().find(|(own, _)| *own == destination).map_or("fetch", |(_, word)| word)
}

/// The mode in words.
pub(crate) fn mode_word(mode: Mode) -> &'static str {
    MODES.iter().find(|(own, _)| *own == mode).map_or("no-cors", |(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for (destination, _) in DESTINATIONS {
            for (mode, _) in MODES {
                let needs = Needs {
                    initiator: Url::parse("http://a.test/app.js").ok(),
                    referrer_policy: Some(ReferrerPolicy::NoReferrer),
                    origin: Some(true),
                    urgency: Some(3),
                    said: vec![("x-requested-with".into(), "XMLHttpRequest".into())],
                    ..Needs::new(destination, mode)
                };
                assert_eq!(SavedNeeds::from(&needs).read(), Some(needs));
            }
        }
        let odd =
            SavedNeeds { urgency: Some(8), ..SavedNeeds::from(&Needs::new(Destination::Font, Mode::Cors)) };
        assert_eq!(odd.read(), None);
    }
}
