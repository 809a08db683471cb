//! Firefox without a window, driven over WebDriver BiDi (W3C), with a profile that the test wrote.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use super::{PATIENCE, until};

/// What every profile sets: what Firefox would ask of its maker is off, and this machine is reached through a proxy as any
/// other.
const QUIET: &str = r#"
user_pref("network.proxy.no_proxies_on", "");
user_pref("network.proxy.allow_hijacking_localhost", true);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("app.normandy.enabled", false);
user_pref("app.update.enabled", false);
user_pref("browser.safebrowsing.downloads.remote.enabled", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("services.settings.server", "http://localhost:1");
user_pref("toolkit.telemetry.enabled", false);
"#;

/// Writes the preferences of a profile: those of each, and `more` with their values as `user.js` has them.
pub(crate) fn write_preferences(profile: &Path, more: &[(&str, String)]) {
    let more = more.iter().map(|(name, value)| format!("user_pref(\"{name}\", {value});\n"));
    std::fs::create_dir_all(profile).unwrap();
    std::fs::write(profile.join("user.js"), QUIET.to_owned() + &more.collect::<String>()).unwrap();
}

/// The preferences that send everything through `proxy`.
pub(crate) fn through(proxy: SocketAddr) -> Vec<(&'static str, String)> {
    let (host, port) = (format!("\"{}\"", proxy.ip()), proxy.port().to_string());
    vec![
        ("network.proxy.type", "1".into()),
        ("network.proxy.http", host.clone()),
        ("network.proxy.http_port", port.clone()),
        ("network.proxy.ssl", host),
        ("network.proxy.ssl_port", port),
    ]
}

/// A browser that runs until this is dropped.
pub(crate) struct Firefox {
    child: Child,
    socket: WebSocketStream<TcpStream>,
    last: u64,
    context: String,
    /// Name and password for whoever asks, and how often that was.
    credentials: Option<(String, String)>,
    pub(crate) asked: u32,
}

impl Firefox {
    /// Starts it with the profile in `folder`, which holds everything that it writes.
    pub(crate) async fn start(folder: &Path, credentials: Option<(&str, &str)>) -> Firefox {
        let profile = folder.join("profile");
        let log = std::fs::File::create(folder.join("firefox.log")).unwrap();
        let child = Command::new("firefox-esr")
            .args(["--headless", "--no-remote", "--remote-debugging-port", "0", "--profile"])
            .arg(&profile)
            .env("HOME", folder)
            .env("TMPDIR", folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let port = until("Firefox listens", async || {
            let told = std::fs::read_to_string(profile.join("WebDriverBiDiServer.json")).ok()?;
            serde_json::from_str::<Value>(&told).ok()?["ws_port"].as_u64()
        })
        .await;
        let stream = TcpStream::connect(("127.0.0.1", u16::try_from(port).unwrap())).await.unwrap();
        let (socket, _) =
            tokio_tungstenite::client_async(format!("ws://127.0.0.1:{port}/session"), stream).await.unwrap();
        let credentials = credentials.map(|(name, password)| (name.to_owned(), password.to_owned()));
        let mut firefox = Firefox { child, socket, last: 0, context: String::new(), credentials, asked: 0 };
        firefox.call("session.new", json!({ "capabilities": {} })).await.unwrap();
        let tree = firefox.call("browsingContext.getTree", json!({})).await.unwrap();
        firefox.context = tree["contexts"][0]["context"].as_str().unwrap().to_owned();
        if firefox.credentials.is_some() {
            firefox.call("session.subscribe", json!({ "events": ["network.authRequired"] })).await.unwrap();
            firefox.call("network.addIntercept", json!({ "phases": ["authRequired"] })).await.unwrap();
        }
        firefox
    }

    /// Opens a page and waits until it has loaded; an error says why it has not.
    pub(crate) async fn open(&mut self, url: &str) -> Result<(), String> {
        let page = json!({ "context": self.context, "url": url, "wait": "complete" });
        self.call("browsingContext.navigate", page).await.map(drop)
    }

    /// The value of an expression on the page: text, a number, true or false.
    pub(crate) async fn value(&mut self, expression: &str) -> Value {
        let asked = json!({
            "expression": expression,
            "target": { "context": self.context },
            "awaitPromise": true,
        });
        let answer = self.call("script.evaluate", asked).await.unwrap();
        answer["result"]["value"].clone()
    }

    /// Gives a command and waits for what becomes of it; whoever asks for a password meanwhile gets it.
    async fn call(&mut self, method: &str, params: Value) -> Result<Value, String> {
        let id = self.send(method, &params).await;
        let answer = async {
            loop {
                let Some(Ok(message)) = self.socket.next().await else {
                    return Err("Firefox has ended".into());
                };
                let Message::Text(text) = message else { continue };
                let said: Value = serde_json::from_str(&text).unwrap();
                if said["method"] == "network.authRequired" {
                    self.asked += 1;
                    let request = &said["params"]["request"]["request"];
                    let (name, password) = self.credentials.clone().unwrap();
                    let credentials = json!({ "type": "password", "username": name, "password": password });
                    let answer = json!({
                        "request": request,
                        "action": "provideCredentials",
                        "credentials": credentials,
                    });
                    self.send("network.continueWithAuth", &answer).await;
                }
                if said["id"] == id {
                    let error = || format!("{}: {}", said["error"], said["message"]);
                    return if said["type"] == "success" { Ok(said["result"].clone()) } else { Err(error()) };
                }
            }
        };
        timeout(PATIENCE, answer)
            .await
            .unwrap_or_else(|_| panic!("Firefox does not answer {method} {params}"))
    }

    async fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.last += 1;
        let command = json!({ "id": self.last, "method": method, "params": params });
        self.socket.send(Message::text(command.to_string())).await.unwrap();
        self.last
    }
}

impl Drop for Firefox {
    fn drop(&mut self) {
        // It may have ended by itself, which is all that a drop wants.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
