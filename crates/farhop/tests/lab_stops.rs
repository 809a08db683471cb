//! `farhop lab run` when something goes wrong, in the real kernel: what is said, what is kept, and that nothing is left
//! standing. What needs root says so and passes without.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};

use serde_json::Value;

/// A plan of these variants.
fn plan(runs: u32, variants: &str) -> String {
    format!(
        r#"
title = "What goes wrong"
runs = {{ least = {runs}, most = {runs}, within = "5 %" }}
[[page]]
name = "few"
objects = 4
object = "2 KB"
# Nothing is left to chance in it, so that one testbed serves all loads.
[[link]]
name = "near"
like = "geo-2m"
delay = "5 ms"
{variants}"#
    )
}

const PLAIN: &str = "[[variant]]\nname = \"plain\"\n";

/// A run under way, with all that it writes in a folder of its own.
struct Lab {
    folder: tempfile::TempDir,
    child: Child,
    stderr: BufReader<ChildStderr>,
}

impl Lab {
    /// None where there are no privileges.
    fn start(plan: &str) -> Option<Lab> {
        if let Err(reason) = farhop_testbed::require_privileges() {
            eprintln!("skipped: {reason}");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("mine.toml"), plan).unwrap();
        Some(Lab::run(folder, &[]))
    }

    fn run(folder: tempfile::TempDir, options: &[&str]) -> Lab {
        std::fs::create_dir_all(folder.path().join("tmp")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_farhop"));
        command.args(["lab", "run", "mine.toml", "--out", "out"]).args(options);
        command.current_dir(folder.path()).env("TMPDIR", folder.path().join("tmp"));
        command.env("FARHOP_CHROMIUM", "/nowhere/chromium");
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Lab { folder, child, stderr }
    }

    /// Waits for the first load to be told.
    fn first(&mut self) -> String {
        let mut line = String::new();
        while !line.contains("few over near, ") {
            line.clear();
            assert!(self.stderr.read_line(&mut line).unwrap() > 0, "it ended before its first load");
        }
        line
    }

    /// Sends a signal to the process among those of the run whose command line ends in these words; once there is one.
    fn kill_own(&mut self, name: &str) {
        let place = self.folder.path().join("tmp");
        loop {
            let found = processes(&place).into_iter().find(|(_, line)| line.ends_with(name));
            if let Some((id, _)) = found {
                return kill("-KILL", id);
            }
            assert_eq!(self.child.try_wait().unwrap(), None, "it ended before there was one");
            std::thread::yield_now();
        }
    }

    /// What it says until it ends; all of the testbed has to be gone by then.
    fn end(mut self) -> (tempfile::TempDir, ExitStatus, String) {
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).unwrap();
        let status = self.child.wait().unwrap();
        let own = format!("farhop-{}-", self.child.id());
        let names = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
        let left: Vec<_> = names.map(|entry| entry.file_name()).collect();
        assert!(!left.iter().any(|name| name.to_string_lossy().starts_with(&own)), "{left:?}");
        let place = self.folder.path().join("tmp");
        assert_eq!(processes(&place), [], "no process is left");
        let files: Vec<PathBuf> = std::fs::read_dir(&place).unwrap().flatten().map(|it| it.path()).collect();
        assert_eq!(files, [""; 0].map(PathBuf::from), "nor anything that was only for the time of the run");
        (self.folder, status, said)
    }
}

/// Processes whose command line names something in `place`.
fn processes(place: &Path) -> Vec<(u32, String)> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let lines = ids.filter_map(|id: u32| {
        let line = std::fs::read(format!("/proc/{id}/cmdline")).ok()?;
        Some((id, String::from_utf8_lossy(&line).replace('\0', " ").trim_end().to_owned()))
    });
    let place = place.to_str().unwrap();
    lines.filter(|(_, line)| line.contains(place)).collect()
}

fn kill(signal: &str, id: u32) {
    assert!(Command::new("kill").args([signal, &id.to_string()]).status().unwrap().success());
}

fn result(folder: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(folder.join("out/result.json")).unwrap()).unwrap()
}

