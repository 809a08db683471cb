//! Farhop's two ends as processes of their own in the testbed, started anew for each load (of the path they know what loads before
//! have measured: in the field they are up for days): keys, settings files, the counters of the remote over its control socket, and
//! what both tell there.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use farhop_control::Client;
use farhop_testbed::{Place, Running, Testbed};
use farhop_units::Bytes;
use serde_json::Value;
use tokio::task::AbortHandle;

use crate::books::{Books, Hearing};
use crate::end_settings::{EndSettings, Tuning, ground_settings, remote_settings};
use crate::further::{Common, Further};
use crate::interrupt::Interrupt;
use crate::scene::{last_words, spawn, this_program};
use crate::stand::Stand;
use crate::{CompareError, Interception, Variant};

/// How long a promise that nobody asks for lasts after its last byte (DESIGN.md), with room for the sweep.
const LAPSE: Duration = Duration::from_secs(12);
/// How long each of them may take to end.
const ORDERLY: Duration = Duration::from_secs(3);

/// Where ends run and write.
#[derive(Clone, Copy)]
pub struct Stage<'a> {
    /// The namespaces and the link.
    pub testbed: &'a Testbed,
    /// For settings and logs.
    pub folder: &'a Path,
    /// Who the ends are.
    pub keys: &'a Keys,
    /// What the remote intercepts with; none where HTTPS passes through.
    pub interception: Option<&'a Interception>,
    /// Ends every wait when the user wants it.
    pub interrupt: &'a Interrupt,
}

/// The identities of both ends, made once for a bench.
pub struct Keys {
    remote: Key,
    ground: Key,
    /// Those of the remotes at further terminals.
    further: Vec<Key>,
}

pub(crate) struct Key {
    pub(crate) file: PathBuf,
    pub(crate) public: String,
}

/// Both ends, running, the carrier up.
pub struct Ends {
    /// Where browsers find the proxy.
    pub proxy: SocketAddr,
    /// The control sockets of remote and ground.
    controls: [PathBuf; 2],
    runtime: tokio::runtime::Runtime,
    places: [Place; 2],
    remote: (Running, PathBuf),
    ground: (Running, PathBuf),
    further: Vec<Further>,
    /// What remote and ground have told of since their carrier came up.
    heard: [Hearing; 2],
    listening: Vec<AbortHandle>,
}

/// What the remote counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Requests sent across the hop.
    pub requests_crossed: u64,
    /// Promises received.
    pub promised: u64,
    /// Promises that answered a request.
    pub used: u64,
    /// Body bytes that nobody used.
    pub wasted_bytes: u64,
    /// Promises that have ended, one way or the other.
    pub ended: u64,
}

impl Counters {
    /// Reads the answer of the `counters` command.
    fn of(answer: &Value) -> Option<Counters> {
        let number = |name: &str| answer.get(name).and_then(Value::as_u64);
        let ends = answer.get("promise_ends").and_then(Value::as_object)?;
        Some(Counters {
            requests_crossed: number("requests_crossed")?,
            promised: number("promised")?,
            used: number("used")?,
            wasted_bytes: number("wasted_bytes")?,
            ended: ends.values().filter_map(Value::as_u64).sum(),
        })
    }

    /// What was counted after `before` was.
    pub(crate) fn since(self, before: Counters) -> Counters {
        Counters {
            requests_crossed: self.requests_crossed.saturating_sub(before.requests_crossed),
            promised: self.promised.saturating_sub(before.promised),
            used: self.used.saturating_sub(before.used),
            wasted_bytes: self.wasted_bytes.saturating_sub(before.wasted_bytes),
            ended: self.ended.saturating_sub(before.ended),
        }
    }
}

impl Keys {
    /// Makes a fresh identity for each end.
    ///
    /// # Errors
    /// `farhop keygen` failed.
    pub fn make(folder: &Path) -> Result<Keys, CompareError> {
        Keys::for_terminals(folder, 0)
    }

