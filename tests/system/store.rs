//! The store on disk through the program itself, whatever happens to it: killed, full, damaged, restarted, its clock set.
//! Clear words, and not one wrong byte.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use bytes::Bytes;
use farhop_testkit::clock::{Clock, DAY};
use farhop_testkit::pattern::bytes_at;
use farhop_testkit::versions::Outcome;
use farhop_testkit::{File, HostileOrigin, Site, Step, Versions};
use http::Method;
use http_body_util::{BodyExt as _, Empty};

use crate::support::{Local, farhop, get, open, refused, request, until};

/// Times that the program is killed; `FARHOP_KILLS` sets another number.
const KILLS: u64 = 24;
/// Things of the sites here: every kind in every size, three times.
const THINGS: usize = 90;

/// A folder in which a store outlives its processes.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    fn store(&self) -> PathBuf {
        self.0.path().join("store")
    }

    /// The options that put a store there, and little into memory, so that most answers are from disk.
    fn options(&self, more: &[&str]) -> Vec<String> {
        let set = |name: &str, value: &Path| format!("remote.store.{name}={:?}", value.display().to_string());
        let sets = [
            set("directory", &self.store()),
            set("key", &self.0.path().join("store.key")),
            "remote.repository.size=2 MB".to_owned(),
            "remote.repository.entry=1 MB".to_owned(),
        ];
        let sets = sets.into_iter().chain(more.iter().map(|set| (*set).to_owned()));
        sets.flat_map(|set| ["--set".to_owned(), set]).collect()
    }

    async fn start(&self, more: &[&str]) -> Local {
        self.start_as(farhop(), more).await
    }

    async fn start_as(&self, command: Command, more: &[&str]) -> Local {
        let options = [vec!["--allow".to_owned(), "127.0.0.0/8".to_owned()], self.options(more)].concat();
        Local::start_as(command, &options.iter().map(String::as_str).collect::<Vec<_>>()).await
    }

    /// The files of all bodies.
    fn bodies(&self) -> Vec<PathBuf> {
        let Ok(folders) = fs::read_dir(self.store().join("bodies")) else { return Vec::new() };
        let files = folders.flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap());
        files.map(|file| file.unwrap().path()).collect()
    }
}

/// Has the program end as a service manager does.
async fn stop(mut local: Local) -> String {
    let asked = Command::new("kill").args(["-s", "TERM", &local.program.child.id().to_string()]).status();
    assert!(asked.unwrap().success());
    until("the program has ended", async || local.program.child.try_wait().unwrap()).await;
    local.program.said()
}

fn assert_right(outcome: &Outcome) {
    assert!(outcome.wrong.is_empty(), "{} wrong:\n{}", outcome.wrong.len(), outcome.wrong.join("\n"));
}

