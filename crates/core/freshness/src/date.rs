//! HTTP dates in their three forms (RFC 9110 §5.6.7).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Seconds of a mean Gregorian year.
const YEAR: u64 = 31_556_952;
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Reads a date as it is understood at `now`; `None` if it is in none of the three forms. Names are read in any case
/// (RFC 9111 §4.2: SHOULD); a zone other than GMT makes it invalid (ibid.), and none is ever taken from this machine (MUST).
pub(crate) fn parse(text: &str, now: SystemTime) -> Option<SystemTime> {
    let (mut words, mut count) = ([""; 6], 0);
    for word in text.trim_matches([' ', '\t']).split(' ') {
        *words.get_mut(count)? = word;
        count += 1;
    }
    match words[..count] {
        [weekday, day, month, year, time, zone] if is_gmt(zone) => {
            is_weekday(weekday.strip_suffix(',')?, 3)?;
            instant(digits(year, 4)?, named_month(month)?, digits(day, 2)?, time)
        }
        [weekday, date, time, zone] if is_gmt(zone) => {
            is_weekday(weekday.strip_suffix(',')?, usize::MAX)?;
            let [day, month, year] = three(date, '-')?;
            two_digit_year(digits(year, 2)?, named_month(month)?, digits(day, 2)?, time, now)
        }
        // asctime: a day of one digit stands after two blanks.
        [weekday, month, "", day, time, year] => {
            is_weekday(weekday, 3)?;
            instant(digits(year, 4)?, named_month(month)?, digits(day, 1)?, time)
        }
        [weekday, month, day, time, year] => {
            is_weekday(weekday, 3)?;
            instant(digits(year, 4)?, named_month(month)?, digits(day, 2)?, time)
        }
        _ => None,
    }
}

/// The three pieces of `text`; `None` if it has more or fewer.
fn three(text: &str, separator: char) -> Option<[&str; 3]> {
    let mut pieces = text.split(separator);
    let three = [pieces.next()?, pieces.next()?, pieces.next()?];
    pieces.next().is_none().then_some(three)
}

fn is_gmt(zone: &str) -> bool {
    zone.eq_ignore_ascii_case("GMT")
}

/// Whether it is the name of a day, cut to `letters`. Which day it was is not compared: the date says it.
fn is_weekday(text: &str, letters: usize) -> Option<()> {
    DAYS.iter().any(|name| name[..letters.min(name.len())].eq_ignore_ascii_case(text)).then_some(())
}

fn named_month(text: &str) -> Option<i64> {
    (1..).zip(MONTHS).find(|(_, name)| name.eq_ignore_ascii_case(text)).map(|(number, _)| number)
}

fn digits(text: &str, count: usize) -> Option<i64> {
    (text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

/// RFC 9110 §5.6.7: what appears to be more than 50 years in the future MUST be the most recent year in the past with the
/// same last two digits.
fn two_digit_year(year: i64, month: i64, day: i64, time: &str, now: SystemTime) -> Option<SystemTime> {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let century = i64::try_from(1970 + since / YEAR).ok()? / 100 * 100;
    let read = instant(century + year, month, day, time);
    match read {
        Some(read) if read <= now + Duration::from_secs(50 * YEAR) => Some(read),
        _ => instant(century - 100 + year, month, day, time),
    }
}

fn instant(year: i64, month: i64, day: i64, time: &str) -> Option<SystemTime> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let [hour, minute, second] = three(time, ':')?;
    let (hour, minute, second) = (digits(hour, 2)?, digits(minute, 2)?, digits(second, 2)?);
    if !(1..=last).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // A leap second has no place of its own: RFC 9111 §4.2 wants the nearest time that is not later.
    let seconds = days_since_1970(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second.min(59);
    let distance = Duration::from_secs(seconds.unsigned_abs());
    if seconds < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) }
}

/// In the Gregorian calendar, counted from March so that the leap day is a year's last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    365 * year + leap_days + (153 * month + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_773_648_000; // Mon, 16 Mar 2026 08:00:00 GMT

    fn read(text: &str) -> Option<u64> {
        let date = parse(text, UNIX_EPOCH + Duration::from_secs(NOW))?;
        Some(date.duration_since(UNIX_EPOCH).unwrap().as_secs())
    }

    #[test]
    fn two_digit_years_lie_at_most_fifty_years_ahead() {
        let year = |text: &str| read(text).unwrap() / YEAR + 1970;
        assert_eq!(year("Monday, 02-Jul-26 00:00:00 GMT"), 2026);
        assert_eq!(year("Monday, 02-Jul-75 00:00:00 GMT"), 2075);
        assert_eq!(year("Monday, 02-Jul-77 00:00:00 GMT"), 1977);
        assert_eq!(year("Monday, 02-Jan-76 00:00:00 GMT"), 2076);
    }

    #[test]
    fn every_form_is_read_in_any_case() {
        for text in [
            "Mon, 16 Mar 2026 08:00:00 GMT",
            "mon, 16 mAR 2026 08:00:00 gmt",
            "Monday, 16-Mar-26 08:00:00 GMT",
            "MONDAY, 16-mar-26 08:00:00 GMT",
            "Mon Mar 16 08:00:00 2026",
            "  Mon, 16 Mar 2026 08:00:00 GMT\t",
        ] {
            assert_eq!(read(text), Some(NOW), "{text}");
        }
        assert_eq!(read("Fri Mar  6 08:00:00 2026"), Some(NOW - 10 * 86_400));
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "0",
            "Mon, 16 Mar 2026 08:00:00",
            "Mon, 16 Mar 2026 08:00:00 UTC",
            "Mon, 16 Mar 2026 08:00:00 +0000",
            "Mon, 16 Mar 2026 8:00:00 GMT",
            "Mon, 16 Mar 26 08:00:00 GMT",
            "Mon, 16-Mar-2026 08:00:00 GMT",
            "Mon  16 Mar 2026 08:00:00 GMT",
            "Mon, 30 Feb 2026 08:00:00 GMT",
            "Mon, 29 Feb 2100 08:00:00 GMT",
            "Mon, 16 Mar 2026 24:00:00 GMT",
            "Mon, 16 Mar 2026 08:00:61 GMT",
            "Mon, +6 Mar 2026 08:00:00 GMT",
            "Mon, 16 Mär 2026 08:00:00 GMT",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn days_are_counted_as_the_calendar_has_them() {
        for second in (0..253_402_300_800).step_by(86_400 * 97 + 12_345) {
            let time = UNIX_EPOCH + Duration::from_secs(second);
            assert_eq!(read(&httpdate::fmt_http_date(time)), Some(second));
        }
        let before = parse("Thu, 01 Jan 1959 00:00:00 GMT", UNIX_EPOCH).unwrap();
        assert_eq!(UNIX_EPOCH.duration_since(before).unwrap().as_secs(), 4_018 * 86_400);
        assert_eq!(read("Sat, 31 Dec 2016 23:59:60 GMT"), read("Sat, 31 Dec 2016 23:59:59 GMT"));
    }
}
