//! curl, wget, nghttp and h2load.

use farhop_testkit::entrance;

use super::{HOST, World, at_hand, client, output, succeeds};

/// curl through the proxy, believing Farhop's CA.
fn curl(world: &World, options: &[&str], path: &str) -> std::process::Command {
    let mut command = client("curl");
    command.args([
        "--silent",
        "--show-error",
        "--proxy",
        &format!("http://{}", world.local.proxy),
        "--cacert",
    ]);
    command.arg(&world.ca).args(options).arg(world.url(path));
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn curl_gets_the_same_bytes_over_both_versions_of_http() {
    if !at_hand(&["curl"]) {
        return;
    }
    let world = World::start(&[]).await;
    for (option, version) in [("--http1.1", "1.1"), ("--http2", "2")] {
        for path in ["/a.css", "/large.bin"] {
            let got = world.folder.path().join("got");
            let options =
                [option, "--write-out", "%{http_code} %{http_version}", "--output", got.to_str().unwrap()];
            let told = succeeds(curl(&world, &options, path)).await;
            assert_eq!(String::from_utf8_lossy(&told), format!("200 {version}"), "{path}");
            assert_eq!(std::fs::read(&got).unwrap(), world.bytes(path), "{path} over {version}");
        }
    }
    let seen = world.seen("/a.css");
    assert!(
        seen.iter().all(|asked| asked["via"].as_str().is_some_and(|via| via.contains("farhop"))),
        "{seen:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn curl_uploads_asks_for_heads_and_ranges_and_goes_on_where_it_stopped() {
    if !at_hand(&["curl"]) {
        return;
    }
    let world = World::start(&[]).await;
    let large = world.file("/large.bin");
    let sum = farhop_workload::origins::site::sha256_hex(&world.bytes("/large.bin"));
    for option in ["--http1.1", "--http2"] {
        let receipt =
            succeeds(curl(&world, &[option, "--upload-file", large.to_str().unwrap()], "/up")).await;
        let receipt: serde_json::Value = serde_json::from_slice(&receipt).unwrap();
        assert_eq!(
            (receipt["bytes"].as_u64(), receipt["sha256"].as_str()),
            (Some(3_000_000), Some(sum.as_str()))
        );
        let head = succeeds(curl(&world, &[option, "--head"], "/large.bin")).await;
        let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
        assert!(head.contains("content-length: 3000000"), "{head}");
        let range = succeeds(curl(&world, &[option, "--range", "1000-1999"], "/large.bin")).await;
        assert_eq!(range, world.bytes("/large.bin")[1000..2000]);
        let part = world.folder.path().join("part");
        std::fs::write(&part, &world.bytes("/large.bin")[..100_000]).unwrap();
        let going_on = [option, "--continue-at", "-", "--output", part.to_str().unwrap()];
        succeeds(curl(&world, &going_on, "/large.bin")).await;
        assert_eq!(std::fs::read(&part).unwrap(), world.bytes("/large.bin"), "{option}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn curl_that_does_not_trust_the_ca_refuses_and_is_passed_through_from_then_on() {
    if !at_hand(&["curl"]) {
        return;
    }
    let world = World::start(&[]).await;
    let believing = |ca: &std::path::Path| {
        let mut command = client("curl");
        command.args(["--silent", "--proxy", &format!("http://{}", world.local.proxy), "--cacert"]);
        command.arg(ca).arg(world.url("/a.css"));
        command
    };
    let own = world.folder.path().join("origins.pem");
    let refused = output(believing(&own)).await;
    assert_eq!(refused.status.code(), Some(60), "the peer's certificate is not believed: {refused:?}");
    // The origin's own certificate comes through now, and no other.
    assert_eq!(succeeds(believing(&own)).await, world.bytes("/a.css"));
    let elsewhere = output(believing(&world.ca)).await;
    assert_eq!(elsewhere.status.code(), Some(60), "{elsewhere:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn wget_gets_a_page_with_what_it_needs() {
    if !at_hand(&["wget"]) {
        return;
    }
    let world = World::start(&[]).await;
    let into = world.folder.path().join("got");
    let mut command = client("wget");
    command.args([
        "--quiet",
        "--tries=1",
        "--page-requisites",
        "--no-host-directories",
        "--directory-prefix",
    ]);
    command.arg(&into).arg(format!("--ca-certificate={}", world.ca.display())).arg(world.url("/"));
    command.env("https_proxy", format!("http://{}", world.local.proxy));
    succeeds(command).await;
    for path in ["/index.html", "/a.css", "/a.js", "/a.svg"] {
        let got = std::fs::read(into.join(path.trim_start_matches('/'))).unwrap_or_default();
        assert_eq!(got, world.bytes(path), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nghttp_gets_a_page_with_what_it_needs_on_one_connection() {
    if !at_hand(&["nghttp"]) {
        return;
    }
    let world = World::start(&[]).await;
    let port = world.origin.origins[0].https.port();
    let entrance = entrance(world.local.proxy, format!("{HOST}:{port}")).await;
    let mut command = client("nghttp");
    // It knows no proxy and no other port than its URL's: the host of the request is told apart.
    let authority = format!(":authority: {HOST}:{port}");
    command.args(["--get-assets", "--stat", "--no-verify-peer", "--null-out", "--header", &authority]);
    command.arg(format!("https://{HOST}:{}/", entrance.port()));
    let told = String::from_utf8(succeeds(command).await).unwrap();
    for path in ["/", "/a.css", "/a.js"] {
        let line = told.lines().find(|line| line.ends_with(&format!(" {path}")));
        let line = line.unwrap_or_else(|| panic!("{path} is not among: {told}"));
        assert!(line.split_whitespace().any(|word| word == "200"), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn h2load_keeps_a_hundred_streams_busy_without_an_error() {
    if !at_hand(&["h2load"]) {
        return;
    }
    let world = World::start(&[]).await;
    let port = world.origin.origins[0].https.port();
    let entrance = entrance(world.local.proxy, format!("{HOST}:{port}")).await;
    let mut command = client("h2load");
    command.args(["--requests=4000", "--clients=2", "--max-concurrent-streams=100", "--threads=1"]);
    command.arg(format!("--connect-to={entrance}")).arg(world.url("/a.css"));
    let told = String::from_utf8(succeeds(command).await).unwrap();
    let requests =
        told.lines().find(|line| line.starts_with("requests: ")).unwrap_or_else(|| panic!("{told}"));
    assert!(requests.contains("4000 succeeded, 0 failed, 0 errored, 0 timeout"), "{requests}");
    let statuses = told.lines().find(|line| line.starts_with("status codes: ")).unwrap();
    assert!(statuses.contains("4000 2xx"), "{statuses}");
}
