//! The live web in browsers whose TLS is looked into: a WebSocket, which is a stream of the page's own HTTP/2 connection, server-sent
//! events and a long poll of one page.

use farhop_workload::browser::trust_in;
use serde_json::{Value, json};

use super::{World, at_hand};
use crate::support::firefox::{Firefox, through, write_preferences};
use crate::support::node;

/// What the page makes of all three, when they are done.
const LIVE: &str = "window.live";
const HEARD: &str = "one two three, 012, 200";
const PAGE: &str = "<!doctype html><title>live</title><script>
const said = new Promise((done, fail) => {
  const socket = new WebSocket(`wss://${location.host}/.lab/echo`), heard = [];
  socket.onopen = () => ['one', 'two', 'three'].forEach((word) => socket.send(word));
  socket.onmessage = (message) => { if (heard.push(message.data) === 3) done(heard.join(' ')); };
  socket.onerror = () => fail('the WebSocket has failed');
});
const told = new Promise((done, fail) => {
  const events = new EventSource('/.lab/events?count=3&every=50');
  let ids = '';
  events.onmessage = (event) => { ids += event.lastEventId; if (ids.length === 3) { events.close(); done(ids); } };
  events.onerror = () => fail('the events have failed');
});
const polled = fetch('/.lab/poll?after=100').then((answer) => answer.status);
window.live = Promise.all([said, told, polled]).then((all) => all.join(', '), (why) => String(why));
</script>";

async fn world() -> World {
    let world = World::start(&[]).await;
    std::fs::write(world.file("/live.html"), PAGE).unwrap();
    world
}

/// It was what the origin said, through an interception.
async fn assert_live(world: &World, live: &Value) {
    assert_eq!(live, HEARD);
    let counted = world.local.counters().await;
    // A stream of the connection that the page came on (RFC 8441), and no connection of its own.
    assert_eq!((&counted["websockets"], &counted["websockets_within_http2"]), (&json!(1), &json!(1)));
    assert!(counted["intercepted"].as_u64() > Some(0), "{counted}");
    assert_eq!(counted["bypasses_learned"], 0, "{counted}");
}

#[tokio::test(flavor = "multi_thread")]
async fn chromium_has_its_sockets_events_and_polls() {
    let Some(browser) = node::chromium() else { return };
    if !at_hand(&["certutil"]) {
        return;
    }
    let world = world().await;
    let home = world.folder.path();
    trust_in(&home.join(".pki/nssdb"), &world.ca).unwrap();
    let proxy = json!({ "server": format!("http://{}", world.local.proxy), "bypass": "<-loopback>" });
    let visits = json!([{ "proxy": proxy, "urls": [world.url("/live.html")], "expression": LIVE }]);
    let seen = node::run(&browser, "visits.cjs", json!({ "visits": visits }), Some(home)).await;
    assert_live(&world, &seen[0][0]["value"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn firefox_has_its_sockets_events_and_polls() {
    if !at_hand(&["firefox-esr", "certutil"]) {
        return;
    }
    let world = world().await;
    let profile = world.folder.path().join("profile");
    trust_in(&profile, &world.ca).unwrap();
    write_preferences(&profile, &through(world.local.proxy));
    let mut firefox = Firefox::start(world.folder.path(), None).await;
    firefox.open(&world.url("/live.html")).await.unwrap();
    let live = firefox.value(LIVE).await;
    assert_live(&world, &live).await;
}
