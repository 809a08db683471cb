//! Names and passwords, and what users have said, as processes and a browser meet them.

use std::process::Command;

use farhop_testkit::{File, Site};
use http::Method;
use http_body_util::{BodyExt as _, Empty};
use serde_json::json;

use crate::support::{Pair, add_user, farhop, node, request, send, until};

/// "anna:one" and "ben:two" (RFC 7617 §2).
const ANNA: &str = "YW5uYTpvbmU=";
const BEN: &str = "YmVuOnR3bw==";

/// Two ends of which the remote asks for names, and the file of them, with anna (password "one").
async fn pair(more: &[&str]) -> (Pair, tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("users");
    add_user(&file, "anna", "one");
    let set = format!("auth.file={}", file.display());
    let pair = Pair::start_with(&[&["auth.required=true", &set], more].concat()).await;
    (pair, folder, file)
}

async fn status(pair: &Pair, url: &str, who: Option<&str>) -> u16 {
    let mut asked = request(Method::GET, url);
    if let Some(who) = who {
        asked = asked.header("proxy-authorization", format!("Basic {who}"));
    }
    send(pair.proxy, asked.body(Empty::new().boxed()).unwrap()).await.status
}

fn hang_up(pair: &Pair) {
    let sent = Command::new("kill").args(["-HUP", &pair.remote.child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_remote_reads_its_users_anew_and_keeps_them_where_the_file_is_damaged() {
    let site = Site::new().file("/", File::new("text/plain", "welcome")).serve().await;
    let (mut pair, _folder, file) = pair(&[]).await;
    let url = site.url("/");
    assert_eq!(status(&pair, &url, None).await, 407);
    assert_eq!(status(&pair, &url, Some(ANNA)).await, 200);
    assert_eq!(status(&pair, &url, Some(BEN)).await, 407);

    add_user(&file, "ben", "two");
    hang_up(&pair);
    until("ben is let in", async || (status(&pair, &url, Some(BEN)).await == 200).then_some(())).await;

    let good = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, good + "carl\n").unwrap();
    hang_up(&pair);
    let line = format!("users stay as they are: {}:3: not 'name:hash'", file.display());
    until("the damage is told", async || pair.remote.said().contains(&line).then_some(())).await;
    assert_eq!(status(&pair, &url, Some(ANNA)).await, 200);
    assert!(site.asked().iter().all(|asked| !asked.fields.contains_key("proxy-authorization")));
    pair.assert_both_run();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_is_let_in_with_the_right_password_and_shows_why_with_a_wrong_one() {
    let Some(browser) = node::chromium() else { return };
    let page = "<title>welcome</title><img src=/a.svg><img src=/b.svg>";
    let image =
        || File::new("image/svg+xml", "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>");
    let site =
        Site::new().file("/", File::new("text/html", page)).file("/a.svg", image()).file("/b.svg", image());
    let site = site.serve().await;
    let (pair, _folder, _) = pair(&[]).await;
    let visits = ["one", "wrong"].map(|password| {
        let proxy = json!({
            "server": format!("http://{}", pair.proxy),
            "username": "anna",
            "password": password,
        });
        json!({ "proxy": proxy, "urls": [site.url("/")] })
    });
    let seen = node::run(&browser, "visits.cjs", json!({ "visits": visits }), None).await;
    assert_eq!(seen[0][0], json!({ "title": "welcome", "images": [9, 9] }), "{seen}");
    assert_ne!(seen[1][0]["title"], "welcome", "{seen}");
    assert!(pair.counters("remote").await["logins_refused"].as_u64() > Some(0));
}

/// A page of the portal, or what it says to a form.
async fn portal(pair: &Pair, method: Method, path: &str, form: String) -> String {
    let asked = request(method, &format!("http://farhop.internal{path}"))
        .header("origin", "http://farhop.internal")
        .header("content-type", "application/x-www-form-urlencoded")
        .header("content-length", form.len())
        .body(http_body_util::Full::from(form).boxed());
    send(pair.proxy, asked.unwrap()).await.text()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_user_switched_off_is_off_after_the_remote_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let (ca, state) = (folder.path().join("ca"), folder.path().join("consent.json"));
    assert!(farhop().args(["ca", "init"]).arg(&ca).output().unwrap().status.success());
    let sets = [
        "interception.enabled=true".to_owned(),
        format!("interception.ca={}", ca.display()),
        format!("interception.state={}", state.display()),
    ];
    let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
    let mut pair = Pair::start_with(&sets).await;
    let overview = portal(&pair, Method::GET, "/", String::new()).await;
    assert!(overview.contains("Accelerated"), "{overview}");
    let token =
        overview.split("name=\"token\" value=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    portal(&pair, Method::POST, "/switch", format!("token={token}&do=all-off")).await;
    until("it is kept", async || {
        let kept = std::fs::read_to_string(&state).ok()?;
        kept.contains("\"user\": \"127.").then_some(())
    })
    .await;
    pair.remote.kill();
    let pair = Pair::start_with(&sets).await;
    let overview = portal(&pair, Method::GET, "/", String::new()).await;
    assert!(overview.contains("Off for you"), "{overview}");
}
