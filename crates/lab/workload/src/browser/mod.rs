//! One page load in a real browser: a fresh Chromium with an empty profile, driven by an embedded Node script. Builds the
//! command and reads its result; in which namespace the command runs is the caller's affair.

mod chromium;
mod film;
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

/// The script, written beside each order and run by `node`.
const DRIVER: &str = include_str!("driver.cjs");

/// Height of a picture at most, in pixels: some pages are longer than any picture may be.
const SCREENSHOT_MOST_PX: u32 = 4000;

/// Files by which a driver that pauses says that the page is loaded, and is told to look at it.
const LOADED: &str = "loaded";
const LOOK: &str = "look";
/// How long it waits for that: whoever was to tell it may be gone.
const PAUSE_MOST: Duration = Duration::from_secs(60);

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
    /// The driver ended without a result.
    #[error(
        "the browser did not run: {said} (needs node, {executable} and playwright-core; './run demo' installs them)"
    )]
    Failed {
        /// Its last words.
        said: String,
        /// The browser meant.
        executable: PathBuf,
    },
    /// The result is not what this program's driver writes.
    #[error("the browser's result cannot be read: {0}")]
    Result(#[from] serde_json::Error),
}

/// Where the browser and its driver's library are.
#[derive(Debug, Clone)]
pub struct Browser {
    /// The Chromium to start.
    pub executable: PathBuf,
    /// The folder that holds `node_modules/playwright-core`.
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
    loaded: Option<PathBuf>,
    look: PathBuf,
    pause_most_ms: u128,
    thrown_away: &'static str,
}

impl Browser {
    /// The browser of this machine (`FARHOP_CHROMIUM`, else `/usr/bin/chromium`) with the library in `node`.
    pub fn new(node: impl Into<PathBuf>) -> Browser {
        let executable = std::env::var_os("FARHOP_CHROMIUM").unwrap_or_else(|| "/usr/bin/chromium".into());
        Browser { executable: executable.into(), node: node.into() }
    }

    /// The same with the library of the workspace that `folder` lies in, if both are there: for tests, which pass over what
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
    /// The temporary folder cannot be written.
    pub fn prepare(&self, order: &Order) -> Result<Prepared, BrowserError> {
        let failed = |path: &Path| {
            let path = path.to_path_buf();
            move |source| BrowserError::Write { path, source }
        };
        let folder = tempfile::Builder::new().prefix("farhop-load-").tempdir();
        let folder = folder.map_err(failed(&std::env::temp_dir()))?;
        let profile = folder.path().join("profile");
        std::fs::create_dir(&profile).map_err(failed(&profile))?;
        let full = DriverOrder {
            url: &order.url,
            executable: &self.executable,
            arguments: chromium::arguments(order),
            profile,
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
        for (name, text) in [("order.json", text.as_str()), ("driver.cjs", DRIVER)] {
            let path = folder.path().join(name);
            std::fs::write(&path, text).map_err(failed(&path))?;
        }
        if let Some(authority) = &order.authority {
            trust::trust(folder.path(), authority)
                .map_err(|reason| BrowserError::Trust { authority: authority.clone(), reason })?;
        }
        Ok(Prepared { folder, browser: self.clone(), at_home: order.authority.is_some() })
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
                Err(BrowserError::Failed { said, executable: self.browser.executable })
            }
        }
    }
}