    /// The same with so many further terminals, each of which has a remote of its own wherever there is one at each end.
    ///
    /// # Errors
    /// As [`make`](Self::make).
    pub(crate) fn for_terminals(folder: &Path, further: u16) -> Result<Keys, CompareError> {
        let key = |name: &str| {
            let file = folder.join(format!("{name}.key"));
            let made =
                this_program()?.arg("keygen").arg(&file).output().map_err(CompareError::file(&file))?;
            if !made.status.success() {
                let said = String::from_utf8_lossy(&made.stderr);
                let reason = said.lines().next().unwrap_or("it said nothing").to_owned();
                return Err(CompareError::End { end: "keygen", reason });
            }
            Ok(Key { file, public: String::from_utf8_lossy(&made.stdout).trim().to_owned() })
        };
        let others =
            (1..=further).map(|number| key(&format!("remote-{number}"))).collect::<Result<_, _>>()?;
        Ok(Keys { remote: key("remote")?, ground: key("ground")?, further: others })
    }
}

impl Ends {
    /// Starts ground and remote for a variant and waits until their carrier is up.
    ///
    /// # Errors
    /// One of them ended, or the carrier did not come up.
    pub fn start(stage: Stage<'_>, variant: Variant) -> Result<Ends, CompareError> {
        Ends::start_tuned(stage, variant, &Tuning::default())
    }

    /// The same with settings of one's own.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_tuned(stage: Stage<'_>, variant: Variant, tuning: &Tuning) -> Result<Ends, CompareError> {
        let Stage { testbed, folder, keys, .. } = stage;
        let addresses = &testbed.addresses;
        let (carrier, proxy) = (tuning.stand.carrier(addresses), tuning.stand.proxy(addresses));
        let (control, ground_control) = (folder.join("remote.sock"), folder.join("ground.sock"));
        let (range, length) = addresses.origin_range;
        let link = testbed.link().profile();
        // Of a link that has no name in settings the ends find out all by themselves.
        let profile = if link.is_preset() { link.name } else { "auto".into() };
        let profile = tuning.stand.profile().map_or(profile, str::to_owned);
        // At one place there is one pair, whoever comes to it.
        let further: &[Key] = if tuning.stand == Stand::Both { &keys.further } else { &[] };
        let ground = EndSettings {
            listen: carrier,
            control: &ground_control,
            profile: &profile,
            own: &keys.ground,
            others: [&keys.remote].into_iter().chain(further).map(|key| key.public.as_str()).collect(),
            tuning,
        };
        let interception = stage.interception.filter(|_| variant.intercepts());
        if let Some(with) = interception {
            let _ = std::fs::remove_file(&with.state); // of the start before, if there was one
        }
        let ground = ground_settings(&ground, &format!("{range}/{length}"), variant, interception);
        let remote = EndSettings {
            listen: proxy,
            control: &control,
            profile: &profile,
            own: &keys.remote,
            others: vec![keys.ground.public.as_str()],
            tuning,
        };
        let remote = remote_settings(&remote, carrier, interception);
        for (end, settings) in [("ground", ground), ("remote", remote)] {
            let file = folder.join(format!("{end}.toml"));
            std::fs::write(&file, settings).map_err(CompareError::file(&file))?;
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let places = tuning.stand.places();
        let common = Common { variant, tuning, profile: &profile, ground: &keys.ground, carrier };
        let started = testbed.terminals().iter().zip(further);
        let mut ends = Ends {
            proxy,
            controls: [control, ground_control],
            runtime: runtime.map_err(CompareError::file("control socket"))?,
            places,
            ground: start(stage, "ground", places[1])?,
            remote: start(stage, "remote", places[0])?,
            further: started
                .map(|(terminal, own)| Further::start(stage, terminal, own, &common))
                .collect::<Result<_, _>>()?,
            heard: [Hearing::default(), Hearing::default()],
            listening: Vec::new(),
        };
        ends.await_carrier(stage)?;
        let Ends { runtime, controls: [control, ground_control], heard, listening, .. } = &mut ends;
        for (socket, (end, hearing)) in
            [(control, ("remote", &heard[0])), (ground_control, ("ground", &heard[1]))]
        {
            let begun = runtime.block_on(hearing.listen(socket));
            listening.push(begun.map_err(|error| CompareError::End { end, reason: error.to_string() })?);
        }
        Ok(ends)
    }

