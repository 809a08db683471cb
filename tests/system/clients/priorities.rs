//! What Chromium says of the urgency of its requests (RFC 9218) decides who goes first on the hop.

use farhop_testkit::pattern;
use farhop_workload::browser::trust_in;
use serde_json::json;

use super::{World, at_hand};
use crate::support::node;

/// Two files, of which the second is asked for when the first is on its way: names and priorities in the query, and which of
/// them is there first.
const PAGE: &str = "<!doctype html><title>urgency</title><script>
const wanted = new URLSearchParams(location.search);
const begin = (name) => fetch(`/${wanted.get(name)}.bin`, { priority: wanted.get(`${name}-priority`) });
const rest = async (reader) => { while (!(await reader.read()).done); };
const both = async () => {
  const ended = [], reader = (await begin('first')).body.getReader();
  await reader.read();
  const first = rest(reader).then(() => ended.push('first'));
  const second = begin('second').then((answer) => rest(answer.body.getReader())).then(() => ended.push('second'));
  await Promise.all([first, second]);
  return ended.join(' ');
};
window.order = both().catch(String);
</script>";
/// So long that the first is far from its end when the second begins, and ends first where each has half of the link: two seconds
/// of this link.
const LENGTH: usize = 2_000_000;
const LINK: &str = "geo-hylas2";

#[tokio::test(flavor = "multi_thread")]
async fn what_chromium_calls_urgent_overtakes_what_it_does_not_and_nothing_else_does() {
    let Some(browser) = node::chromium() else { return };
    if !at_hand(&["certutil"]) {
        return;
    }
    let world = World::start_over(LINK, &[], &[]).await;
    std::fs::write(world.file("/urgency.html"), PAGE).unwrap();
    for (seed, name) in ["a", "b", "c", "d"].into_iter().enumerate() {
        let bytes = pattern::bytes_at(seed as u64, 0, LENGTH);
        std::fs::write(world.file(&format!("/{name}.bin")), bytes).unwrap();
    }
    let home = world.folder.path();
    trust_in(&home.join(".pki/nssdb"), &world.ca).unwrap();
    let proxy = json!({ "server": format!("http://{}", world.local.proxy), "bypass": "<-loopback>" });
    let urls = [("a", "low", "b", "high"), ("c", "high", "d", "high")].map(|(first, of, second, than)| {
        let query = format!("first={first}&first-priority={of}&second={second}&second-priority={than}");
        world.url(&format!("/urgency.html?{query}"))
    });
    let visits = json!([{ "proxy": proxy, "urls": urls, "expression": "window.order" }]);
    let seen = node::run(&browser, "visits.cjs", json!({ "visits": visits }), Some(home)).await;
    let orders = [&seen[0][0]["value"], &seen[0][1]["value"]];
    assert_eq!(orders, ["second first", "first second"], "{seen}");
}
