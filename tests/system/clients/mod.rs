//! The clients and servers that people really use, through an intercepting `farhop local`: curl, wget, nghttp, h2load, NSS's
//! tstclnt, Firefox and Chromium in front; nginx, Apache httpd and NSS's selfserv behind. `./run test` installs them as root; where nobody has, a test whose
//! program is missing says so and passes over.

mod accounts;
mod ech;
mod firefox;
mod flawed;
mod left_to_browsers;
mod live;
mod priorities;
mod servers;
mod tools;
mod trickling;

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use farhop_testkit::pattern;
use farhop_workload::origins::{OriginSpec, OriginsSpec, Ready, serve};
pub(crate) use farhop_workload::programs::at_hand;

use crate::support::Local;

/// The name under which everything is served: it needs no DNS, and goes into the SNI as any other.
const HOST: &str = "localhost";

/// Seconds after which a client is ended: nothing here takes so long unless it hangs.
const PATIENCE_S: &str = "120";

/// Origins with a CA of their own, and a `farhop local` that intercepts on their port.
struct World {
    local: Local,
    /// Farhop's CA (PEM), for clients to trust.
    ca: PathBuf,
    /// The lab's own origin, with what it saw in `origins.log`.
    origin: Ready,
    folder: tempfile::TempDir,
}

impl World {
    /// With the lab's own origin, and further ports to be intercepted.
    async fn start(ports: &[u16]) -> World {
        World::start_with(ports, &[]).await
    }

    /// The same with these settings (`key=value`) besides.
    async fn start_with(ports: &[u16], more: &[String]) -> World {
        World::start_over("none", ports, more).await
    }

    /// The same over this link.
    async fn start_over(link: &str, ports: &[u16], more: &[String]) -> World {
        let folder = tempfile::tempdir().unwrap();
        let identities = folder.path().join("identities");
        std::fs::create_dir(&identities).unwrap();
        let origin = OriginSpec::new(HOST, Ipv4Addr::LOCALHOST, site(folder.path()));
        let spec = OriginsSpec {
            ca: folder.path().join("origins.pem"),
            log: Some(folder.path().join("origins.log")),
            identities: Some(identities),
            ..OriginsSpec::on_free_ports(vec![origin], folder.path())
        };
        let origin = serve(&spec).await.unwrap();
        let ca = folder.path().join("farhop.pem");
        let ports: Vec<String> =
            ports.iter().chain([&origin.origins[0].https.port()]).map(ToString::to_string).collect();
        let ports = ports.join(",");
        let path = |path: &Path| serde_json::json!(path).to_string();
        let state = folder.path().join("consent.json");
        let own = [
            format!("remote.interception.ports=\"{ports}\""),
            format!("remote.connect_ports=\"{ports}\""),
            format!("remote.interception.state={}", path(&state)),
            format!("ground.origin.roots={}", path(&spec.ca)),
        ];
        let sets = own.iter().chain(more).flat_map(|set| ["--set", set]);
        let options =
            ["--link", link, "--intercept", "--ca-out", ca.to_str().unwrap()].into_iter().chain(sets);
        let local = Local::allowed(&options.collect::<Vec<_>>()).await;
        World { local, ca, origin, folder }
    }

    /// Host and port of the lab's own origin.
    fn authority(&self) -> String {
        format!("{HOST}:{}", self.origin.origins[0].https.port())
    }

    /// A URL of it.
    fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.authority())
    }

    /// Requests that the lab's own origin has seen for a path, as its log has them.
    fn seen(&self, path: &str) -> Vec<serde_json::Value> {
        let log = std::fs::read_to_string(self.folder.path().join("origins.log")).unwrap();
        let lines = log.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        lines.filter(|line| line["request"].as_str().is_some_and(|asked| asked.ends_with(path))).collect()
    }

    /// Where each of the files lies.
    fn file(&self, path: &str) -> PathBuf {
        self.folder.path().join("site").join(path.trim_start_matches('/'))
    }

    /// A file's bytes.
    fn bytes(&self, path: &str) -> Vec<u8> {
        std::fs::read(self.file(path)).unwrap()
    }
}

/// A small site: a page with what it needs, and a file that is larger than any window.
fn site(folder: &Path) -> PathBuf {
    let site = folder.join("site");
    std::fs::create_dir(&site).unwrap();
    let page = "<!doctype html><title>t</title><link rel=stylesheet href=a.css><script src=a.js></script>\
                <body bgcolor=#00c000><p>hello<img src=a.svg></body>";
    let svg =
        "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><rect width='9' height='9'/></svg>";
    for (name, bytes) in [
        ("index.html", page.as_bytes().to_vec()),
        ("a.css", b"p { color: red }".to_vec()),
        ("a.js", b"fetch('/ran.txt')".to_vec()),
        ("ran.txt", b"the script ran".to_vec()),
        ("a.svg", svg.into()),
        ("large.bin", pattern::bytes_at(7, 0, 3_000_000).to_vec()),
    ] {
        std::fs::write(site.join(name), bytes).unwrap();
    }
    site
}

/// A client's command: no proxy but the one it is told, no longer than patience lasts.
fn client(program: &str) -> Command {
    let mut command = Command::new("timeout");
    command.args([PATIENCE_S, program]).stdin(Stdio::null());
    for name in ["http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"]
    {
        command.env_remove(name);
    }
    command
}

/// Runs a command to its end.
async fn output(mut command: Command) -> Output {
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

/// Runs a command that has to succeed; gives what it printed.
async fn succeeds(command: Command) -> Vec<u8> {
    let line = format!("{command:?}");
    let output = output(command).await;
    assert!(output.status.success(), "{line}: {} {}", output.status, String::from_utf8_lossy(&output.stderr));
    output.stdout
}
