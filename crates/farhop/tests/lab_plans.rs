//! `farhop lab list`, `show` and `run` in the real kernel. What needs root says so and passes without; nothing here asserts how
//! long a load took, but for what no machine can beat.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const PLAN: &str = r#"
title = "A few objects, in every way"
runs = { least = 1, most = 1, within = "5 %" }

[[page]]
name = "few"
objects = 4
object = "2 KB"

[[link]]
name = "leo-100m"

[[variant]]
name = "old"
protocol = "http/1.0"
[[variant]]
name = "pipelined"
protocol = "http/1.1"
pipeline = 4
connections = 1
[[variant]]
name = "two"
protocol = "http/2"
[[variant]]
name = "resumed"
protocol = "http/2"
handshake = "resumed"
[[variant]]
name = "pushed"
protocol = "http/2"
push = "100 %"
[[variant]]
name = "early"
handshake = "0-rtt"
connections = 1
[[variant]]
name = "farhop"
through = "farhop-identity"
"#;

fn lab(arguments: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_farhop"));
    command.arg("lab").args(arguments).current_dir(folder).output().expect("the program starts")
}

fn error(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.lines().count() == 1, "{said}");
    said
}

#[test]
fn the_plans_that_come_along_are_listed_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    let listed = lab(&["list"], folder.path());
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.lines().count() >= 20 && listed.contains("http2-4a"), "{listed}");
    let shown = lab(&["show", "http2-4a", "--quick"], folder.path());
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("\n44 cells, 44 loads, about "), "{shown}");
    let unknown = error(&lab(&["show", "http2-4c"], folder.path()));
    assert!(unknown.contains("no plan is called 'http2-4c': there are httpep-5-6, "), "{unknown}");
    std::fs::write(folder.path().join("bad.toml"), PLAN.replace("pipeline = 4", "pipeline = 0")).unwrap();
    let bad = error(&lab(&["run", "bad.toml"], folder.path()));
    assert!(bad.contains("bad.toml:") && bad.contains("'pipeline' is how many"), "{bad}");
}

