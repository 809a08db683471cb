//! Ground dies in the middle of a page and comes back: the browser has to end with the whole page all the same.

use std::time::Duration;

use farhop_compare::restart_mid_page;
use farhop_orbit::Profile;

use crate::group::Context;
use crate::{MeasureError, Row};

/// How long ground stays away.
const AWAY: Duration = Duration::from_secs(10);
/// Bytes towards the terminal after which ground is killed: about a third of each page.
const AFTER: u64 = 100_000;

pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    ["flags", "photos", "article"].into_iter().map(|page| row(context, page)).collect()
}

fn row(context: &Context, page: &str) -> Result<Row, MeasureError> {
    let profile =
        Profile::named("geo-hylas2").map_err(|error| MeasureError::Unexpected(error.to_string()))?;
    let progress = &mut |line: &str| eprintln!("{page}: {line}");
    let interrupt = context.interrupt.clone();
    let restarted = restart_mid_page(page, &profile, AFTER, AWAY, interrupt, progress)?;
    let [at_death, at_end] = restarted.crossed;
    let load = restarted.plt_s.map_or("no load event".into(), |plt| format!("{plt:.1} s"));
    let first = restarted.wrong.first().map(|why| format!(", {why}")).unwrap_or_default();
    let measured = format!("{load}, {} right, {} wrong{first}", restarted.right, restarted.wrong.len());
    // A page that was over when ground died proves nothing.
    let in_the_middle = at_death < at_end;
    let whole = restarted.plt_s.is_some() && restarted.right > 0 && restarted.wrong.is_empty();
    let what = format!("{page}, ground killed after {} of {} KB, away 10 s", at_death / 1000, at_end / 1000);
    Ok(Row::judged(what, measured, "the whole page, no error page", whole && in_the_middle))
}
