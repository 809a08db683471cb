//! What the link manager, and the remote that catches connections, say where they cannot work: each is to be one clear line, and
//! nothing of others' touched. What this machine has and another may lack is taken away by a stand-in on the search path.

use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use farhop_compare::{Ends, Keys, Stage, Tuning, Variant};
use farhop_control::Client;
use farhop_orbit::Profile;
use farhop_testbed::{Place, Testbed};
use serde_json::{Value, json};

use crate::group::Context;
use crate::{MeasureError, Row};
use farhop_workload::programs::found;

/// The device of the link.
const LINK: &str = "sat0";
/// One that may vanish.
const GOING: &str = "going0";
/// What a manager does within it, it does.
const PATIENCE: Duration = Duration::from_secs(30);
/// What an end that has gone leaves is gone by then.
const GONE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(100);
/// Datagrams that are no SIP.
const GARBAGE: usize = 500;
/// What an unwilling kernel says to `tc`.
const NO_HTB: &str = "#!/bin/sh\ntext=\ncase \"$*\" in *batch*) text=$(cat);; esac\ncase \"$* $text\" in *htb*) echo 'Error: Specified qdisc kind is unknown.' >&2; exit 2;; esac\nprintf '%s\\n' \"$text\" | exec TOOL \"$@\"\n";
/// And to `nft`.
const NO_TPROXY: &str = "#!/bin/sh\ntext=$(cat)\ncase \"$* $text\" in *tproxy*) echo '/dev/stdin:1:1-9: Error: Could not process rule: No such file or directory' >&2; exit 1;; esac\nprintf '%s\\n' \"$text\" | exec TOOL \"$@\"\n";

/// What a program said, and how it ended.
struct Said {
    code: Option<i32>,
    words: String,
}

impl Said {
    /// One line, with the exit code of a failure, and all of these words in it.
    fn is_clear(&self, wanted: &[&str]) -> bool {
        let is_line = !self.words.is_empty() && self.words.lines().count() == 1;
        let lower = self.words.to_lowercase();
        self.code == Some(1) && is_line && wanted.iter().all(|word| lower.contains(&word.to_lowercase()))
    }
}

struct Scene {
    testbed: Testbed,
    folder: tempfile::TempDir,
}

impl Scene {
    fn up() -> Result<Scene, MeasureError> {
        let profile = Profile::named("none").map_err(|error| MeasureError::Unexpected(error.to_string()))?;
        let folder = tempfile::Builder::new().prefix("farhop-refusals-").tempdir();
        let folder = folder.map_err(MeasureError::system("a folder"))?;
        // Who has no rights has to come as far as the settings.
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(folder.path(), open).map_err(MeasureError::system("a folder"))?;
        Ok(Scene { testbed: Testbed::up(&profile, 1)?, folder })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Settings of a manager at this device.
    fn settings(&self, device: &str) -> Result<PathBuf, MeasureError> {
        let file = self.at(&format!("{device}.toml"));
        let text = format!(
            "interface = \"{device}\"\nprofile = \"geo-hylas2\"\ncontrol = \"{device}.sock\"\ncalls_file = \"{device}.calls\"\nlog_level = \"warn\"\n"
        );
        std::fs::write(&file, text).map_err(MeasureError::system("settings"))?;
        Ok(file)
    }

    /// A folder with these programs alone, each as it is or behind a stand-in.
    fn programs(&self, name: &str, programs: &[(&str, Option<&str>)]) -> Result<PathBuf, MeasureError> {
        let failed = MeasureError::system("stand-ins for programs");
        let folder = self.at(name);
        std::fs::create_dir(&folder).map_err(&failed)?;
        for (program, stand_in) in programs {
            let Some(real) = found(program) else {
                return Err(MeasureError::Unexpected(format!("not present: {program}")));
            };
            let file = folder.join(program);
            match stand_in {
                None => symlink(&real, &file).map_err(&failed)?,
                Some(script) => {
                    std::fs::write(&file, script.replace("TOOL", &real.display().to_string()))
                        .map_err(&failed)?;
                    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755))
                        .map_err(&failed)?;
                }
            }
        }
        Ok(folder)
    }

    /// Runs it at the terminal to its end.
    fn run(&self, mut command: Command) -> Result<Said, MeasureError> {
        self.testbed.namespace(Place::Remote).prepare(&mut command);
        let output = command.stdin(Stdio::null()).output().map_err(MeasureError::system("a program"))?;
        let words = [output.stdout, output.stderr].concat();
        let words = String::from_utf8_lossy(&words).trim().to_owned();
        Ok(Said { code: output.status.code(), words })
    }

    fn link(&self, command: &str, settings: &Path, path: Option<&Path>) -> Result<Said, MeasureError> {
        let mut asked = this_program()?;
        asked.args(["link", command, "--config"]).arg(settings);
        if let Some(path) = path {
            asked.env("PATH", path);
        }
        self.run(asked)
    }

    fn tool(&self, program: &str, words: &str) -> Result<Said, MeasureError> {
        let mut command = Command::new(found(program).unwrap_or_else(|| program.into()));
        command.args(words.split_whitespace());
        self.run(command)
    }

    /// All that `tc` and `nft` know at the terminal.
    fn state(&self) -> Result<String, MeasureError> {
        Ok(self.tool("tc", "qdisc show")?.words + "\n" + &self.tool("nft", "list ruleset")?.words)
    }
}

