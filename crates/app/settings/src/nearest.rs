//! Finds the setting that someone meant who wrote a name that does not exist.

use crate::error::one_line;

/// The known name with the least to change, where that is little: whoever wrote something else meant none of them. A right name in the
/// wrong table counts as one change.
pub(crate) fn nearest<'a>(written: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = known.filter_map(|candidate| Some((distance(written, candidate)?, candidate)));
    near.min_by_key(|(distance, _)| *distance).map(|(_, candidate)| candidate)
}

/// What there is to change, where it is no more than a third of the name.
fn distance(written: &str, known: &str) -> Option<usize> {
    // Table names without their brackets, so that [ground] for [[ground]] is no distance at all.
    let whole = slips(&written.replace("[]", ""), &known.replace("[]", ""));
    let last = slips(last(written), last(known)).map(|slips| slips + 1);
    [whole, last].into_iter().flatten().min()
}

fn slips(written: &str, known: &str) -> Option<usize> {
    let slips = strsim::damerau_levenshtein(written, known);
    (slips <= (written.chars().count() / 3).max(1)).then_some(slips)
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
        let meant = |written| nearest(written, KNOWN.into_iter()).unwrap();
        assert_eq!(meant("lisen"), "listen");
        assert_eq!(meant("round_trip"), "link.round_trip");
        assert_eq!(meant("link.roundtrip"), "link.round_trip");
        assert_eq!(meant("log.lvl"), "log.level");
        assert_eq!(meant("key"), "ground[].keys");
        assert_eq!(meant("ground.keys"), "ground[].keys");
        assert_eq!(meant("ground[].nmae"), "ground[].name");
    }

    #[test]
    fn what_is_near_to_nothing_was_no_slip() {
        for written in ["foo", "x", "ground.foo", "compression", "link.bandwidth"] {
            assert_eq!(nearest(written, KNOWN.into_iter()), None, "{written}");
        }
        assert_eq!(nearest("foo", ["sip.from"].into_iter()), None);
    }

    #[test]
    fn settings_of_a_list_are_said_as_they_are_written() {
        assert_eq!(in_words("ground[].name"), "'name' in [[ground]]");
        assert_eq!(in_words("link.round_trip"), "'link.round_trip'");
    }
}
