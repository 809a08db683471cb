//! Firefox ESR, headless, with a profile that names the proxy and trusts Farhop's CA.

use std::path::Path;

use farhop_workload::browser::trust_in;

use super::{World, at_hand, client, succeeds};

/// What the profile sets; everything that Firefox would ask of its maker is off.
fn preferences(world: &World) -> String {
    let (host, port) = (world.local.proxy.ip(), world.local.proxy.port());
    let text = |value: &str| format!("\"{value}\"");
    let set = [
        ("network.proxy.type", "1".into()),
        ("network.proxy.http", text(&host.to_string())),
        ("network.proxy.http_port", port.to_string()),
        ("network.proxy.ssl", text(&host.to_string())),
        ("network.proxy.ssl_port", port.to_string()),
        ("network.proxy.no_proxies_on", text("")),
        ("network.proxy.allow_hijacking_localhost", "true".into()),
        ("network.captive-portal-service.enabled", "false".into()),
        ("network.connectivity-service.enabled", "false".into()),
        ("app.normandy.enabled", "false".into()),
        ("app.update.enabled", "false".into()),
        ("browser.safebrowsing.downloads.remote.enabled", "false".into()),
        ("browser.shell.checkDefaultBrowser", "false".into()),
        ("datareporting.policy.dataSubmissionEnabled", "false".into()),
        ("services.settings.server", text("http://localhost:1")),
        ("toolkit.telemetry.enabled", "false".into()),
    ];
    set.map(|(name, value)| format!("user_pref(\"{name}\", {value});\n")).concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn firefox_loads_a_page_runs_its_script_and_shows_it() {
    if !at_hand(&["firefox-esr", "certutil"]) {
        return;
    }
    let world = World::start(&[]).await;
    let profile = world.folder.path().join("profile");
    trust_in(&profile, &world.ca).unwrap();
    std::fs::write(profile.join("user.js"), preferences(&world)).unwrap();
    let picture = world.folder.path().join("picture.png");
    let mut command = client("firefox-esr");
    command.args(["--headless", "--no-remote", "--window-size", "400,300", "--profile"]).arg(&profile);
    command.arg("--screenshot").arg(&picture).arg(world.url("/"));
    command.env("HOME", world.folder.path());
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