    fn await_carrier(&mut self, stage: Stage<'_>) -> Result<(), CompareError> {
        let deadline = Instant::now() + stage.testbed.link().profile().rtt() * 8 + Duration::from_secs(15);
        loop {
            self.check_alive()?;
            let further = self.further.iter().map(|remote| (&remote.control, Some(remote)));
            let waited_for = [(&self.controls[0], None)].into_iter().chain(further);
            let late = waited_for.into_iter().find(|(control, _)| !self.has_carrier(control));
            let Some((_, late)) = late else { return Ok(()) };
            if Instant::now() > deadline {
                let said = format!(
                    "no carrier came up; remote: {}; ground: {}",
                    late.map_or_else(|| last_words(&self.remote.1), Further::last_words),
                    last_words(&self.ground.1)
                );
                return Err(CompareError::End { end: "remote", reason: said });
            }
            stage.interrupt.sleep(Duration::from_millis(20))?;
        }
    }

    /// Whether the carrier of the remote behind this socket is up, with all its connections: one that has been up for long has
    /// them, while what begins earlier stays on the first.
    fn has_carrier(&self, control: &Path) -> bool {
        // Before it listens, the remote is merely not there yet.
        let counters = self.ask_end(control, "remote", "counters").unwrap_or_default();
        let number = |name: &str| counters.get(name).and_then(Value::as_u64).unwrap_or(0);
        if number("carriers_up") <= number("carriers_down") {
            return false;
        }
        let status = self.ask_end(control, "remote", "status").unwrap_or_default();
        is_whole(&status)
    }

    /// Where the users of each terminal find the proxy: the first one's, then those of the further ones with a remote of their own.
    pub fn proxies(&self) -> Vec<SocketAddr> {
        [self.proxy].into_iter().chain(self.further.iter().map(|remote| remote.proxy)).collect()
    }

    /// Hears of no more events, each of which costs the ends to tell.
    pub fn stop_listening(&self) {
        self.listening.iter().for_each(AbortHandle::abort);
    }

    /// Whether both run.
    ///
    /// # Errors
    /// One of them does not; with its last words.
    pub fn check_alive(&mut self) -> Result<(), CompareError> {
        for (end, (process, stderr)) in [("ground", &mut self.ground), ("remote", &mut self.remote)] {
            if let Ok(Some(status)) = process.try_wait() {
                return Err(CompareError::End {
                    end,
                    reason: format!("it ended ({status}): {}", last_words(stderr)),
                });
            }
        }
        self.further.iter_mut().try_for_each(Further::check_alive)
    }

    /// SIGKILL for ground.
    ///
    /// # Errors
    /// The system does not let it be waited for.
    pub fn kill_ground(&mut self) -> Result<(), CompareError> {
        self.ground.0.kill_group().map(drop).map_err(CompareError::file("the ground process"))
    }

