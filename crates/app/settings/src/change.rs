//! What a reload would change, and whether it can do so without a restart.

use std::collections::BTreeMap;

use crate::raw::Raw;
use crate::section::Section;

/// One setting whose value differs between two readings of the settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Full name, `link.round_trip` or `ground.0.keys`.
    pub key: String,
    /// The value in force; `None` when its list element is new.
    pub old: Option<Raw>,
    /// The value asked for; `None` when its list element is gone.
    pub new: Option<Raw>,
    /// Whether SIGHUP puts it into force. Anything else waits for a restart.
    pub live: bool,
}

/// What new settings change, by name: of what SIGHUP puts into force, from those that `were` so last; of the rest, from those with
/// which the end `started` and goes on.
pub fn changes<S: Section>(started: &S, were: &S, new: &S) -> Vec<Change> {
    let waiting = differences(started, new).into_iter().filter(|change| !change.live);
    let mut changes: Vec<_> =
        differences(were, new).into_iter().filter(|change| change.live).chain(waiting).collect();
    changes.sort_by(|one, other| one.key.cmp(&other.key));
    changes
}

fn differences<S: Section>(old: &S, new: &S) -> Vec<Change> {
    let table = |section: &S| {
        let mut shown = Vec::new();
        section.show("", &mut shown);
        shown.into_iter().map(|(key, raw, live)| (key, (raw, live))).collect::<BTreeMap<_, _>>()
    };
    let (old, new) = (table(old), table(new));
    let keys: std::collections::BTreeSet<_> = old.keys().chain(new.keys()).collect();
    keys.into_iter()
        .filter(|key| old.get(*key) != new.get(*key))
        .map(|key| Change {
            key: key.clone(),
            old: old.get(key).map(|(raw, _)| raw.clone()),
            new: new.get(key).map(|(raw, _)| raw.clone()),
            live: [&old, &new].iter().filter_map(|side| side.get(key)).all(|(_, live)| *live),
        })
        .collect()
}