fn this_program() -> Result<Command, MeasureError> {
    Ok(Command::new(std::env::current_exe().map_err(MeasureError::system("the running program"))?))
}

pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let scene = Scene::up()?;
    let settings = scene.settings(LINK)?;
    let mut rows = vec![
        without_rights(&scene, &settings)?,
        without(&scene, &settings, "no tc", &[("nft", None), ("ip", None)], &["'tc'", "iproute2"])?,
        without(&scene, &settings, "no nft", &[("tc", None), ("ip", None)], &["'nft'", "nftables"])?,
        without(
            &scene,
            &settings,
            "a kernel without HTB",
            &[("tc", Some(NO_HTB)), ("nft", None), ("ip", None), ("cat", None)],
            &["htb"],
        )?,
        foreign_queue(&scene, &settings)?,
        foreign_rules(&scene, &settings)?,
    ];
    context.interrupt.check()?;
    rows.push(vanishing(&scene, context)?);
    rows.push(garbage(&scene, context)?);
    rows.push(no_tproxy(&scene, context)?);
    Ok(rows)
}

/// A row for something that has to be refused in words and leave all as it was.
fn refused(what: &str, said: &Said, wanted: &[&str], untouched: bool) -> Row {
    let measured = format!("{}{}", said.words.replace('\n', " ⏎ "), if untouched { "" } else { "; TOUCHED" });
    let bound = format!("exit code 1, one line that names {}, nothing touched", wanted.join(" and "));
    Row::judged(what, measured, bound, said.is_clear(wanted) && untouched)
}

fn without_rights(scene: &Scene, settings: &Path) -> Result<Row, MeasureError> {
    let before = scene.state()?;
    let Some(setpriv) = found("setpriv") else {
        return Err(MeasureError::Unexpected("not present: install 'util-linux'".into()));
    };
    let mut command = Command::new(setpriv);
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all"]);
    command.arg(std::env::current_exe().map_err(MeasureError::system("the running program"))?);
    command.args(["link", "apply", "--config"]).arg(settings);
    let said = scene.run(command)?;
    Ok(refused("link apply, no privileges", &said, &["CAP_NET_ADMIN"], scene.state()? == before))
}

fn without(
    scene: &Scene,
    settings: &Path,
    what: &str,
    programs: &[(&str, Option<&str>)],
    wanted: &[&str],
) -> Result<Row, MeasureError> {
    let before = scene.state()?;
    let path = scene.programs(&what.replace(' ', "-"), programs)?;
    let said = scene.link("apply", settings, Some(&path))?;
    Ok(refused(&format!("link apply, {what}"), &said, wanted, scene.state()? == before))
}

fn foreign_queue(scene: &Scene, settings: &Path) -> Result<Row, MeasureError> {
    scene.tool("tc", &format!("qdisc replace dev {LINK} root handle 7: pfifo limit 77"))?;
    let before = scene.state()?;
    let said = scene.link("apply", settings, None)?;
    let row = refused(
        "link apply, somebody's queue at the device",
        &said,
        &["pfifo 7:", LINK],
        scene.state()? == before,
    );
    scene.tool("tc", &format!("qdisc del dev {LINK} root"))?;
    Ok(row)
}

