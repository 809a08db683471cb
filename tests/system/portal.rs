//! `http://farhop.internal/` in a real browser that runs no script. Needs node, Chromium and playwright-core (`./run test`
//! installs them); without them the test says so and passes over.

use farhop_testkit::{File, Site};
use farhop_workload::browser::trust_in;
use serde_json::json;

use crate::support::firefox::{Firefox, through, write_preferences};
use crate::support::{Local, node, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_without_scripts_reads_the_portal_and_switches_what_it_offers() {
    let Some(browser) = node::chromium() else { return };
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    let mut local = Local::allowed(&["--intercept", "--ca-out", ca.to_str().unwrap()]).await;
    // A page of another site, with a form that would switch everything off.
    let form = "<!doctype html><form method=post action=http://farhop.internal/switch><input name=do value=all-off>\
                <input name=token value=0><button>Win a prize</button></form>";
    let evil = Site::new().file("/", File::new("text/html", form)).serve().await;
    let order = json!({
        "proxy": local.proxy.to_string(),
        "pac": format!("http://{}/proxy.pac", local.proxy),
        "evil": evil.url("/"),
        "folder": folder.path(),
    });
    let seen = node::run(&browser, "portal.cjs", order, None).await;
    let says = |page: &str, words: &str| seen[page].as_str().unwrap().contains(words);

    assert!(says("before", "Accelerated") && says("before", "The satellite link is up"), "{seen}");
    assert!(says("withSite", "Left alone for you") && says("withSite", "bank.example"), "{seen}");
    assert!(!says("withoutSite", "Left alone for you"), "{seen}");
    assert!(says("off", "Off for you") && says("on", "Accelerated"), "{seen}");
    assert!(says("ending", "co.uk is no site"), "{seen}");
    assert!(says("evil", "sent by another site, and nothing was changed"), "{seen}");
    assert!(says("afterEvil", "Accelerated"), "{seen}");
    assert!(says("steps", "update-ca-certificates"), "{seen}");
    assert_eq!(seen["byPac"], "Farhop on this network");
    assert_eq!(seen["font"], "solid", "the style sheet is applied: {seen}");
    assert!(seen["width"].as_u64().unwrap() <= 360, "it fits a telephone: {seen}");
    assert_eq!(seen["problems"], json!([]));
    // The overview and its style sheet.
    assert!((2_000..50_000).contains(&seen["first"].as_u64().unwrap()), "{seen}");
    // Twelve page loads, the style sheet and the certificate.
    assert!(seen["bytes"].as_u64().unwrap() < 150_000, "{seen}");
    let downloaded = std::fs::read(folder.path().join("downloaded.pem")).unwrap();
    assert_eq!(downloaded, std::fs::read(&ca).unwrap(), "the portal's certificate is the one of --ca-out");
    local.program.assert_runs();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_trusts_the_ca_has_the_portal_within_tls_and_another_is_told_where_it_is() {
    let Some(browser) = node::chromium() else { return };
    if !crate::clients::at_hand(&["certutil"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    let mut local = Local::start(&["--intercept", "--ca-out", ca.to_str().unwrap()]).await;
    let (trusting, other) = (folder.path().join("trusting"), folder.path().join("other"));
    trust_in(&trusting.join(".pki/nssdb"), &ca).unwrap();
    std::fs::create_dir(&other).unwrap();
    let proxy = json!({ "server": format!("http://{}", local.proxy) });
    let secure = "https://farhop.internal/";
    for (home, titles) in [
        (&trusting, ["Farhop on this network", "The certificate"]),
        // A warning at first, and no answer from then on; without TLS it is there.
        (&other, ["", "Farhop on this network"]),
    ] {
        let second =
            if *home == trusting { "https://farhop.internal/install" } else { "http://farhop.internal/" };
        let visits = json!([{ "proxy": proxy, "urls": [secure, second] }]);
        let seen = node::run(&browser, "visits.cjs", json!({ "visits": visits }), Some(home)).await;
        let fails = seen[0][0]["error"].as_str();
        assert_eq!(
            fails.is_some_and(|error| error.contains("ERR_CERT_AUTHORITY_INVALID")),
            *home == other,
            "{seen}"
        );
        for (number, title) in titles.iter().enumerate() {
            assert!(title.is_empty() || seen[0][number]["title"] == *title, "{seen}");
        }
    }
    local.program.assert_runs();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_tries_tls_first_comes_to_the_portal_either_way() {
    if !crate::clients::at_hand(&["firefox-esr", "certutil"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    let local = Local::start(&["--intercept", "--ca-out", ca.to_str().unwrap()]).await;
    for (name, scheme) in [("trusting", "https:"), ("other", "http:")] {
        let home = folder.path().join(name);
        let profile = home.join("profile");
        if scheme == "https:" {
            trust_in(&profile, &ca).unwrap();
        }
        let first = ["dom.security.https_first", "dom.security.https_first_for_unknown_suffixes"]
            .map(|name| (name, "true".to_owned()));
        write_preferences(&profile, &[&through(local.proxy)[..], &first].concat());
        let mut firefox = Firefox::start(&home, None).await;
        for _ in 0..2 {
            firefox.open("about:blank").await.unwrap();
            // As a link would: what is typed with its scheme is left as it is.
            firefox.value("location.href = 'http://farhop.internal/'; true").await;
            until("the portal is there", async || {
                (firefox.value("document.title").await == "Farhop on this network").then_some(())
            })
            .await;
            assert_eq!(firefox.value("location.protocol").await, scheme, "{name}");
        }
    }
}