/// So many answers through a running program, all of them right.
async fn all_right(site: &Versions, local: &mut Local, number: u64, answers: u64) -> Outcome {
    let mut load = site.load(local.proxy, 6, number);
    load.answers(answers).await;
    let outcome = load.end().await;
    local.program.assert_runs();
    assert_right(&outcome);
    assert_eq!((outcome.cut, outcome.errors), (0, 0), "{outcome:?}; {}", local.program.said());
    outcome
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_moment_under_load_it_gives_nothing_wrong_when_it_is_back() {
    let kills = std::env::var("FARHOP_KILLS").map_or(KILLS, |text| text.parse().unwrap());
    let (place, site) = (Place::new(), Versions::of(THINGS).await);
    let mut all = Outcome::default();
    let mut at_first = 0;
    for round in 0..kills {
        let mut local = place.start(&[]).await;
        at_first += local.status().await["store"]["entries"].as_u64().unwrap();
        let mut load = site.load(local.proxy, 6, round);
        load.answers(20 + round * 37 % 180).await;
        local.program.kill();
        let outcome = load.end().await;
        assert_right(&outcome);
        all.add(outcome);
        let said = local.program.said();
        assert!(!said.contains("index cannot be used"), "round {round}: {said}");
    }
    eprintln!("{all:?}, {} at the origin", site.asked());
    assert!(all.cut > 0, "nobody was killed under load: {all:?}");
    assert!(all.hits > 0 && at_first > 0, "nothing was held: {all:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_is_full_is_told_and_costs_no_answer() {
    let is_root = fs::read_to_string("/proc/self/status").unwrap().contains("\nUid:\t0\t");
    if !is_root {
        return println!("skipped: a small disk takes root to mount");
    }
    let (place, site) = (Place::new(), Versions::of(THINGS).await);
    fs::create_dir(place.store()).unwrap();
    // In a mount namespace of its own, so that the disk goes with the program.
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", "mount -t tmpfs -o size=5m small \"$0\" && exec \"$@\""]);
    command.arg(place.store()).arg(farhop().get_program()).stdin(std::process::Stdio::null());
    let mut local = place.start_as(command, &[]).await;
    let outcome = all_right(&site, &mut local, 1, 600).await;
    assert!(outcome.hits > 0, "{outcome:?}");
    let said = local.program.said();
    assert!(said.contains("No space left on device"), "{said}");
    let told = said.lines().filter(|line| line.contains("No space left")).count();
    assert!(told < 20, "told {told} times");
    stop(local).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_given_up_leaves_the_disk() {
    let place = Place::new();
    let mut site = Site::new();
    for number in 0..40 {
        let file = File::pattern(number, 1_000_000).field("cache-control", "max-age=600");
        site = site.file(&format!("/{number}"), file);
    }
    let site = site.serve().await;
    let mut local = place.start(&["remote.store.size=16 MB"]).await;
    for number in 0..40 {
        let got = get(local.proxy, &site.url(&format!("/{number}"))).await;
        assert!(got.whole && got.bytes == bytes_at(number, 0, 1_000_000));
    }
    let taken = async |local: &Local| local.status().await["store"].clone();
    until("what is on disk is what is told", async || {
        let told = taken(&local).await;
        let files = place.bodies();
        let bytes: u64 = files.iter().filter_map(|file| Some(fs::metadata(file).ok()?.len())).sum();
        let fits = bytes <= 16_000_000 + 1_100_000 && told["entries"].as_u64() == Some(files.len() as u64);
        (fits && files.len() >= 5).then_some(())
    })
    .await;
    for number in (0..40).rev() {
        let got = get(local.proxy, &site.url(&format!("/{number}"))).await;
        assert!(got.whole && got.bytes == bytes_at(number, 0, 1_000_000));
    }
    local.program.assert_runs();
    assert!(local.counters().await["answered"]["repository"].as_u64() > Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_longer_than_an_entry_may_be_only_passes() {
    let place = Place::new();
    let file = |seed, length| File::pattern(seed, length).field("cache-control", "max-age=600");
    let site = Site::new().file("/long", file(1, 300_000)).file("/short", file(2, 90_000)).serve().await;
    let local = place.start(&["remote.repository.entry=100 kB", "remote.store.entry=100 kB"]).await;
    for _ in 0..2 {
        let long = get(local.proxy, &site.url("/long")).await;
        assert!(long.whole && long.bytes == bytes_at(1, 0, 300_000));
        let short = get(local.proxy, &site.url("/short")).await;
        assert!(short.whole && short.bytes == bytes_at(2, 0, 90_000));
    }
    assert_eq!(local.counters().await["requests_crossed"], 3, "the short one is held");
    stop(local).await;
    assert_eq!(place.bodies().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_arriving_when_it_stops_is_asked_for_anew() {
    let place = Place::new();
    let whole =
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 10\r\nConnection: close\r\n\r\n";
    let half = vec![Step::ReadHead, Step::Send(format!("{whole}01234").into()), Step::Hang];
    let all = vec![Step::ReadHead, Step::Send(format!("{whole}0123456789").into()), Step::Close];
    let origin = HostileOrigin::playing(vec![half, all]).await;
    let url = origin.url("/");
    let local = place.start(&["remote.drain=0 s"]).await;
    let asked = request(Method::GET, &url).body(Empty::<Bytes>::new().boxed()).unwrap();
    let mut arriving = open(local.proxy, asked).await.into_body();
    assert_eq!(arriving.frame().await.unwrap().unwrap().into_data().unwrap(), "01234");
    stop(local).await;
    assert!(!matches!(arriving.frame().await, None | Some(Ok(_))), "its client is cut off");

    let local = place.start(&[]).await;
    for _ in 0..2 {
        assert_eq!(get(local.proxy, &url).await.text(), "0123456789");
    }
    assert_eq!(origin.heads().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_is_damaged_is_set_aside_in_one_line() {
    for harm in [cut_in_half, overwrite, make_a_folder] {
        let (place, site) = (Place::new(), Versions::of(THINGS).await);
        let mut local = place.start(&[]).await;
        all_right(&site, &mut local, 1, 200).await;
        stop(local).await;
        harm(&place.store().join("index.redb"));
        let mut local = place.start(&[]).await;
        all_right(&site, &mut local, 2, 200).await;
        let said = stop(local).await;
        assert_eq!(said.matches("is set aside").count(), 1, "{said}");
        assert!(!said.contains("panicked"), "{said}");
        let mut local = place.start(&[]).await;
        let outcome = all_right(&site, &mut local, 3, 100).await;
        assert!(outcome.hits > 0, "{outcome:?}");
        let said = stop(local).await;
        assert!(!said.contains("set aside"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_damaged_are_asked_for_anew() {
    for harm in [cut_in_half, overwrite, |file: &Path| fs::remove_file(file).unwrap()] {
        let (place, site) = (Place::new(), Versions::of(THINGS).await);
        let mut local = place.start(&[]).await;
        all_right(&site, &mut local, 1, 300).await;
        stop(local).await;
        let bodies = place.bodies();
        assert!(bodies.len() > 10, "{bodies:?}");
        bodies.iter().for_each(|file| harm(file));
        let mut local = place.start(&[]).await;
        all_right(&site, &mut local, 2, 300).await;
        stop(local).await;
    }
}

fn cut_in_half(file: &Path) {
    let file = fs::File::options().write(true).open(file).unwrap();
    file.set_len(file.metadata().unwrap().len() / 2).unwrap();
}

fn make_a_folder(file: &Path) {
    fs::remove_file(file).unwrap();
    fs::create_dir(file).unwrap();
}

/// A few bytes in each 4 KiB are others.
fn overwrite(file: &Path) {
    let file = fs::File::options().read(true).write(true).open(file).unwrap();
    for at in (0..file.metadata().unwrap().len().saturating_sub(8)).step_by(4096) {
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, at).unwrap();
        file.write_all_at(&bytes.map(|byte| !byte), at).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_process_is_refused_in_one_line_and_harms_nothing() {
    let (place, site) = (Place::new(), Versions::of(THINGS).await);
    let mut local = place.start(&[]).await;
    all_right(&site, &mut local, 1, 100).await;
    let mut second = farhop();
    second.args(["local", "--listen", "127.0.0.1:0"]).args(place.options(&[]));
    let said = refused(&mut second);
    assert!(said.contains("in use by another process, stop that one or name another folder"), "{said}");
    let outcome = all_right(&site, &mut local, 2, 100).await;
    assert!(outcome.hits > 0, "{outcome:?}");
}

/// The program, seeing this clock.
fn clocked(clock: &Clock) -> Command {
    let mut command = farhop();
    command.envs(clock.environment());
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_jumps_makes_nothing_fresh_for_ever() {
    let (place, folder) = (Place::new(), tempfile::tempdir().unwrap());
    // What is built here is built with a C compiler at hand.
    let clock = Clock::new(folder.path()).unwrap();
    let answers = ["one", "two", "three"].map(|body| {
        let head = format!("Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
        let text = format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=99999999999\r\n{head}");
        vec![Step::ReadHead, Step::Send(text.into()), Step::Close]
    });
    let origin = HostileOrigin::playing(answers.to_vec()).await;
    let url = origin.url("/");
    let local = place.start_as(clocked(&clock), &[]).await;
    let given = async |local: &Local| get(local.proxy, &url).await.text();
    assert_eq!((given(&local).await, given(&local).await), ("one".into(), "one".into()));
    clock.set(-DAY).unwrap();
    assert_eq!((given(&local).await, given(&local).await), ("two".into(), "two".into()), "it went back");
    stop(local).await;
    clock.set(-2 * DAY).unwrap();
    let local = place.start_as(clocked(&clock), &[]).await;
    assert_eq!(
        (given(&local).await, given(&local).await),
        ("three".into(), "three".into()),
        "while it was away"
    );
    clock.set(0).unwrap();
    assert_eq!(given(&local).await, "three", "two days old");
    assert_eq!(origin.heads().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn while_its_clock_jumps_both_ways_it_gives_nothing_wrong() {
    let (place, folder, site) = (Place::new(), tempfile::tempdir().unwrap(), Versions::of(THINGS).await);
    let clock = Clock::new(folder.path()).unwrap();
    for (round, jumps) in [[DAY, -DAY, 5, 0], [-5, -300, 400 * DAY, -60]].into_iter().enumerate() {
        let mut local = place.start_as(clocked(&clock), &[]).await;
        let mut load = site.load(local.proxy, 6, round as u64);
        for (number, jump) in jumps.into_iter().enumerate() {
            load.answers(60 * (1 + number as u64)).await;
            clock.set(jump).unwrap();
        }
        load.answers(300).await;
        let outcome = load.end().await;
        assert_right(&outcome);
        assert_eq!((outcome.cut, outcome.errors), (0, 0), "{outcome:?}");
        local.program.assert_runs();
        assert!(outcome.hits > 0, "{outcome:?}");
        stop(local).await;
    }
}