/// Somebody's table stands beside ours, and is there as it was once ours has gone.
fn foreign_rules(scene: &Scene, settings: &Path) -> Result<Row, MeasureError> {
    let table = "add table inet others; add chain inet others out { type filter hook output priority 0; policy accept; }; add rule inet others out udp dport 5060 counter accept";
    let mut command = Command::new(found("nft").unwrap_or_else(|| "nft".into()));
    command.arg(table);
    scene.run(command)?;
    let list = || Ok::<String, MeasureError>(scene.tool("nft", "-s list table inet others")?.words);
    let before = list()?;
    let (applied, during) = (scene.link("apply", settings, None)?, list()?);
    let removed = scene.link("remove", settings, None)?;
    let (after, left) = (list()?, scene.tool("nft", "list tables")?.words);
    scene.tool("nft", "delete table inet others")?;
    let stands = !before.is_empty() && before == during && before == after;
    let gone = !left.contains("farhop") && removed.code == Some(0);
    Ok(Row::judged(
        "link apply and remove, somebody's rules in place",
        format!(
            "applied {}, theirs {}, ours {}",
            if applied.code == Some(0) { "yes" } else { "NO" },
            if stands { "as they were" } else { "TOUCHED" },
            if gone { "gone" } else { "LEFT" }
        ),
        "in force beside them, theirs untouched, ours gone",
        applied.code == Some(0) && stands && gone,
    ))
}

/// A manager that runs, at this device.
fn manager(scene: &Scene, device: &str, context: &Context) -> Result<farhop_netdev::Running, MeasureError> {
    let mut command = this_program()?;
    command.args(["link", "run", "--config"]).arg(scene.settings(device)?);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let running = scene.testbed.spawn_in(Place::Remote, command)?;
    if !await_that(context, || ask(scene, device, "status", Value::Null).is_ok())? {
        return Err(MeasureError::Unexpected("the link manager does not answer".into()));
    }
    Ok(running)
}

fn ask(scene: &Scene, device: &str, command: &str, args: Value) -> Result<Value, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(async {
        let socket = scene.at(&format!("{device}.sock"));
        let mut client = Client::connect(&socket).await.map_err(|error| error.to_string())?;
        client.call(command, args).await.map_err(|error| error.to_string())
    })
}

/// Whether it holds in time.
fn await_that(context: &Context, mut holds: impl FnMut() -> bool) -> Result<bool, MeasureError> {
    let begin = Instant::now();
    while !holds() {
        if begin.elapsed() > PATIENCE {
            return Ok(false);
        }
        context.interrupt.sleep(Duration::from_millis(100))?;
    }
    Ok(true)
}

fn vanishing(scene: &Scene, context: &Context) -> Result<Row, MeasureError> {
    let make = format!("link add {GOING} type veth peer name going1");
    scene.tool("ip", &make)?;
    scene.tool("ip", &format!("link set {GOING} up"))?;
    let mut running = manager(scene, GOING, context)?;
    let counted = |name: &str| ask(scene, GOING, "counters", Value::Null).ok()?.get(name)?.as_u64();
    let in_force = || {
        let shown = scene.tool("tc", &format!("qdisc show dev {GOING}"));
        shown.is_ok_and(|said| said.words.contains("htb fa40:"))
    };
    let begun = await_that(context, in_force)?;
    scene.tool("ip", &format!("link del {GOING}"))?;
    let told = await_that(context, || counted("links_lost").is_some_and(|lost| lost == 1))?;
    scene.tool("ip", &make)?;
    scene.tool("ip", &format!("link set {GOING} up"))?;
    let back = await_that(context, in_force)?;
    let alive = matches!(running.try_wait(), Ok(None));
    drop(running);
    scene.tool("ip", &format!("link del {GOING}"))?;
    let word = |it: bool| if it { "yes" } else { "NO" };
    Ok(Row::judged(
        "link run, the device vanishes and comes back",
        format!("told once: {}, runs on: {}, in force again: {}", word(told), word(alive), word(back)),
        "told once, runs on, in force again",
        begun && told && alive && back,
    ))
}

