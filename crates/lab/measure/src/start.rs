//! How soon the program answers from a store with a million entries, from the start of its process on: after an orderly end, and
//! after SIGKILL while it stores. The store is filled through its own interface, with short bodies, each in its file.

use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use farhop_freshness::Stored;
use farhop_replacement::Link;
use farhop_store::{Body, Budget, Disk, DiskOptions, Key, Partition, Repository as _, Store};
use farhop_testkit::Versions;
use farhop_units::BitRate;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use tokio::runtime::Runtime;

use crate::group::Context;
use crate::kills::Place;
use crate::local::Local;
use crate::{MeasureError, Row};

/// How many entries, unless `FARHOP_ENTRIES` says otherwise.
const ENTRIES: u64 = 1_000_000;
/// Put there before it is waited for what is on its way to disk.
const TOGETHER: u64 = 4_096;
/// Memory for them meanwhile.
const MEMORY: u64 = 64 << 20;
/// Room for all of them with what each takes besides its body.
const SIZE: u64 = 20_000_000_000;
/// Starts after SIGKILL.
const KILLS: u64 = 5;
/// Answers to other things that are stored before it comes.
const ANSWERS: u64 = 50;
/// From the start of the process to the first answer that is held.
const BOUND: Duration = Duration::from_secs(1);

pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let entries = match std::env::var("FARHOP_ENTRIES") {
        Ok(text) => text.parse().ok().filter(|count| *count > 0).ok_or_else(|| {
            MeasureError::Unexpected(format!("FARHOP_ENTRIES={text} is no number of entries"))
        })?,
        Err(_) => ENTRIES,
    };
    let runtime = Runtime::new().map_err(MeasureError::system("a runtime"))?;
    let place = Place::new()?;
    let filling = Instant::now();
    runtime.block_on(fill(&place, entries, || Ok(context.interrupt.check()?)))?;
    eprintln!("{entries} entries stored in {} s", filling.elapsed().as_secs());
    let (mut local, orderly) = first_hit(&place, 0, entries)?;
    let mut killed = Duration::ZERO;
    let site = runtime.block_on(Versions::of(30));
    for round in 0..KILLS {
        context.interrupt.check()?;
        runtime.block_on(async {
            let mut load = site.load(local.proxy(), 2, round);
            // One that finds nobody to answer is found out below.
            let _ = tokio::time::timeout(BOUND * 60, load.answers(ANSWERS)).await;
            local.kill();
            load.end().await
        });
        let took;
        (local, took) = first_hit(&place, round + 1, entries)?;
        killed = killed.max(took);
    }
    let row = |after: &str, took: Duration| {
        let what = format!("first held answer of {entries} entries, {after}");
        let measured = format!("{} ms after the process starts", took.as_millis());
        Row::judged(what, measured, "< 1 s, 1,000,000 entries", took < BOUND && entries >= ENTRIES)
    };
    let after = format!("killed, longest of {KILLS}");
    Ok(vec![row("ended in order", orderly), row(&after, killed)])
}

/// Where nobody answers: what comes from there is held.
fn url(number: u64) -> String {
    format!("http://127.0.0.1:9/{number}")
}

fn body(number: u64) -> String {
    format!("entry {number}")
}

/// Starts the program and asks for an entry; gives how long both took.
fn first_hit(place: &Place, round: u64, entries: u64) -> Result<(Local, Duration), MeasureError> {
    let number = round.wrapping_mul(0x9e37_79b9_7f4a_7c15) % entries;
    let size = format!("remote.store.size={} GB", SIZE / 1_000_000_000);
    let start = Instant::now();
    let local = place.start_with(&[&size])?;
    let answer = local.get(&url(number))?;
    let took = start.elapsed();
    if (answer.status, answer.body.as_slice(), answer.whole) != (200, body(number).as_bytes(), true) {
        let said = String::from_utf8_lossy(&answer.body).into_owned();
        return Err(MeasureError::Unexpected(format!(
            "entry {number} is answered {} '{said}'",
            answer.status
        )));
    }
    eprintln!("start {round}: {} ms", took.as_millis());
    Ok((local, took))
}

/// Puts so many entries into the store of a remote that is not running, as long as `check` lets it.
async fn fill(
    place: &Place,
    entries: u64,
    check: impl Fn() -> Result<(), MeasureError>,
) -> Result<(), MeasureError> {
    let unusable = |error: &dyn std::fmt::Display| MeasureError::Unexpected(format!("a store: {error}"));
    let key = Key::load_or_make(&place.key()).map_err(|error| unusable(&error))?;
    let link = Link { round_trip: Duration::from_millis(650), rate: BitRate::mbit(8) };
    let options = DiskOptions { folder: place.store(), size: SIZE, key, link };
    let disk = Disk::open(options).map_err(|error| unusable(&error))?;
    let budget = Budget::new(MEMORY);
    let store = Store::on(disk, budget.clone()).map_err(MeasureError::system("a store"))?;
    for number in 0..entries {
        let body = Body::whole(&budget, Bytes::from(body(number)), None);
        store.store(Partition::Shared, &url(number), head(number), body).await;
        if number % TOGETHER == TOGETHER - 1 {
            check()?;
            store.settled().await;
        }
        if number % 100_000 == 99_999 {
            eprintln!("{} entries", number + 1);
        }
    }
    store.settled().await;
    let held = store.on_disk().await.map_or(0, |extent| extent.entries);
    store.close().await;
    if held == entries { Ok(()) } else { Err(unusable(&format!("{held} entries of {entries}"))) }
}

/// A head that is fresh for a day, received now.
fn head(number: u64) -> Stored {
    let (now, mut fields) = (SystemTime::now(), HeaderMap::new());
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("max-age=86400"));
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    fields.insert(header::CONTENT_LENGTH, HeaderValue::from(body(number).len()));
    Stored::new(&HeaderMap::new(), StatusCode::OK, &fields, now, now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_put_there_is_there_when_it_is_opened_again() {
        let place = Place::new().unwrap();
        fill(&place, 3, || Ok(())).await.unwrap();
        let link = Link { round_trip: Duration::from_millis(650), rate: BitRate::mbit(8) };
        let key = Key::load_or_make(&place.key()).unwrap();
        let options = DiskOptions { folder: place.store(), size: SIZE, key, link };
        let store = Store::on(Disk::open(options).unwrap(), Budget::new(MEMORY)).unwrap();
        assert_eq!(store.find(Partition::Shared, &url(2), &HeaderMap::new()).await.len(), 1);
        store.close().await;
    }
}
