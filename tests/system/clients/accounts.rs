//! Names and passwords in browsers whose TLS is looked into: the CONNECT shows them, and what is asked inside is that user's.

use std::path::{Path, PathBuf};

use farhop_workload::browser::trust_in;
use serde_json::json;

use super::{World, at_hand};
use crate::support::firefox::{Firefox, through, write_preferences};
use crate::support::{add_user, node, until};

/// A world that lets in anna with the password "one".
async fn guarded(folder: &Path) -> World {
    let file: PathBuf = folder.join("users");
    add_user(&file, "anna", "one");
    let sets = ["remote.auth.required=true".to_owned(), format!("remote.auth.file={}", json!(file))];
    World::start_with(&[], &sets).await
}

/// Every request inside was answered to anna, and nothing of her password came to the origin.
async fn assert_hers(world: &World) {
    for path in ["/", "/a.css", "/a.js", "/a.svg", "/ran.txt"] {
        let url = format!("url={}", world.url(path));
        let answered = until("all is answered", async || {
            let said = world.local.program.said();
            let has = |line: &&str, word: &str| line.split_whitespace().any(|it| it == word);
            let lines = said.lines().filter(|line| has(line, "answered") && has(line, &url));
            let users: Vec<bool> = lines.map(|line| has(&line, "user=anna")).collect();
            (!users.is_empty()).then_some(users)
        })
        .await;
        assert!(answered.iter().all(|hers| *hers), "{path} was another's: {}", world.local.program.said());
    }
    let counted = world.local.counters().await;
    assert!(counted["intercepted"].as_u64() > Some(0), "{counted}");
    assert_eq!(counted["logins_refused"], 0, "{counted}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_chromium_asks_inside_a_connection_is_its_users() {
    let Some(browser) = node::chromium() else { return };
    if !at_hand(&["certutil"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let world = guarded(folder.path()).await;
    trust_in(&folder.path().join(".pki/nssdb"), &world.ca).unwrap();
    let proxy = json!({
        "server": format!("http://{}", world.local.proxy),
        "username": "anna",
        "password": "one",
        "bypass": "<-loopback>",
    });
    let visits = json!([{ "proxy": proxy, "urls": [world.url("/")] }]);
    let seen = node::run(&browser, "visits.cjs", json!({ "visits": visits }), Some(folder.path())).await;
    assert_eq!(seen[0][0], json!({ "title": "t", "images": [9] }), "{seen}");
    assert_hers(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_firefox_asks_inside_a_connection_is_its_users() {
    if !at_hand(&["firefox-esr", "certutil"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let world = guarded(folder.path()).await;
    let profile = folder.path().join("profile");
    trust_in(&profile, &world.ca).unwrap();
    write_preferences(&profile, &through(world.local.proxy));
    let mut firefox = Firefox::start(folder.path(), Some(("anna", "one"))).await;
    firefox.open(&world.url("/")).await.unwrap();
    assert_eq!(firefox.value("document.title").await, "t");
    assert!(firefox.asked >= 1, "Firefox was let in without a password");
    assert_hers(&world).await;
}