#[test]
fn a_plan_is_carried_out_in_every_way_and_resumed_without_loading_anything_again() {
    if let Err(reason) = farhop_testbed::require_privileges() {
        eprintln!("skipped: {reason}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mine.toml"), PLAN).unwrap();
    let run = lab(&["run", "mine.toml"], folder.path());
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let out = folder.path().join("target/lab/mine");
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    let found: Value = serde_json::from_str(&read("result.json")).unwrap();
    assert_eq!(found["complete"], true);
    let cells = found["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 7);
    for cell in cells {
        assert_eq!((&cell["runs"], &cell["failures"]), (&1.into(), &Value::Array(Vec::new())), "{cell}");
        let median = |measure: &str| cell["values"][measure]["median"].as_f64().unwrap();
        assert!(median("load") > 0.028, "a round trip at least: {cell}");
        assert!(median("bytes") > 8.0 || cell["variant"] == "farhop", "four objects of 2 KB: {cell}");
        let requests = if cell["variant"] == "pushed" { 1.0 } else { 5.0 };
        assert_eq!(median("requests"), requests, "{cell}");
        let connections = match cell["variant"].as_str().unwrap() {
            "pipelined" | "two" | "resumed" | "pushed" | "early" => 1.0,
            _ => median("connections"),
        };
        assert_eq!(median("connections"), connections, "{cell}");
    }
    assert!(
        read("report.html").contains("A few objects, in every way")
            && read("result.csv").lines().count() > 50
    );
    let journal = read("runs.jsonl");
    let again = lab(&["run", "mine.toml", "--resume"], folder.path());
    let said = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(again.status.success() && said.contains("7 loads are there already"), "{said}");
    assert_eq!(read("runs.jsonl"), journal);
    std::fs::write(folder.path().join("mine.toml"), PLAN.replace("2 KB", "3 KB")).unwrap();
    let changed = error(&lab(&["run", "mine.toml", "--resume"], folder.path()));
    assert!(changed.contains("holds runs of another plan"), "{changed}");
    assert_eq!(read("runs.jsonl"), journal, "and stays as it is");
}

const OTHERS: &str = r#"
title = "What of the testbed is different"
runs = { least = 1, most = 1, within = "5 %" }

[[page]]
name = "few"
objects = 4
object = "2 KB"
[[page]]
name = "up"
upload = "40 KB"

[[link]]
name = "leo-100m"

[[variant]]
name = "plain"
[[variant]]
name = "two"
protocol = "http/2"
[[variant]]
name = "tunnelled"
protocol = "http/2"
vpn = true
[[variant]]
name = "window"
initial_window = 3
server_congestion = "reno"
[[variant]]
name = "farhop"
through = "farhop-identity"
carrier = "tcp"
tcp_connections = 1
tcp_congestion = "reno"
carrier_window = 3
[[variant]]
name = "three"
protocol = "http/3"
[[variant]]
name = "lacking"
server_congestion = "nosuch"

[[plot]]
figure = "2"
title = "Over time"
x = "time"
"#;

#[test]
fn windows_tunnels_uploads_and_several_testbeds_at_once_are_carried_out() {
    if let Err(reason) = farhop_testbed::require_privileges() {
        eprintln!("skipped: {reason}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("others.toml"), OTHERS).unwrap();
    let run = lab(&["run", "others.toml", "--lanes", "2"], folder.path());
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let out = folder.path().join("target/lab/others");
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    let found: Value = serde_json::from_str(&read("result.json")).unwrap();
    let schema = serde_json::from_str(farhop_report::STUDY_SCHEMA).unwrap();
    let complaints: Vec<String> = jsonschema::validator_for(&schema)
        .unwrap()
        .iter_errors(&found)
        .map(|error| error.to_string())
        .collect();
    assert_eq!(complaints, [""; 0]);
    let cells = found["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 14);
    let caddy = cells.iter().filter(|cell| cell["variant"] == "three").all(|cell| cell["runs"] == 1);
    for cell in cells {
        let variant = cell["variant"].as_str().unwrap();
        if variant == "lacking" {
            let why = cell["failures"][0].as_str().unwrap_or_default();
            assert!(why.contains("has no TCP congestion control 'nosuch'"), "{cell}");
            continue;
        }
        if variant == "three" && !caddy {
            assert_eq!(cell["failures"][0], "not present: caddy", "{cell}");
            continue;
        }
        assert_eq!((&cell["runs"], &cell["failures"]), (&1.into(), &Value::Array(Vec::new())), "{cell}");
        let median = |measure: &str| cell["values"][measure]["median"].as_f64();
        if cell["page"] == "up" {
            assert!(median("bytes-up").unwrap() > 40.0, "{cell}");
        }
        // Names are asked for within the tunnel, too: all that is seen is one flow of UDP.
        if variant == "tunnelled" {
            assert_eq!(median("link-connections"), Some(1.0), "{cell}");
        }
        assert_eq!(median("cpu-remote").is_some(), variant == "farhop", "{cell}");
        assert_eq!(median("memory-ground").is_some_and(|megabytes| megabytes > 1.0), variant == "farhop");
    }
    let dynamics = found["dynamics"].as_array().unwrap();
    let counting = if caddy { 12 } else { 10 };
    assert_eq!(dynamics.len(), counting, "one load of each cell that counts");
    for load in dynamics {
        let series = &load["series"];
        let sum = |way: &str| series[way].as_array().unwrap().iter().filter_map(Value::as_f64).sum::<f64>();
        assert!(sum("down") > 0.0 && sum("up") > 0.0, "{load}");
        assert!(!series["connections"].as_array().unwrap().is_empty(), "{load}");
    }
    let html = read("report.html");
    assert!(html.contains("Waterfalls of few over leo-100m") && html.contains("Figure 2: Over time"));
    assert_eq!(read("loads.jsonl").lines().count(), counting);

    // From a fresh clone: what is committed is all there is.
    let clone = tempfile::tempdir().unwrap();
    let results = clone.path().join("docs/experiments/results");
    std::fs::create_dir_all(&results).unwrap();
    std::fs::copy(out.join("runs.jsonl"), results.join("others.jsonl")).unwrap();
    std::fs::write(clone.path().join("others.toml"), OTHERS).unwrap();
    let again = lab(&["run", "others.toml", "--resume"], clone.path());
    let said = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(again.status.success() && said.contains("14 loads are there already"), "{said}");
}

const BETWEEN: &str = r#"
title = "What stands in between"
runs = { least = 1, most = 1, within = "5 %" }

[[page]]
name = "few"
objects = 4
object = "2 KB"

[[link]]
name = "leo-100m"

[[variant]]
name = "direct"
protocol = "http/1.0"
[[variant]]
name = "split"
protocol = "http/1.0"
through = "farhop-split"
[[variant]]
name = "split-terminal"
protocol = "http/1.0"
through = "farhop-split"
pep = "terminal"
[[variant]]
name = "split-gateway"
protocol = "http/1.0"
through = "farhop-split"
pep = "gateway"
[[variant]]
name = "split-http2"
protocol = "http/2"
through = "farhop-split"
[[variant]]
name = "after"
protocol = "http/1.0"
[[variant]]
name = "open"
protocol = "http/2"
handshake = "resumed"
fast_open = true
[[variant]]
name = "nginx"
through = "nginx"
[[variant]]
name = "nginx-https"
through = "nginx"
handshake = "full"
[[variant]]
name = "nginx-http2"
through = "nginx"
protocol = "http/2"
"#;

/// Runs a plan and gives its result; none where there are no privileges.
fn carried_out(name: &str, plan: &str) -> Option<Value> {
    if let Err(reason) = farhop_testbed::require_privileges() {
        eprintln!("skipped: {reason}");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(name), plan).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_farhop"));
    command.args(["lab", "run", name, "--out", "out"]).current_dir(folder.path());
    let run = command.output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let text = std::fs::read_to_string(folder.path().join("out/result.json")).unwrap();
    Some(serde_json::from_str(&text).unwrap())
}

/// A measure's median of a variant's only cell.
fn median(found: &Value, variant: &str, measure: &str) -> Option<f64> {
    let cells = found["cells"].as_array().unwrap();
    let cell = cells.iter().find(|cell| cell["variant"] == variant).unwrap();
    cell["values"][measure]["median"].as_f64()
}

/// Whether every load counts, but for what the machine lacks.
fn all_count(found: &Value) {
    for cell in found["cells"].as_array().unwrap() {
        let why = cell["failures"][0].as_str().unwrap_or_default();
        assert!(cell["runs"] == 1 && why.is_empty() || why.starts_with("not present"), "{cell}");
    }
}

#[test]
fn peps_at_either_end_take_what_passes_and_nginx_stands_in_for_origins() {
    let Some(found) = carried_out("between.toml", BETWEEN) else { return };
    all_count(&found);
    let of = |variant: &str, measure: &str| median(&found, variant, measure);
    // Each object has a connection of its own, and names are asked past the PEP.
    let direct = of("direct", "link-connections").unwrap();
    assert!(of("split", "link-connections").unwrap() < direct, "a carrier for five connections");
    for alone in ["split-terminal", "split-gateway", "after"] {
        // Ground may make one ahead.
        assert!(of(alone, "link-connections").unwrap() >= direct, "{alone}: the link has TCP of the kernel");
    }
    for split in ["split", "split-terminal", "split-gateway", "split-http2"] {
        assert!(of(split, "cpu-remote").is_some() && of(split, "memory-ground").unwrap() > 1.0);
    }
    assert_eq!(of("after", "cpu-remote"), None);
    let nginx = ["nginx", "nginx-https", "nginx-http2"].map(|variant| of(variant, "load").is_some());
    if nginx.contains(&true) {
        assert_eq!(nginx, [true; 3]);
        assert!(of("nginx", "memory-ground").unwrap() > 0.5 && of("nginx", "cpu-remote").is_none());
        assert_eq!(of("nginx-http2", "connections"), Some(1.0));
    }
    let notes = found["notes"].as_array().unwrap();
    let closed = notes.iter().filter_map(Value::as_str).find(|note| note.contains("Fast Open"));
    assert_eq!(closed, None, "what the client says first goes along with its SYN");
}

const TERMINALS: &str = r#"
title = "Several terminals"
runs = { least = 1, most = 1, within = "5 %" }

[[page]]
name = "few"
objects = 4
object = "2 KB"

[[link]]
name = "shared"
like = "leo-100m"
terminals = 3

[[variant]]
name = "direct"
[[variant]]
name = "split"
through = "farhop-split"
[[variant]]
name = "gateway"
through = "farhop-split"
pep = "gateway"
[[variant]]
name = "farhop"
through = "farhop-identity"
[[variant]]
name = "farhop-https"
through = "farhop-identity"
handshake = "full"
"#;

#[test]
fn several_terminals_load_through_a_remote_of_their_own_each() {
    let Some(found) = carried_out("terminals.toml", TERMINALS) else { return };
    all_count(&found);
    for variant in ["direct", "split", "gateway", "farhop", "farhop-https"] {
        let of = |measure: &str| median(&found, variant, measure).unwrap();
        assert_eq!(of("requests"), 15.0, "three users, a document and four objects: {variant}");
        assert!(of("last-user") >= of("load"), "{variant}");
    }
    for variant in ["farhop", "farhop-https"] {
        let crossed = median(&found, variant, "link-requests").unwrap();
        assert!((3.0..=15.0).contains(&crossed), "each remote asks for its own document: {crossed}");
    }
}

const FIREFOX: &str = r#"
title = "In Firefox"
runs = { least = 1, most = 1, within = "5 %" }
measures = ["load", "first-paint", "bytes", "requests", "connections"]

[[page]]
name = "httpep-5"

[[link]]
name = "leo-100m"

[[variant]]
name = "http"
client = "firefox"
[[variant]]
name = "https"
client = "firefox"
handshake = "full"
[[variant]]
name = "http2"
client = "firefox"
protocol = "http/2"
[[variant]]
name = "farhop"
client = "firefox"
through = "farhop-identity"
[[variant]]
name = "farhop-http2"
client = "firefox"
protocol = "http/2"
through = "farhop-identity"
"#;

#[test]
fn firefox_loads_directly_and_through_farhop_in_every_version_that_it_is_driven_to() {
    if !farhop_workload::programs::at_hand(&["firefox-esr", "node"]) {
        return;
    }
    let Some(found) = carried_out("firefox.toml", FIREFOX) else { return };
    all_count(&found);
    for variant in ["http", "https", "http2", "farhop", "farhop-http2"] {
        let of = |measure: &str| median(&found, variant, measure).unwrap();
        assert_eq!(of("requests"), 6.0, "the document and five images: {variant}");
        assert!(of("first-paint") > 0.0 && of("bytes") > 50.0 && of("connections") >= 1.0, "{variant}");
    }
    let made = median(&found, "http2", "connections").unwrap();
    assert!((1.0..=2.0).contains(&made), "one, and one that it makes out of impatience: {made}");
}

const BROWSER: &str = r#"
title = "In a browser"
runs = { least = 1, most = 1, within = "5 %" }
measures = ["load", "first-paint", "largest-paint", "speed-index", "bytes", "requests"]

[[page]]
name = "httpep-5"

[[link]]
name = "leo-100m"

[[variant]]
name = "one"
client = "chromium"
[[variant]]
name = "two"
client = "chromium"
protocol = "http/2"
[[variant]]
name = "farhop"
client = "chromium"
through = "farhop-identity"
"#;

#[test]
fn a_browser_loads_with_paints_and_a_film() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    if let Err(reason) = farhop_testbed::require_privileges() {
        eprintln!("skipped: {reason}");
        return;
    }
    let Some(browser) = farhop_workload::browser::Browser::at_hand(root) else { return };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("browser.toml"), BROWSER).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_farhop"));
    command.args(["lab", "run", "browser.toml"]).current_dir(folder.path()).env("FARHOP_NODE", &browser.node);
    let run = command.output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let out = folder.path().join("target/lab/browser");
    let text = std::fs::read_to_string(out.join("result.json")).unwrap();
    let found: Value = serde_json::from_str(&text).unwrap();
    for cell in found["cells"].as_array().unwrap() {
        assert_eq!((&cell["runs"], &cell["failures"]), (&1.into(), &Value::Array(Vec::new())), "{cell}");
        let median = |measure: &str| cell["values"][measure]["median"].as_f64().unwrap();
        assert_eq!(median("requests"), 6.0, "the document and five images: {cell}");
        assert!(median("first-paint") <= median("largest-paint"), "{cell}");
        // Nothing is complete before the first paint, nor later than what moved last.
        assert!(median("speed-index") > 0.02 && median("speed-index") < 60.0, "{cell}");
    }
    let html = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(html.contains("data:image/jpeg;base64,"), "the film is in the report");
}

#[test]
fn a_page_is_recorded_and_loaded_again_as_it_was() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let Some(browser) = farhop_workload::browser::Browser::at_hand(root) else { return };
    // A server of one page for one browser: each answer ends its connection.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
                head.push(byte[0]);
            }
            let path = String::from_utf8_lossy(&head).split(' ').nth(1).unwrap_or_default().to_owned();
            let (status, media, body) = match path.as_str() {
                "/page" => ("200 OK", "text/html", "<!doctype html><link rel=stylesheet href=/s?v=1><p>text"),
                "/s?v=1" => ("200 OK", "text/css", "p { color: red }"),
                _ => ("404 Not Found", "text/plain", "nothing"),
            };
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Type: {media}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            drop(stream.write_all(format!("{head}{body}").as_bytes()));
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let record = |url: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_farhop"));
        command.args(["lab", "record", url, "--out", "page.har", "--timeout", "20 s"]);
        command.current_dir(folder.path()).env("FARHOP_NODE", &browser.node).output().unwrap()
    };
    let recorded = record(&format!("http://{address}/page"));
    assert!(recorded.status.success(), "{}", String::from_utf8_lossy(&recorded.stderr));
    let recording = farhop_workload::recorded::Recording::read(&folder.path().join("page.har")).unwrap();
    let page = recording.unfold("again", None, &folder.path().join("again")).unwrap();
    assert_eq!(page.entry, "/page");
    let read = |name: &str| std::fs::read_to_string(page.sites[0].folder.join(name)).unwrap();
    assert_eq!((read("s").as_str(), read("page").contains("<p>text")), ("p { color: red }", true));
    let missing = error(&record(&format!("http://{address}/nothing")));
    assert!(missing.contains("does not load: status 404"), "{missing}");
}
