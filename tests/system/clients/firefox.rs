//! Firefox ESR, headless, with a profile that names the proxy and trusts Farhop's CA.

use std::path::Path;

use farhop_workload::browser::trust_in;

use super::{World, at_hand, client, succeeds};
use crate::support::firefox::{through, write_preferences};

#[tokio::test(flavor = "multi_thread")]
async fn firefox_loads_a_page_runs_its_script_and_shows_it() {
    if !at_hand(&["firefox-esr", "certutil"]) {
        return;
    }
    let world = World::start(&[]).await;
    let profile = world.folder.path().join("profile");
    trust_in(&profile, &world.ca).unwrap();
    write_preferences(&profile, &through(world.local.proxy));
    let picture = world.folder.path().join("picture.png");
    let mut command = client("firefox-esr");
    command.args(["--headless", "--no-remote", "--window-size", "400,300", "--profile"]).arg(&profile);
    command.arg("--screenshot").arg(&picture).arg(world.url("/"));
    command.env("HOME", world.folder.path()).env("TMPDIR", world.folder.path());
    succeeds(command).await;
    for path in ["/", "/a.css", "/a.js", "/a.svg", "/ran.txt"] {
        assert!(!world.seen(path).is_empty(), "{path} was never asked for");
    }
    assert!(is_green(&picture), "the picture does not show the page");
}

/// Whether the page's background is what most of the picture shows.
fn is_green(picture: &Path) -> bool {
    let picture = image::open(picture).unwrap().into_rgb8();
    let green = picture.pixels().filter(|pixel| pixel.0 == [0, 0xc0, 0]).count();
    green * 2 > picture.pixels().count()
}
