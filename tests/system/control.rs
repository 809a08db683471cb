//! What both ends are asked over their control sockets: nothing that they do not know is passed over, and no more is forgotten than was
//! said.

use std::path::{Path, PathBuf};

use farhop_control::Client;
use farhop_testkit::{File, Site, SiteOrigin};
use serde_json::{Value, json};

use crate::support::{Local, get};

/// `farhop local` with a socket of each end and a store at ground, and a folder that they are in.
struct Both {
    local: Local,
    folder: tempfile::TempDir,
}

impl Both {
    async fn start() -> Both {
        let folder = tempfile::tempdir().unwrap();
        let set = |name: &str, file: &str| format!("ground.{name}={}", folder.path().join(file).display());
        let sets = [set("control", "ground.sock"), set("store.directory", "store"), set("store.key", "key")];
        let options: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
        let local = Local::allowed(&options).await;
        Both { local, folder }
    }

    fn ground(&self) -> PathBuf {
        self.folder.path().join("ground.sock")
    }

    fn sockets(&self) -> [PathBuf; 2] {
        [self.local.control().to_owned(), self.ground()]
    }

    /// Whether the origin was asked for this.
    async fn crosses(&self, site: &SiteOrigin, path: &str) -> bool {
        let before = site.times(path);
        assert_eq!(get(self.local.proxy, &site.url(path)).await.status, 200);
        site.times(path) > before
    }
}

/// What comes of a command: its result, or why it was refused.
async fn call(socket: &Path, command: &str, args: Value) -> Result<Value, String> {
    let mut client = Client::connect(socket).await.unwrap();
    client.call(command, args).await.map_err(|error| error.to_string())
}

fn file(control: &str) -> File {
    File::new("text/plain", "0123456789".repeat(10)).field("cache-control", control)
}

async fn site() -> SiteOrigin {
    let shared = || file("max-age=600");
    Site::new()
        .file("/k1", shared())
        .file("/k2", shared())
        .file("/own", file("private, max-age=600"))
        .serve()
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn no_command_of_either_end_passes_over_what_it_does_not_know() {
    let (both, site) = (Both::start().await, site().await);
    assert!(both.crosses(&site, "/k1").await);
    for socket in both.sockets() {
        let commands = call(&socket, "commands", Value::Null).await.unwrap();
        let commands: Vec<&String> = commands.as_object().unwrap().keys().collect();
        assert!(commands.len() >= 7, "{commands:?}");
        for command in commands {
            let refused = call(&socket, command, json!({"nonsense": 1})).await.unwrap_err();
            assert!(
                refused.starts_with(&format!("unknown argument 'nonsense': {command} takes ")),
                "{refused}"
            );
            let refused = call(&socket, command, json!("nonsense")).await.unwrap_err();
            assert!(refused.starts_with("\"args\" is no JSON object: "), "{refused}");
        }
    }
    assert!(!both.crosses(&site, "/k1").await, "it was forgotten");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_is_forgotten_and_nothing_else() {
    let (both, site) = (Both::start().await, site().await);
    let all = ["/k1", "/k2", "/own"];
    for path in all {
        assert!(both.crosses(&site, path).await, "{path}");
    }
    let flush = async |args: Value| {
        for socket in both.sockets() {
            let user = args.get("user").is_some() && socket == both.ground();
            let outcome = call(&socket, "flush", args.clone()).await;
            assert_eq!(outcome.is_ok(), !user, "{outcome:?}");
        }
    };
    for (args, gone) in [
        (json!({"url": "http://elsewhere.test/k1"}), &[][..]),
        (json!({"site": "elsewhere.test"}), &[]),
        (json!({"user": "10.9.9.9"}), &[]),
        (json!({"url": site.url("/k1")}), &["/k1"]),
        (json!({"user": "127.0.0.1"}), &["/own"]),
        (json!({"site": "127.0.0.1"}), &all),
        (json!({}), &all),
    ] {
        flush(args.clone()).await;
        for path in all {
            assert_eq!(both.crosses(&site, path).await, gone.contains(&path), "{args} {path}");
        }
    }
    for args in [json!({"url": "k1"}), json!({"site": "a", "url": "http://a/"}), json!({"user": 1})] {
        assert!(call(&both.ground(), "flush", args.clone()).await.is_err(), "{args}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ground_of_both_in_one_process_answers_where_it_is_told_to_and_its_socket_goes_with_it() {
    let mut both = Both::start().await;
    assert_eq!(call(&both.ground(), "status", Value::Null).await.unwrap()["end"], "ground");
    assert_eq!(call(both.local.control(), "status", Value::Null).await.unwrap()["end"], "remote");
    let models = call(&both.ground(), "models", json!({"site": "127.0.0.1:18081"})).await.unwrap();
    assert_eq!(models["site"], "127.0.0.1");
    both.local.program.stop();
    assert!(!both.ground().exists());
}
