//! `farhop link` on a device of a namespace: who changes it while a manager keeps it. Needs root; without it each test says so and
//! passes.

#![allow(clippy::unwrap_used)] // helpers of tests count as tests

use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use farhop_netdev::{Janitor, Namespace, require_privileges};
use tempfile::TempDir;

/// A device of a namespace, and a folder with settings for it.
struct Scene {
    namespace: Namespace,
    folder: TempDir,
    _janitor: Arc<Janitor>,
}

impl Scene {
    /// `None` where this process may not make it; says why.
    fn new() -> Option<Scene> {
        if let Err(reason) = require_privileges("this test") {
            println!("skipped: {reason}");
            return None;
        }
        let janitor = Janitor::start().unwrap();
        let namespace = Namespace::create(&janitor, "link").unwrap();
        namespace
            .ip(&["link add sat0 type veth peer name far0", "link set sat0 up", "link set far0 up"])
            .unwrap();
        let scene = Scene { namespace, folder: tempfile::tempdir().unwrap(), _janitor: janitor };
        scene.write("one.toml", "control = 'one.sock'\n");
        scene.write("other.toml", "control = 'other.sock'\n[shares]\nef = '30 %'\n");
        Some(scene)
    }

    fn write(&self, name: &str, more: &str) {
        let text = format!("interface = 'sat0'\nprofile = 'geo-hylas2'\n{more}\n[sip]\nobserve = false\n");
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    fn command(&self, what: &str, settings: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_farhop"));
        command
            .args(["link", what, "--config", settings])
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        self.namespace.prepare(&mut command);
        command
    }

    fn done(&self, what: &str, settings: &str) -> Output {
        self.command(what, settings).output().unwrap()
    }

    /// The one line of what was refused.
    fn refused(&self, what: &str, settings: &str) -> String {
        let output = self.done(what, settings);
        let line = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), line.lines().count()), (Some(1), 1), "{line}");
        line
    }

    /// A manager that answers.
    fn managed(&self) -> Child {
        let mut child = self.command("run", "one.toml").stderr(Stdio::null()).spawn().unwrap();
        let socket = self.folder.path().join("one.sock");
        while !socket.exists() {
            assert_eq!(child.try_wait().unwrap(), None, "it has ended");
            std::thread::sleep(Duration::from_millis(20));
        }
        // It listens before what it keeps is in force.
        let shows = || self.show().contains("302 kbit/s");
        for _ in 0..500 {
            if shows() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        child
    }

    fn show(&self) -> String {
        String::from_utf8(self.done("show", "one.toml").stdout).unwrap()
    }
}

fn end(mut child: Child) {
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    assert!(child.wait().unwrap().success());
}

#[test]
fn what_a_manager_keeps_nobody_else_changes_until_it_has_ended() {
    let Some(scene) = Scene::new() else { return };
    let manager = scene.managed();
    let (process, control) = (manager.id(), scene.folder.path().canonicalize().unwrap().join("one.sock"));
    for (what, settings) in [("apply", "other.toml"), ("run", "other.toml"), ("remove", "one.toml")] {
        let line = scene.refused(what, settings);
        assert!(line.contains("sat0 is kept by a running `farhop link run`"), "{what}: {line}");
        assert!(
            line.contains(&format!("(process {process}, control socket {})", control.display())),
            "{line}"
        );
    }
    assert!(scene.show().contains("302 kbit/s"), "{}", scene.show());
    assert!(!scene.folder.path().join("other.sock").exists());
    end(manager);
    assert!(scene.show().contains("302 kbit/s"), "what is in force stays so");
    assert!(scene.done("apply", "other.toml").status.success());
    assert!(scene.show().contains("146 kbit/s"), "{}", scene.show());
    let removed = scene.done("remove", "one.toml");
    assert_eq!(String::from_utf8(removed.stdout).unwrap(), "sat0: taken away\n");
}

#[test]
fn two_that_are_started_at_once_leave_one_of_them_in_force() {
    let Some(scene) = Scene::new() else { return };
    for _ in 0..3 {
        let start = |settings| {
            scene.command("apply", settings).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        };
        let mut both = [start("one.toml"), start("other.toml")];
        assert!(both.iter_mut().all(|it| it.wait().unwrap().success()));
        let shown = scene.show();
        assert!(shown.contains("302 kbit/s") || shown.contains("146 kbit/s"), "{shown}");
        assert!(scene.done("remove", "one.toml").status.success());
    }
}