    /// Starts ground as it was started before.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn restart_ground(&mut self, stage: Stage<'_>) -> Result<(), CompareError> {
        self.ground = start(stage, "ground", self.places[1])?;
        Ok(())
    }

    /// Ends the remote with SIGKILL and starts it as it was started before, without waiting for its carrier. What it tells from
    /// now on is not in its books.
    ///
    /// # Errors
    /// It cannot be waited for, or not be started.
    pub fn restart_remote(&mut self, stage: Stage<'_>) -> Result<(), CompareError> {
        self.remote.0.kill_group().map_err(CompareError::file("the remote process"))?;
        self.remote = start(stage, "remote", self.places[0])?;
        Ok(())
    }

    /// Ends both as a service manager would, so that they keep what they have measured of the path; with SIGKILL where that takes
    /// too long.
    pub fn stop(mut self) {
        let further = self.further.iter_mut().map(|remote| &mut remote.process);
        for process in further.chain([&mut self.remote.0, &mut self.ground.0]) {
            let deadline = Instant::now() + ORDERLY;
            let asked = process.terminate().is_ok();
            while asked && Instant::now() < deadline && matches!(process.try_wait(), Ok(None)) {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    /// The most resident memory that remote and ground have held at a time; none for one that is gone.
    pub fn peak_memory(&self) -> [Option<Bytes>; 2] {
        [&self.remote, &self.ground].map(|(process, _)| most_resident(process))
    }

    /// The resident memory that remote and ground hold at present; none for one that is gone.
    pub fn memory(&self) -> [Option<Bytes>; 2] {
        [&self.remote, &self.ground].map(|(process, _)| resident(process))
    }

    /// What remote and ground have computed so far, their own work and the kernel's for it; none for one that is gone.
    pub fn computed(&self) -> [Option<Duration>; 2] {
        [computed(&self.remote.0), computed(&self.ground.0)]
    }

    /// Requests that the remotes have sent across the link so far. What passes in a tunnel they do not see.
    ///
    /// # Errors
    /// One of them does not answer.
    pub fn crossed(&self) -> Result<u64, CompareError> {
        let further = self.further.iter().map(|remote| &remote.control);
        let all = [&self.controls[0]].into_iter().chain(further);
        all.map(|control| Ok(self.counters_of(control)?.requests_crossed)).sum()
    }

    fn counters(&self) -> Result<Counters, CompareError> {
        self.counters_of(&self.controls[0])
    }

    fn counters_of(&self, control: &Path) -> Result<Counters, CompareError> {
        let answer = self.ask_end(control, "remote", "counters")?;
        let unreadable =
            || CompareError::End { end: "remote", reason: format!("its counters are unreadable: {answer}") };
        Counters::of(&answer).ok_or_else(unreadable)
    }

    /// Confines remote and ground to one processor each.
    ///
    /// # Errors
    /// The system does not let them be.
    pub fn confine(&self, cores: [usize; 2]) -> Result<(), CompareError> {
        for (core, (end, process)) in
            cores.into_iter().zip([("remote", &self.remote), ("ground", &self.ground)])
        {
            let failed = |reason| CompareError::End { end, reason };
            let mut command = std::process::Command::new("taskset");
            command.args(["-a", "-c", "-p", &core.to_string(), &process.0.id().to_string()]);
            let done = command.output().map_err(|error| failed(format!("taskset: {error}")))?;
            if !done.status.success() {
                return Err(failed(String::from_utf8_lossy(&done.stderr).trim().to_owned()));
            }
        }
        Ok(())
    }

    /// How many files and sockets remote and ground have open; 0 for one that is gone.
    pub fn open_files(&self) -> [usize; 2] {
        let count = |process: &Running| std::fs::read_dir(format!("/proc/{}/fd", process.id()));
        [&self.remote, &self.ground].map(|(process, _)| count(process).map_or(0, Iterator::count))
    }

    /// What ground says of itself and its carriers (`status`, docs/control.md).
    ///
    /// # Errors
    /// It does not answer.
    pub fn ground_status(&self) -> Result<Value, CompareError> {
        self.ask_end(&self.controls[1], "ground", "status")
    }

    fn ask_end(&self, socket: &Path, end: &'static str, command: &str) -> Result<Value, CompareError> {
        let failed = |reason: String| CompareError::End { end, reason };
        let call = async {
            let mut client = Client::connect(socket).await.map_err(|error| failed(error.to_string()))?;
            client.call(command, Value::Null).await.map_err(|error| failed(error.to_string()))
        };
        let answer =
            self.runtime.block_on(async { tokio::time::timeout(Duration::from_secs(5), call).await });
        answer.unwrap_or_else(|_| Err(failed(format!("its control socket does not answer '{command}'"))))
    }

    /// The counters once every promise has ended, so that waste is counted too.
    ///
    /// # Errors
    /// An end is gone: it died during the load.
    pub fn settled_counters(&mut self, stage: Stage<'_>) -> Result<Counters, CompareError> {
        let deadline = Instant::now() + LAPSE;
        loop {
            self.check_alive()?;
            let counters = self.counters()?;
            if counters.ended >= counters.promised || Instant::now() > deadline {
                return Ok(counters);
            }
            stage.interrupt.sleep(Duration::from_millis(50))?;
        }
    }

    /// How much remote and ground have told of so far.
    pub(crate) fn told(&self) -> [usize; 2] {
        self.heard.each_ref().map(|heard| heard.so_far().len())
    }

    /// The books of what the ends have done since they had told so much, once they have told of everything that `counters`
    /// counts since then.
    ///
    /// # Errors
    /// The user wants to stop.
    pub(crate) fn books(
        &self,
        stage: Stage<'_>,
        counters: &Counters,
        told: [usize; 2],
    ) -> Result<Books, CompareError> {
        let deadline = Instant::now() + Duration::from_secs(1);
        loop {
            let [remote, ground] = self.heard.each_ref().map(Hearing::so_far);
            let new = |events: &[_], from: usize| events.get(from..).unwrap_or_default().to_vec();
            let books = Books::of(&new(&remote, told[0]), &new(&ground, told[1]));
            let all_told = books.accounts.crossed.len() as u64 >= counters.requests_crossed
                && books.accounts.ends.values().sum::<u64>() >= counters.ended;
            if all_told || Instant::now() > deadline {
                return Ok(books);
            }
            stage.interrupt.sleep(Duration::from_millis(20))?;
        }
    }
}

/// Starts an end whose settings are written.
fn start(stage: Stage<'_>, end: &str, place: Place) -> Result<(Running, PathBuf), CompareError> {
    let stderr = stage.folder.join(format!("{end}.stderr"));
    let mut command = this_program()?;
    command.args([end, "--config"]).arg(stage.folder.join(format!("{end}.toml")));
    Ok((spawn(stage.testbed, place, command, &stderr)?, stderr))
}

/// The memory of a process that is resident at present; none once it is gone.
pub fn resident(process: &Running) -> Option<Bytes> {
    memory(process, "VmRSS")
}

/// The most memory of a process that was resident at a time; none once it is gone.
pub(crate) fn most_resident(process: &Running) -> Option<Bytes> {
    memory(process, "VmHWM")
}

/// One of the lines about memory that the kernel has for a process (proc(5), `status`); none once it is gone.
fn memory(process: &Running, line: &str) -> Option<Bytes> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).ok()?;
    let value = status.lines().find_map(|known| known.strip_prefix(line)?.strip_prefix(':'))?;
    let kilobytes: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(Bytes(kilobytes * 1024))
}

