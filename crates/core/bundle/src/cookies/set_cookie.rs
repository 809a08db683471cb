//! `Set-Cookie` as browsers read it (RFC 6265bis §5.6), and their odd dates (§5.1.1). Parsing only; whether the cookie is
//! taken is `mirror.rs`'s business.

use super::text_of;
use std::time::{Duration, SystemTime};

/// RFC 6265bis §5.6, step 5: longer names and values together are refused, longer attribute values ignored.
const MAX_PAIR: usize = 4096;
const MAX_ATTRIBUTE: usize = 1024;
/// RFC 6265bis §5.5: no cookie lives longer.
const MAX_AGE: Duration = Duration::from_secs(400 * 24 * 3600);

/// The `SameSite` attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum SameSite {
    Strict,
    Lax,
    None,
    /// Absent or unknown: browsers differ.
    #[default]
    Unset,
}

/// One `Set-Cookie` field.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct SetCookie {
    /// `name=value`, or the value alone where there is no name.
    pub(super) name: String,
    pub(super) value: String,
    /// Without a leading dot, in lower case.
    pub(super) domain: Option<String>,
    /// `None` where the default path of the request applies.
    pub(super) path: Option<String>,
    /// `None` for a cookie of the session; in the past for one to be deleted.
    pub(super) expires: Option<SystemTime>,
    pub(super) secure: bool,
    pub(super) http_only: bool,
    pub(super) same_site: SameSite,
    pub(super) partitioned: bool,
}

impl SetCookie {
    /// Reads one field; `None` for what browsers ignore.
    pub(super) fn parse(field: &[u8], now: SystemTime) -> Option<SetCookie> {
        let text = text_of(field);
        if field.iter().copied().any(|byte| (byte < 0x20 && byte != b'\t') || byte == 0x7f) {
            return None;
        }
        let mut parts = text.split(';');
        let (name, value) = pair(parts.next()?);
        // Each byte is one character.
        if name.chars().count() + value.chars().count() > MAX_PAIR || (name.is_empty() && value.is_empty()) {
            return None;
        }
        let mut cookie = SetCookie { name: name.into(), value: value.into(), ..SetCookie::default() };
        let (mut max_age, mut date) = (None, None);
        for attribute in parts {
            let (name, value) = attribute.split_once('=').unwrap_or((attribute, ""));
            let value = value.trim_matches([' ', '\t']);
            if value.chars().count() > MAX_ATTRIBUTE {
                continue;
            }
            match name.trim_matches([' ', '\t']).to_ascii_lowercase().as_str() {
                "expires" => date = cookie_date(value).or(date),
                "max-age" => max_age = seconds(value).or(max_age),
                "domain" => cookie.domain = Some(value.trim_start_matches('.').to_ascii_lowercase()),
                // The last one counts, and one without a slash takes the default back.
                "path" => cookie.path = value.starts_with('/').then(|| value.to_owned()),
                "secure" => cookie.secure = true,
                "httponly" => cookie.http_only = true,
                "partitioned" => cookie.partitioned = true,
                "samesite" => {
                    cookie.same_site = match value.to_ascii_lowercase().as_str() {
                        "strict" => SameSite::Strict,
                        "lax" => SameSite::Lax,
                        "none" => SameSite::None,
                        _ => SameSite::Unset,
                    }
                }
                _ => {}
            }
        }
        // Max-Age precedes Expires (§5.7).
        let latest = now.checked_add(MAX_AGE)?;
        cookie.expires = match max_age {
            Some(None) => Some(SystemTime::UNIX_EPOCH),
            Some(Some(age)) => Some(now.checked_add(age).map_or(latest, |at| at.min(latest))),
            None => date.map(|at| at.min(latest)),
        };
        Some(cookie)
    }
}

/// `name=value` of a `Set-Cookie` or `Cookie` field; without `=` all of it is the value.
pub(super) fn pair(text: &str) -> (&str, &str) {
    let (name, value) = text.split_once('=').unwrap_or(("", text));
    (name.trim_matches([' ', '\t']), value.trim_matches([' ', '\t']))
}

/// `Max-Age`: `None` if it is no number, `Some(None)` for zero and less.
fn seconds(value: &str) -> Option<Option<Duration>> {
    let digits = value.strip_prefix('-').unwrap_or(value);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let count = digits.parse().unwrap_or(u64::MAX);
    Some((count > 0 && digits.len() == value.len()).then(|| Duration::from_secs(count)))
}