fn runs(folder: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join("out/runs.jsonl")).unwrap();
    text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn ctrl_c_takes_everything_down_and_keeps_what_was_measured() {
    let Some(mut lab) = Lab::start(&plan(100, PLAIN)) else { return };
    lab.first();
    let mut second = Command::new(env!("CARGO_BIN_EXE_farhop"));
    second.args(["lab", "run", "mine.toml", "--out", "out", "--resume"]).current_dir(lab.folder.path());
    let second = second.output().unwrap();
    let refused = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(refused.starts_with("farhop: out: another run has this folder"), "{refused}");
    kill("-INT", lab.child.id());
    let (folder, status, said) = lab.end();
    assert_eq!(status.code(), Some(1), "{said}");
    let kept = runs(folder.path()).len();
    assert!((1..100).contains(&kept), "{kept}");
    // What was measured is not begun anew by mistake.
    let (folder, status, refused) = Lab::run(folder, &[]).end();
    assert_eq!((status.code(), runs(folder.path()).len()), (Some(1), kept), "{refused}");
    assert!(
        refused.starts_with("farhop: out holds ") && refused.contains("--fresh begins anew"),
        "{refused}"
    );
    let loads = if kept == 1 { "1 load".to_owned() } else { format!("{kept} loads") };
    let last = said.lines().last().unwrap();
    assert_eq!(last, format!("farhop: stopped after {loads}: what is measured is kept, --resume goes on"));
    let found = result(folder.path());
    assert_eq!((&found["complete"], &found["cells"][0]["runs"]), (&false.into(), &kept.into()));
    assert!(folder.path().join("out/report.html").exists());

    let (folder, status, said) = Lab::run(folder, &["--resume", "--for", "1 us"]).end();
    assert!(status.success(), "{said}");
    assert!(
        said.starts_with(&format!("{loads} {} there already\n", if kept == 1 { "is" } else { "are" })),
        "{said}"
    );
    assert!(
        said.ends_with(&format!(
            "the time is up after {loads}: what is measured is kept, --resume goes on\n"
        ))
    );
    assert_eq!(runs(folder.path()).len(), kept);
}

#[test]
fn an_end_that_dies_and_a_browser_that_is_missing_are_results_and_the_others_go_on() {
    let others = "[[variant]]\nname = \"farhop\"\nthrough = \"farhop-identity\"\n\
                  [[variant]]\nname = \"browser\"\nclient = \"chromium\"\n";
    let Some(mut lab) = Lab::start(&plan(1, &format!("{PLAIN}{others}"))) else { return };
    lab.kill_own("/remote.toml");
    let (folder, status, said) = lab.end();
    assert_eq!(status.code(), Some(1), "{said}");
    // The browser is not present, which is no failure.
    assert!(said.ends_with("farhop: 1 load went wrong: out/report.html says why\n"), "{said}");
    let found = result(folder.path());
    let failures = |variant: usize| found["cells"][variant]["failures"].as_array().unwrap().clone();
    assert_eq!((&found["cells"][0]["runs"], failures(0)), (&1.into(), Vec::new()), "{found}");
    let of_farhop = failures(1)[0].as_str().unwrap().to_owned();
    assert!(of_farhop.starts_with("farhop remote: it ended (signal: 9"), "{of_farhop}");
    assert_eq!(failures(2), ["not present: /nowhere/chromium: there is no such browser"]);
    assert!(said.contains(&of_farhop), "{said}");
}

#[test]
fn origins_that_die_are_told_and_brought_up_again() {
    // On a machine that is busy with others the first is heard of when some more are over.
    const LOADS: u32 = 20;
    let Some(mut lab) = Lab::start(&plan(LOADS, PLAIN)) else { return };
    let first = lab.first();
    lab.kill_own("/origins.json");
    let (folder, status, said) = lab.end();
    assert_eq!(status.code(), Some(1), "{first}{said}");
    let runs = runs(folder.path());
    let faults = |run: &Value| run["faults"].as_array().unwrap().clone();
    let with: Vec<Value> = runs.iter().flat_map(faults).collect();
    assert_eq!((runs.len(), with.len()), (LOADS as usize, 1), "{with:?}");
    assert!(with[0].as_str().unwrap().starts_with("origins: it ended (signal: 9"), "{with:?}");
    assert!(faults(&runs[0]).is_empty() && faults(&runs[runs.len() - 1]).is_empty());
}

/// A file system that is taken away again.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status(); // a test that fails has said so already
    }
}

#[test]
fn a_full_disk_ends_the_run_with_one_line_and_what_is_on_it_is_gone_on_with() {
    if let Err(reason) = farhop_testbed::require_privileges() {
        eprintln!("skipped: {reason}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mine.toml"), plan(20, PLAIN)).unwrap();
    let out = folder.path().join("out");
    std::fs::create_dir(&out).unwrap();
    let mount = |options: &str| {
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", options, "lab"]).arg(&out).status().is_ok_and(|it| it.success())
    };
    assert!(mount("size=8k"), "a disk of two pages");
    let _mounted = Mounted(out.clone());
    let (folder, status, said) = Lab::run(folder, &[]).end();
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.lines().last().unwrap().ends_with(": No space left on device (os error 28)"), "{said}");
    let text = std::fs::read_to_string(out.join("runs.jsonl")).unwrap();
    let kept = text.matches('\n').count() - 1;
    assert!((1..20).contains(&kept), "{said}");

    assert!(mount("remount,size=16m"));
    let (folder, status, said) = Lab::run(folder, &["--resume", "--for", "1 us"]).end();
    assert!(status.success() && said.contains(" there already"), "{said}");
    let found = result(folder.path());
    assert_eq!((&found["complete"], &found["cells"][0]["runs"]), (&false.into(), &kept.into()), "{said}");
}