/// What a process has computed (`utime`, `stime`, proc(5)); none once it is gone.
pub(crate) fn computed(process: &Running) -> Option<Duration> {
    /// Linux counts for programs in hundredths of a second on every architecture (`USER_HZ`).
    const TICK: Duration = Duration::from_millis(10);
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.id())).ok()?;
    // Fields 14 and 15; the second, which may hold spaces, ends with the last parenthesis.
    let (_, rest) = stat.rsplit_once(") ")?;
    let ticks: u32 = rest.split(' ').skip(11).take(2).filter_map(|field| field.parse::<u32>().ok()).sum();
    Some(TICK * ticks)
}

/// Whether a remote's `status` has a carrier, and that all the connections that it is to have.
fn is_whole(status: &Value) -> bool {
    let number = |name: &str| status["carrier"][name].as_u64();
    number("connections").zip(number("connections_set")).is_some_and(|(there, set)| there >= set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_carrier_is_whole_when_the_last_of_its_connections_is_there() {
        let with = |there: u64| serde_json::json!({"carrier": {"connections": there, "connections_set": 8}});
        assert!(!is_whole(&with(7)) && is_whole(&with(8)));
        assert!(!is_whole(&serde_json::json!({"carrier": null})), "and one that is gone is not");
    }

    #[test]
    fn counters_are_those_that_the_events_declare() {
        let snapshot = farhop_events::Bus::new().counters().snapshot();
        assert_eq!(Counters::of(&snapshot), Some(Counters::default()));
        for name in ["carriers_up", "carriers_down"] {
            assert!(snapshot[name].is_u64(), "{name}");
        }
    }

    #[test]
    fn counters_that_are_not_there_are_no_zeros() {
        assert_eq!(Counters::of(&serde_json::json!({"requests_crossed": 1, "promise_ends": {}})), None);
    }
}
