//! What is kept, as a text: JSON with a version, small enough to read by eye.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::decide::Kept;
use crate::host::Host;
use crate::learned::{Lesson, Place, Record, Untrusting};
use crate::moment::Moment;
use crate::pattern::HostPattern;
use crate::switches::Switches;

const VERSION: u64 = 1;

/// Why a text was not taken.
#[derive(Debug, thiserror::Error)]
pub enum SavedError {
    /// It is of another version of the program.
    #[error("it is of version {0}, and this program reads version {VERSION}")]
    Version(u64),
    /// It is not what was written.
    #[error("it is damaged ({0})")]
    Damaged(#[from] serde_json::Error),
}

/// Read first: in another version everything else may mean something else.
#[derive(Deserialize)]
struct Versioned {
    version: u64,
}

#[derive(Serialize, Deserialize)]
struct Saved {
    version: u64,
    switched_off: Vec<SwitchedOff>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    agreed: Vec<Box<str>>,
    learned: Vec<SavedRecord>,
    untrusting: Vec<SavedUntrusting>,
}

#[derive(Serialize, Deserialize)]
struct SwitchedOff {
    user: Box<str>,
    /// Everything, where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    site: Option<Host>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<Moment>,
}

#[derive(Serialize, Deserialize)]
struct SavedRecord {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client: Option<IpAddr>,
    host: Host,
    port: u16,
    lesson: Lesson,
    times: u32,
    until: Moment,
}

#[derive(Serialize, Deserialize)]
struct SavedUntrusting {
    client: IpAddr,
    hosts: BTreeSet<Host>,
    times: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<Moment>,
}

impl Kept {
    /// Everything as a text.
    pub fn to_text(&self) -> String {
        let users = self.switches.users.iter();
        let switched_off = users.flat_map(|(user, choices)| {
            let everything = choices.everything.map(|until| (None, until));
            let sites = choices.sites.iter().map(|(site, until)| (Some(site.clone()), *until));
            let switched = everything.into_iter().chain(sites);
            switched.map(|(site, until)| SwitchedOff { user: user.clone(), site, until })
        });
        let agreed = self.switches.users.iter().filter(|(_, choices)| choices.has_agreed);
        let learned = self.learned.records.iter().map(|(place, record)| SavedRecord {
            client: place.client,
            host: place.host.clone(),
            port: place.port,
            lesson: record.lesson,
            times: record.times,
            until: record.until,
        });
        let untrusting = self.learned.untrusting.iter().map(|(client, it)| SavedUntrusting {
            client: *client,
            hosts: it.hosts.clone(),
            times: it.times,
            until: it.until,
        });
        let saved = Saved {
            version: VERSION,
            switched_off: switched_off.collect(),
            agreed: agreed.map(|(user, _)| user.clone()).collect(),
            learned: learned.collect(),
            untrusting: untrusting.collect(),
        };
        let mut text = serde_json::to_string_pretty(&saved).expect("all keys are texts");
        text.push('\n');
        text
    }

    /// Reads what [`Kept::to_text`] wrote.
    ///
    /// # Errors
    /// The text is of another version, or damaged.
    pub fn from_text(text: &str) -> Result<Kept, SavedError> {
        let Versioned { version } = serde_json::from_str(text)?;
        if version != VERSION {
            return Err(SavedError::Version(version));
        }
        let saved: Saved = serde_json::from_str(text)?;
        let mut kept = Kept::default();
        let Switches { users } = &mut kept.switches;
        for SwitchedOff { user, site, until } in saved.switched_off {
            let choices = users.entry(user).or_default();
            match site {
                None => choices.everything = Some(until),
                Some(site) => drop(choices.sites.insert(site, until)),
            }
        }
        for user in saved.agreed {
            users.entry(user).or_default().has_agreed = true;
        }
        kept.learned.records.extend(saved.learned.into_iter().map(|it| {
            let place = Place { client: it.client, host: it.host, port: it.port };
            (place, Record { lesson: it.lesson, times: it.times, until: it.until })
        }));
        kept.learned.untrusting.extend(
            saved
                .untrusting
                .into_iter()
                .map(|it| (it.client, Untrusting { hosts: it.hosts, times: it.times, until: it.until })),
        );
        Ok(kept)
    }
}

/// Entry point of the fuzz target: hosts and patterns come from clients and operators, what was kept from disk. Each is
/// refused, or reads back as it is shown.
#[doc(hidden)]
pub fn fuzz(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(host) = text.parse::<Host>() {
        assert_eq!(host.to_string().parse(), Ok(host));
    }
    if let Ok(pattern) = text.parse::<HostPattern>() {
        assert_eq!(pattern.to_string().parse(), Ok(pattern));
    }
    if let Ok(kept) = Kept::from_text(&text) {
        assert_eq!(Kept::from_text(&kept.to_text()).ok(), Some(kept));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learned::Terms;
    use crate::switches::Scope;
    use std::time::Duration;

    const NOW: Moment = Moment(1_800_000_000);
    const TERMS: Terms = Terms { first: Duration::from_secs(60), longest: Duration::from_secs(600) };

    fn kept() -> Kept {
        let mut kept = Kept::default();
        let host = |text: &str| text.parse::<Host>().unwrap();
        kept.switches.switch_off("anna", Scope::Everything, Some(Moment(NOW.0 + 5)), NOW).unwrap();
        kept.switches.agree("carla");
        kept.switches.switch_off("ben \"b\"", Scope::site(&host("bücher.example")), None, NOW).unwrap();
        let client = IpAddr::from([10, 0, 0, 1]);
        kept.learned.learn(Lesson::Distrusted, (client, &host("a.example"), 443), NOW, &TERMS);
        kept.learned.learn(Lesson::NotHttp, (client, &host("2001:db8::1"), 8443), NOW, &TERMS);
        kept
    }

    #[test]
    fn what_is_kept_reads_back_as_it_was() {
        assert_eq!(Kept::from_text(&kept().to_text()).unwrap(), kept());
        assert_eq!(Kept::from_text(&Kept::default().to_text()).unwrap(), Kept::default());
    }

    /// What is on disks today must be readable tomorrow.
    #[test]
    fn version_1_is_this() {
        let text = r#"{
            "version": 1,
            "switched_off": [
                {"user": "anna", "until": 1800000005},
                {"user": "ben \"b\"", "site": "xn--bcher-kva.example"}
            ],
            "agreed": ["carla"],
            "learned": [
                {"host": "2001:db8::1", "port": 8443, "lesson": "not_http", "times": 1, "until": 1800000060},
                {"client": "10.0.0.1", "host": "a.example", "port": 443, "lesson": "distrusted", "times": 1, "until": 1800000060}
            ],
            "untrusting": [{"client": "10.0.0.1", "hosts": ["a.example"], "times": 0}]
        }"#;
        assert_eq!(Kept::from_text(text).unwrap(), kept());
    }

    #[test]
    fn another_version_is_told_from_damage_and_neither_is_guessed_at() {
        let other = kept().to_text().replace("\"version\": 1", "\"version\": 7");
        assert!(matches!(Kept::from_text(&other), Err(SavedError::Version(7))));
        assert!(matches!(Kept::from_text("{\"version\": 7, \"new\": []}"), Err(SavedError::Version(7))));
        let half = &kept().to_text()[..100];
        let badly_named = kept().to_text().replace("a.example", "a..example");
        for text in ["", "{}", "[]", half, &badly_named] {
            assert!(matches!(Kept::from_text(text), Err(SavedError::Damaged(_))), "{text}");
        }
    }
}
