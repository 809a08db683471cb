//! One page load in a real browser: a fresh Chromium or Firefox with an empty profile, driven by an embedded Node script. Builds
//! the command and reads its result; in which namespace the command runs is the caller's affair.

mod chromium;
mod film;
mod firefox;
mod load;
mod trust;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::Serialize;

use crate::{npm, programs};

pub use film::{Film, FilmError, Frame};
pub use load::{Initiator, PageLoad, Resource, THROWN_AWAY};
pub use trust::trust_in;

/// The scripts, written beside each order and run by `node`.
const CHROMIUMS_DRIVER: &str = include_str!("driver.cjs");
const FIREFOXS_DRIVER: &str = include_str!("firefox.cjs");

/// Bytes of a body that Firefox is to hold until it is looked at: no page of the lab has a larger one. Of all bodies together it holds
/// 200 MB, and refuses to be asked for more.
const HOLD_MOST: u64 = 150_000_000;

/// Height of a picture at most, in pixels: some pages are longer than any picture may be.
const SCREENSHOT_MOST_PX: u32 = 4000;

/// Files by which a driver that pauses says that the page is loaded, and is told to look at it.
const LOADED: &str = "loaded";
const LOOK: &str = "look";
/// How long it waits for that: whoever was to tell it may be gone.
const PAUSE_MOST: Duration = Duration::from_secs(60);

/// Whose browser it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Engine {
    /// Chromium, which does all that an order may want.
    Chromium,
    /// Firefox: neither pictures nor HARs, no HTTP/3 from the first byte on, nothing of who asked.
    Firefox,
}

impl Engine {
    /// As reports call it.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Chromium => "Chromium",
            Engine::Firefox => "Firefox",
        }
    }

    /// Where it is unless a variable of the environment says otherwise, and that.
    fn place(self) -> (&'static str, &'static str) {
        match self {
            Engine::Chromium => ("/usr/bin/chromium", "FARHOP_CHROMIUM"),
            Engine::Firefox => ("/usr/bin/firefox-esr", "FARHOP_FIREFOX"),
        }
    }

    fn driver(self) -> &'static str {
        match self {
            Engine::Chromium => CHROMIUMS_DRIVER,
            Engine::Firefox => FIREFOXS_DRIVER,
        }
    }

    /// What it needs beside itself and node, and who installs both.
    fn needs(self) -> &'static str {
        match self {
            Engine::Chromium => " and playwright-core; './run demo' installs them",
            Engine::Firefox => "; './run test' as root installs them",
        }
    }
}

/// What to load and how.
#[derive(Debug, Clone)]
pub struct Order {
    /// The page.
    pub url: String,
    /// An HTTP proxy, `host:port`; none goes direct.
    pub proxy: Option<String>,
    /// Whether HTTP/2 may be offered to HTTPS origins.
    pub http2: bool,
    /// Hosts that are spoken to over HTTP/3 from the first byte on, port 443.
    pub http3: Vec<String>,
    /// Base64 SHA-256 of the origins' leaf key, trusted without a CA.
    pub spki: Option<String>,
    /// A CA (PEM) that is trusted as its user would have it: in the browser's own store.
    pub authority: Option<PathBuf>,
    /// Hosts that are looked up by another name than their own; nothing else about their requests changes.
    pub looked_up_as: Vec<(String, String)>,
    /// When to give up on the page.
    pub timeout: Duration,
    /// How long nothing may move before the page counts as idle after its load event.
    pub idle: Duration,
    /// A picture of the page at the end (PNG), from its top down to a few screens; absent when the page has none to show.
    pub screenshot: Option<PathBuf>,
    /// A HAR with every body, written at the end.
    pub har: Option<PathBuf>,
    /// A folder for pictures of the page each time that it changes ([`Film::read`]). It costs the browser a little time.
    pub film: Option<PathBuf>,
    /// Whether to find out who made the page ask for each resource; a second observer, which costs a page of many
    /// resources time.
    pub initiators: bool,
    /// Whether the browser waits after the load until it is [to be looked at](Prepared::look), and fetches nothing anew for
    /// that: for who measures the link.
    pub pauses: bool,
}

