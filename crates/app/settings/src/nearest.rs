//! Finds the setting that someone meant who wrote a name that does not exist.

use crate::error::one_line;

/// The known name with the least to change. A right name in the wrong table counts as one change.
///
/// Returns `written` itself only when nothing is known.
pub(crate) fn nearest<'a>(written: &'a str, known: impl Iterator<Item = &'a str>) -> &'a str {
    known.min_by_key(|candidate| distance(written, candidate)).unwrap_or(written)
}

fn distance(written: &str, known: &str) -> usize {
    let whole = strsim::damerau_levenshtein(written, known);
    let last = strsim::damerau_levenshtein(last(written), last(known));
    // Table names without their brackets, so that [ground] for [[ground]] is no distance at all.
    let bare = strsim::damerau_levenshtein(&written.replace("[]", ""), &known.replace("[]", ""));
    whole.min(last + 1).min(bare)
}

fn last(key: &str) -> &str {
    key.rsplit_once('.').map_or(key, |(_, last)| last)
}

/// How a name is said in an error line: `'link.rtt'`, or `'name' in [[ground]]`.
pub(crate) fn in_words(pattern: &str) -> String {
    match one_line(pattern).rsplit_once("[].") {
        Some((list, key)) => format!("'{key}' in [[{}]]", list.replace("[]", "")),
        None => format!("'{}'", one_line(pattern)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 5] = ["listen", "link.round_trip", "log.level", "ground[].name", "ground[].keys"];

    #[test]
    fn slips_find_the_setting_that_was_meant() {
        let meant = |written| nearest(written, KNOWN.into_iter());
        assert_eq!(meant("lisen"), "listen");
        assert_eq!(meant("round_trip"), "link.round_trip");
        assert_eq!(meant("link.roundtrip"), "link.round_trip");
        assert_eq!(meant("log.lvl"), "log.level");
        assert_eq!(meant("ground.keys"), "ground[].keys");
        assert_eq!(meant("ground[].nmae"), "ground[].name");
    }

    #[test]
    fn settings_of_a_list_are_said_as_they_are_written() {
        assert_eq!(in_words("ground[].name"), "'name' in [[ground]]");
        assert_eq!(in_words("link.round_trip"), "'link.round_trip'");
    }
}