fn garbage(scene: &Scene, context: &Context) -> Result<Row, MeasureError> {
    let mut running = manager(scene, LINK, context)?;
    let to = SocketAddr::from((scene.testbed.addresses.ground_satellite, 5060));
    let send = || {
        let socket = UdpSocket::bind("0.0.0.0:0")?;
        for number in 0..GARBAGE {
            socket.send_to(&noise(number), to)?;
        }
        Ok::<_, std::io::Error>(())
    };
    let sent = scene.testbed.namespace(Place::Remote).run(send).map_err(farhop_testbed::Error::from)?;
    sent.map_err(MeasureError::system("datagrams"))?;
    let ignored = || ask(scene, LINK, "counters", Value::Null).ok()?.get("sip_ignored")?.as_u64();
    let heard = await_that(context, || ignored().is_some_and(|count| count > 0))?;
    let calls = ask(scene, LINK, "calls", Value::Null).unwrap_or_default();
    let none = calls.as_array().is_some_and(Vec::is_empty);
    let still = ask(scene, LINK, "new_voice_call", json!({"call": "after", "codec": "G.729"})).is_ok();
    let alive = matches!(running.try_wait(), Ok(None));
    drop(running);
    scene.link("remove", &scene.at(&format!("{LINK}.toml")), None)?;
    Ok(Row::judged(
        format!("link run, {GARBAGE} datagrams of garbage at SIP's port"),
        format!(
            "{} told as ignored, {} calls of them, next call {}",
            ignored_words(heard),
            if none { "no" } else { "SOME" },
            if still { "admitted" } else { "REFUSED" }
        ),
        "ignored and counted, no call of them, it goes on",
        heard && none && still && alive,
    ))
}

fn ignored_words(heard: bool) -> &'static str {
    if heard { "they are" } else { "NOT" }
}

/// Bytes at random, and messages that break off or contradict themselves.
fn noise(number: usize) -> Vec<u8> {
    let invite = "INVITE sip:a@b SIP/2.0\r\nCall-ID: x\r\nCSeq: 1 INVITE\r\nContent-Type: application/sdp\r\nContent-Length: 9999\r\n\r\nv=0\r\nm=audio 99999 RTP/AVP 18\r\nc=IN IP4 1.2.3\r\n";
    match number % 3 {
        0 => (0..200).map(|at| (at * 31 + number * 17) as u8).collect(),
        1 => invite.as_bytes()[..number % invite.len()].to_vec(),
        _ => invite.replace("INVITE sip", &"INVITE ".repeat(number % 40)).into_bytes(),
    }
}

/// The remote that catches connections, where the kernel cannot divert them.
fn no_tproxy(scene: &Scene, context: &Context) -> Result<Row, MeasureError> {
    let keys = Keys::make(scene.folder.path())?;
    let stage = Stage {
        testbed: &scene.testbed,
        folder: scene.folder.path(),
        keys: &keys,
        interception: None,
        interrupt: &context.interrupt,
    };
    let tuning = Tuning {
        remote: "role = \"transport\"\ntransparent.enabled = true\ntransparent.except = \"127.0.0.0/8\"\n"
            .into(),
        ..Tuning::default()
    };
    // As it starts where nothing is missing; its settings stay.
    drop(Ends::start_tuned(stage, Variant::FarhopTransport, &tuning)?);
    // Its helper takes away what it had made once it is gone.
    let begin = Instant::now();
    while scene.state()?.contains("tproxy") && begin.elapsed() < GONE {
        context.interrupt.sleep(LOOK)?;
    }
    let before = scene.state()?;
    let tools = [("nft", Some(NO_TPROXY)), ("ip", None), ("cat", None), ("tc", None)];
    let path = scene.programs("no-tproxy", &tools)?;
    // Where it finds nothing amiss it would run for ever.
    let mut command = Command::new(found("timeout").unwrap_or_else(|| "timeout".into()));
    command.arg("20").arg(std::env::current_exe().map_err(MeasureError::system("the running program"))?);
    command.args(["remote", "--config"]).arg(scene.at("remote.toml")).env("PATH", path);
    let said = scene.run(command)?;
    Ok(refused("remote --transparent, no TPROXY", &said, &["TPROXY", "nft_tproxy"], scene.state()? == before))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    #[test]
    fn only_one_line_with_the_right_words_and_the_right_code_is_clear() {
        let said = |code, words: &str| Said { code: Some(code), words: words.into() };
        let row = |said: &Said, untouched| refused("x", said, &["HTB"], untouched).verdict;
        assert_eq!(row(&said(1, "this kernel has no htb"), true), Verdict::Pass);
        for (said, untouched) in [
            (said(1, "this kernel has no htb"), false),
            (said(0, "this kernel has no htb"), true),
            (said(2, "this kernel has no htb"), true),
            (said(1, "something failed"), true),
            (said(1, "no htb\nand a second line"), true),
            (said(1, ""), true),
        ] {
            assert_eq!(row(&said, untouched), Verdict::Miss, "{}", said.words);
        }
    }

    #[test]
    fn garbage_is_of_every_kind() {
        assert!((0..GARBAGE).map(noise).all(|datagram| datagram.len() < 1_400));
        assert!(noise(3) != noise(0) && noise(1).len() < noise(100).len());
    }
}
