//! The satellite in virtual time: capacity on demand against what its numbers say that it must be, capacity that is conserved,
//! histories that follow from their seed. Needs no quiet machine: no clock is read.

mod draws;
mod trial;

use std::time::Duration;

use crate::group::Context;
use crate::{MeasureError, Row};
use trial::Category;

/// Superframes of DVB-RCS and RCS2 systems.
const SUPERFRAMES: [Duration; 3] =
    [Duration::from_micros(26_500), Duration::from_millis(45), Duration::from_millis(50)];

/// Shared links that are drawn from seeds.
const DRAWN: u64 = 500;

pub(crate) fn rows(_: &Context) -> Result<Vec<Row>, MeasureError> {
    Ok(all(DRAWN))
}

fn all(drawn: u64) -> Vec<Row> {
    let mut rows: Vec<Row> = Category::ALL.into_iter().map(ping).collect();
    rows.extend(Category::ALL.into_iter().map(ramp_up));
    rows.push(draws::conserved(drawn));
    rows.push(draws::replayed(drawn / 10));
    rows
}

fn ms(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

/// In superframes.
fn frames(time: Duration, superframe: Duration) -> f64 {
    time.as_secs_f64() / superframe.as_secs_f64()
}

/// Of the three superframes the one that is farthest off.
fn worst(measured: impl Fn(Duration) -> (f64, String)) -> (f64, String) {
    let all = SUPERFRAMES.map(measured);
    all.into_iter().max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or_default()
}

fn ping(category: Category) -> Row {
    let (off, told) = worst(|superframe| {
        let (waits, expected) =
            (trial::waits(category, superframe), trial::expected_wait(category, superframe));
        let off = waits.iter().map(|wait| frames(wait.abs_diff(expected), superframe)).fold(0.0, f64::max);
        let count = u32::try_from(waits.len()).unwrap_or(u32::MAX).max(1);
        let mean = waits.iter().sum::<Duration>() / count;
        let off = if waits.len() == 40 { off } else { f64::INFINITY };
        let told = format!(
            "{off:.2} superframes off at worst (of {}: ping {}, reckoned {})",
            ms(superframe),
            ms(2 * trial::DELAY + mean),
            ms(2 * trial::DELAY + expected)
        );
        (off, told)
    });
    let what = format!("idle ping, {}", category.name());
    Row::judged(what, told, "the analytic grant delay ± 1 superframe", off <= 1.0)
}

fn ramp_up(category: Category) -> Row {
    let (off, told) = worst(|superframe| {
        let expected = trial::expected_ramp(category, superframe);
        let Some(measured) = trial::ramp(category, superframe) else {
            return (f64::INFINITY, format!("never with superframes of {}", ms(superframe)));
        };
        let off = f64::from(measured.abs_diff(expected));
        let told = format!(
            "{off} superframes off at worst (of {}: {}, reckoned {})",
            ms(superframe),
            ms(measured * superframe),
            ms(expected * superframe)
        );
        (off, told)
    });
    let what = format!("ramp-up to a steady load, {}", category.name());
    Row::judged(what, told, "the analytic delay ± 1 superframe", off <= 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    #[test]
    fn every_row_holds() {
        for row in all(50) {
            println!("{row}");
            assert_eq!(row.verdict, Verdict::Pass, "{row}");
        }
    }

    #[test]
    fn what_is_reckoned_tells_asking_from_having() {
        let superframe = Duration::from_millis(50);
        let wait = |category| trial::expected_wait(category, superframe).as_millis();
        // 600 ms there and back, a superframe for the table: 13 superframes.
        assert_eq!(Category::ALL.map(wait), [25, 675, 675, 675, 25]);
        let ramp = |category| trial::expected_ramp(category, superframe);
        assert_eq!(Category::ALL.map(ramp), [0, 20, 14, 14, 0]);
    }
}
