//! Hours of the day outside of which a class may use less.

#![allow(clippy::unwrap_used)] // helpers of tests count as tests

mod support;

use std::sync::Arc;
use std::time::Duration;

use farhop_diffserv::Queue;
use farhop_link::{Config, Window};

use support::{Scene, config, eventually};

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test(start_paused = true)]
async fn what_nobody_waits_for_has_the_link_at_night_only() {
    let folder = tempfile::tempdir().unwrap();
    let windows = vec![Window { queue: Queue::Le, hours: (22 * HOUR, 6 * HOUR), outside: 5 }];
    let mut scene = Scene::start_with(folder.path(), Config { windows, ..config(folder.path()) }).await;
    let device = Arc::clone(&scene.device);
    let ceilings = || device.state.lock().unwrap().ceilings.clone();
    // It is midnight.
    eventually(|| ceilings() == [512_000]).await;
    device.state.lock().unwrap().time = 6 * HOUR;
    eventually(|| ceilings() == [512_000, 25_600]).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(ceilings().len(), 2, "once");
    device.state.lock().unwrap().time = 22 * HOUR;
    eventually(|| ceilings() == [512_000, 25_600, 512_000]).await;
    scene.call("a").await.unwrap();
    scene.running.abort();
}