impl Order {
    /// A direct load of `url` with a minute of patience.
    pub fn new(url: impl Into<String>) -> Order {
        Order {
            url: url.into(),
            proxy: None,
            http2: true,
            http3: Vec::new(),
            spki: None,
            authority: None,
            looked_up_as: Vec::new(),
            timeout: Duration::from_secs(60),
            idle: Duration::from_millis(1500),
            screenshot: None,
            har: None,
            film: None,
            initiators: false,
            pauses: false,
        }
    }
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum BrowserError {
    /// The order's folder cannot be used.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The browser cannot be made to trust a CA.
    #[error("the browser cannot be made to trust {authority}: {reason}")]
    Trust {
        /// The CA's certificate.
        authority: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The order is beyond what this browser is driven to do.
    #[error("the lab's driver of {engine} cannot {what}")]
    Beyond {
        /// The browser's name.
        engine: &'static str,
        /// What is asked for.
        what: &'static str,
    },
    /// The driver ended without a result.
    #[error("the browser did not run: {said} (needs node, {executable}{needs})")]
    Failed {
        /// Its last words.
        said: String,
        /// The browser meant.
        executable: PathBuf,
        /// What it needs besides.
        needs: &'static str,
    },
    /// The result is not what this program's driver writes.
    #[error("the browser's result cannot be read: {0}")]
    Result(#[from] serde_json::Error),
}

/// Where the browser and its driver's library are.
#[derive(Debug, Clone)]
pub struct Browser {
    /// Whose it is.
    pub engine: Engine,
    /// The program to start.
    pub executable: PathBuf,
    /// The folder that holds `node_modules/playwright-core`; Firefox needs nothing of it.
    pub node: PathBuf,
}

/// A load made ready in a folder of its own: run [`command`](Self::command), then read [`finish`](Self::finish).
#[derive(Debug)]
pub struct Prepared {
    folder: tempfile::TempDir,
    browser: Browser,
    /// Whether the folder is the browser's home: where it finds what it trusts.
    at_home: bool,
}

/// The order as the driver reads it.
#[derive(Serialize)]
struct DriverOrder<'a> {
    url: &'a str,
    executable: &'a Path,
    arguments: Vec<String>,
    profile: PathBuf,
    result: PathBuf,
    timeout_ms: u128,
    idle_ms: u128,
    idle_most_ms: u128,
    decode_most_bytes: u64,
    screenshot: Option<&'a Path>,
    har: Option<&'a Path>,
    film: Option<&'a Path>,
    initiators: bool,
    screenshot_most_px: u32,
    /// Whether certificates of nobody whom the browser knows are taken.
    insecure: bool,
    hold_most_bytes: u64,
    loaded: Option<PathBuf>,
    look: PathBuf,
    pause_most_ms: u128,
    thrown_away: &'static str,
}

impl Browser {
    /// Chromium of this machine (`FARHOP_CHROMIUM`, else `/usr/bin/chromium`) with the library in `node`.
    pub fn new(node: impl Into<PathBuf>) -> Browser {
        Browser::of(Engine::Chromium, node)
    }

    /// The browser of this machine; Firefox is `FARHOP_FIREFOX`, else `/usr/bin/firefox-esr`.
    pub fn of(engine: Engine, node: impl Into<PathBuf>) -> Browser {
        let (usual, variable) = engine.place();
        let executable = std::env::var_os(variable).unwrap_or_else(|| usual.into());
        Browser { engine, executable: executable.into(), node: node.into() }
    }

    /// Chromium with the library of the workspace that `folder` lies in, if both are there: for tests, which pass over what
    /// they cannot run. Says on standard error what is missing.
    ///
    /// # Panics
    /// One is missing that was to be installed ([`crate::programs`]).
    pub fn at_hand(folder: &Path) -> Option<Browser> {
        let browser = Browser::new(npm::cache_folder_above(folder));
        if !browser.executable.exists() {
            programs::passed_over("chromium", &format!("is not at {}", browser.executable.display()));
            return None;
        }
        if !browser.node.join("node_modules/playwright-core").exists() {
            programs::passed_over("playwright-core", &format!("is not in {}", browser.node.display()));
            return None;
        }
        Some(browser)
    }

    /// Carries out one order in this process's own network.
    ///
    /// # Errors
    /// The browser did not run.
    pub async fn load(&self, order: &Order) -> Result<PageLoad, BrowserError> {
        let prepared = self.prepare(order)?;
        let mut command = prepared.command()?;
        // Whether it ran is seen by its result.
        let _ = tokio::task::spawn_blocking(move || command.status()).await;
        prepared.finish()
    }

    /// Writes the order of one load into a folder of its own, with an empty profile beside it.
    ///
    /// # Errors
    /// The temporary folder cannot be written, or the order is beyond this browser.
    pub fn prepare(&self, order: &Order) -> Result<Prepared, BrowserError> {
        let is_firefox = self.engine == Engine::Firefox;
        if let Some(what) = firefox::beyond(order).filter(|_| is_firefox) {
            return Err(BrowserError::Beyond { engine: self.engine.name(), what });
        }
        let failed = |path: &Path| {
            let path = path.to_path_buf();
            move |source| BrowserError::Write { path, source }
        };
        let folder = tempfile::Builder::new().prefix("farhop-load-").tempdir();
        let folder = folder.map_err(failed(&std::env::temp_dir()))?;
        let profile = folder.path().join("profile");
        std::fs::create_dir(&profile).map_err(failed(&profile))?;
        if is_firefox {
            let file = profile.join("user.js");
            std::fs::write(&file, firefox::preferences(order)).map_err(failed(&file))?;
        }
        let full = DriverOrder {
            url: &order.url,
            executable: &self.executable,
            arguments: if is_firefox { Vec::new() } else { chromium::arguments(order) },
            profile,
            insecure: order.spki.is_some() || order.authority.is_some(),
            hold_most_bytes: HOLD_MOST,
            result: folder.path().join("result.json"),
            timeout_ms: order.timeout.as_millis(),
            idle_ms: order.idle.as_millis(),
            idle_most_ms: order.idle.as_millis() * 8,
            decode_most_bytes: 8 << 20,
            screenshot: order.screenshot.as_deref(),
            har: order.har.as_deref(),
            film: order.film.as_deref(),
            initiators: order.initiators,
            screenshot_most_px: SCREENSHOT_MOST_PX,
            loaded: order.pauses.then(|| folder.path().join(LOADED)),
            look: folder.path().join(LOOK),
            pause_most_ms: PAUSE_MOST.as_millis(),
            thrown_away: THROWN_AWAY,
        };
        let text = serde_json::to_string(&full)?;
        for (name, text) in [("order.json", text.as_str()), ("driver.cjs", self.engine.driver())] {
            let path = folder.path().join(name);
            std::fs::write(&path, text).map_err(failed(&path))?;
        }
        if let Some(authority) = order.authority.as_ref().filter(|_| !is_firefox) {
            trust::trust(folder.path(), authority)
                .map_err(|reason| BrowserError::Trust { authority: authority.clone(), reason })?;
        }
        Ok(Prepared { folder, browser: self.clone(), at_home: is_firefox || order.authority.is_some() })
    }
}

impl Prepared {
    /// The process to run, wherever the caller wants it. SIGTERM makes it close its browser.
    ///
    /// # Errors
    /// Its log cannot be made.
    pub fn command(&self) -> Result<Command, BrowserError> {
        let log = self.folder.path().join("stderr");
        let file = std::fs::File::create(&log).map_err(|source| BrowserError::Write { path: log, source })?;
        let mut command = Command::new("node");
        if self.browser.engine == Engine::Firefox {
            // Node 20 has it behind this alone.
            command.arg("--experimental-websocket").env("MOZ_CRASHREPORTER_DISABLE", "1");
        }
        command
            .arg(self.folder.path().join("driver.cjs"))
            .arg(self.folder.path().join("order.json"))
            .env("NODE_PATH", self.browser.node.join("node_modules"))
            .env("TMPDIR", self.folder.path()) // what a killed browser leaves behind goes with the folder
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(file);
        if self.at_home {
            command.env("HOME", self.folder.path());
            command.envs(trust::cache_folder().map(|folder| ("XDG_CACHE_HOME", folder)));
        }
        // A proxy of the machine's own environment is no part of the experiment.
        for name in [
            "http_proxy",
            "https_proxy",
            "all_proxy",
            "HTTP_PROXY",
            "HTTPS_PROXY",
            "ALL_PROXY",
            "NODE_OPTIONS",
        ] {
            command.env_remove(name);
        }
        Ok(command)
    }

    /// Whether the page is loaded, or given up, and the browser waits to be looked at. Only where the order wants that.
    pub fn is_loaded(&self) -> bool {
        self.folder.path().join(LOADED).exists()
    }

    /// Lets a browser go on that waits: it may put what it likes on the link from now on.
    ///
    /// # Errors
    /// The order's folder cannot be used.
    pub fn look(&self) -> Result<(), BrowserError> {
        let path = self.folder.path().join(LOOK);
        std::fs::write(&path, "").map_err(|source| BrowserError::Write { path, source })
    }

    /// The result, once the process has ended.
    ///
    /// # Errors
    /// The browser did not run: missing, broken, or its library is.
    pub fn finish(self) -> Result<PageLoad, BrowserError> {
        match std::fs::read_to_string(self.folder.path().join("result.json")) {
            Ok(text) => Ok(serde_json::from_str(&text)?),
            Err(_) => {
                let log = std::fs::read_to_string(self.folder.path().join("stderr")).unwrap_or_default();
                let said =
                    log.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it was stopped").to_owned();
                let Browser { engine, executable, .. } = self.browser;
                Err(BrowserError::Failed { said, executable, needs: engine.needs() })
            }
        }
    }
}