/// RFC 6265bis §5.1.1: tokens in any order. Years before 1970 give the epoch, which is past as well.
fn cookie_date(text: &str) -> Option<SystemTime> {
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);
    let is_delimiter = |c: char| !(c.is_ascii_alphanumeric() || c == ':' || !c.is_ascii());
    for token in text.split(is_delimiter).filter(|token| !token.is_empty()) {
        if time.is_none()
            && let Some(found) = time_of_day(token)
        {
            time = Some(found);
        } else if day.is_none()
            && let Some(found) = number(token, 1..=2)
        {
            day = Some(found);
        } else if month.is_none()
            && let Some(found) = month_of(token)
        {
            month = Some(found);
        } else if year.is_none()
            && let Some(found) = number(token, 2..=4)
        {
            year = Some(found);
        }
    }
    let (time, day, month) = (time?, day?, month?);
    let year = match year? {
        year @ 70..=99 => year + 1900,
        year @ 0..=69 => year + 2000,
        year => year,
    };
    if !(1..=31).contains(&day) || year < 1601 {
        return None;
    }
    let days = days_since_epoch(year, month, day);
    let seconds = u64::try_from(days).ok().map_or(0, |days| days * 86_400 + time);
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

/// Seconds since midnight of `h:m:s`, where anything may follow that is no digit.
fn time_of_day(token: &str) -> Option<u64> {
    let mut fields = token.splitn(3, ':');
    let hour = number(fields.next()?, 1..=2)?;
    let minute = number(fields.next()?, 1..=2)?;
    let last = fields.next()?;
    let end = last.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(last.len());
    let second = number(&last[..end], 1..=2)?;
    (hour < 24 && minute < 60 && second < 60).then_some((hour * 3600 + minute * 60 + second) as u64)
}

fn number(token: &str, digits: std::ops::RangeInclusive<usize>) -> Option<i64> {
    let end = token.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(token.len());
    if !digits.contains(&end) || token[end..].starts_with(':') {
        return None;
    }
    token[..end].parse().ok()
}

fn month_of(token: &str) -> Option<i64> {
    const MONTHS: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let start = token.get(..3)?.to_ascii_lowercase();
    MONTHS.iter().position(|month| *month == start).map(|index| index as i64 + 1)
}

/// Days from 1 January 1970 in the Gregorian calendar, with years that begin in March so that the leap day is last.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let before = year * 365 + year / 4 - year / 100 + year / 400;
    before + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: SystemTime = SystemTime::UNIX_EPOCH;

    fn at(seconds: u64) -> Option<SystemTime> {
        Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
    }

    fn parse(field: &str) -> SetCookie {
        SetCookie::parse(field.as_bytes(), NOW).unwrap()
    }

    #[test]
    fn attributes_are_read_in_any_case_and_the_last_counts() {
        let cookie = parse(
            " a = b=c ; PATH=/x; path=/y; Domain=.Site.Test; secure;HttpOnly; SameSite=lax; Partitioned",
        );
        let expected = SetCookie {
            name: "a".into(),
            value: "b=c".into(),
            domain: Some("site.test".into()),
            path: Some("/y".into()),
            secure: true,
            http_only: true,
            same_site: SameSite::Lax,
            partitioned: true,
            expires: None,
        };
        assert_eq!(cookie, expected);
        assert_eq!(parse("a=1; path=/x; path=y").path, None);
    }

    #[test]
    fn a_pair_without_equals_sign_is_a_value_and_nothing_is_nothing() {
        let cookie = parse("alone");
        assert_eq!((cookie.name.as_str(), cookie.value.as_str()), ("", "alone"));
        assert_eq!(SetCookie::parse(b"; Path=/", NOW), None);
        assert_eq!(SetCookie::parse(b"a=\x01", NOW), None);
        assert_eq!(SetCookie::parse(format!("a={}", "x".repeat(5000)).as_bytes(), NOW), None);
    }

    #[test]
    fn max_age_precedes_expires_and_is_capped() {
        let expires = |text: &str| parse(&format!("a=1; {text}")).expires;
        assert_eq!(expires("Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:10 GMT"), at(60));
        assert_eq!(expires("Max-Age=0"), at(0));
        assert_eq!(expires("Max-Age=-5"), at(0));
        assert_eq!(expires("Max-Age=99999999999999999999999"), at(400 * 86_400));
        assert_eq!(expires("Max-Age=x"), None);
    }

    #[test]
    fn dates_are_read_as_browsers_do() {
        for (text, expected) in [
            ("Thu, 01 Jan 1970 00:00:10 GMT", at(10)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", at(784_111_777)),
            ("Sun Nov  6 08:49:37 1994", at(784_111_777)),
            ("Wed, 09-Jun-2021 10:18:14 GMT", at(1_623_233_894)),
            ("29 Feb 2000 0:0:0", at(951_782_400)),
            ("1 Mar 1950 00:00:00", at(0)),
            ("32 Mar 2030 00:00:00", None),
            ("1 Mar 2030", None),
            ("1 Mar 2030 25:00:00", None),
            ("", None),
        ] {
            assert_eq!(cookie_date(text), expected, "{text}");
        }
    }
}
