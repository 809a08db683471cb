//! One end of Farhop as a process: started, told to read its settings anew, ended, asked, looked into.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use farhop_compare::{Interrupt, last_words, spawn};
use farhop_control::Client;
use farhop_netdev::Running;
use farhop_testbed::{Place, Testbed};
use serde_json::Value;
use tokio::runtime::Runtime;

use super::level::Level;
use crate::MeasureError;
use crate::local::farhop;

/// How long an end may take for what it is told over its control socket.
const ANSWER: Duration = Duration::from_secs(5);
/// And to be up, or down.
const PATIENCE: Duration = Duration::from_secs(30);

/// How an end is started.
pub(super) struct Recipe {
    /// What it is called in the result.
    pub(super) name: &'static str,
    /// `remote` or `ground`.
    pub(super) command: &'static str,
    pub(super) place: Place,
    pub(super) options: Vec<String>,
    /// Its settings, its control socket, and what it writes to standard error life by life.
    pub(super) settings: PathBuf,
    pub(super) control: PathBuf,
    pub(super) stderr: PathBuf,
}

/// An end that runs.
pub(super) struct End {
    recipe: Recipe,
    process: Running,
    lives: u32,
}

impl End {
    pub(super) fn start(testbed: &Testbed, recipe: Recipe) -> Result<End, MeasureError> {
        let process = life(testbed, &recipe, 0)?;
        Ok(End { recipe, process, lives: 1 })
    }

    pub(super) fn name(&self) -> &'static str {
        self.recipe.name
    }

    pub(super) fn settings(&self) -> &Path {
        &self.recipe.settings
    }

    /// Ends it with SIGKILL.
    pub(super) fn kill(&mut self) -> Result<(), MeasureError> {
        self.process.kill_group().map(drop).map_err(MeasureError::system("end a process"))
    }

    /// Starts it again as it was started before.
    pub(super) fn again(&mut self, testbed: &Testbed) -> Result<(), MeasureError> {
        self.process = life(testbed, &self.recipe, self.lives)?;
        self.lives += 1;
        Ok(())
    }

    /// Has it read its settings anew (SIGHUP).
    pub(super) fn hang_up(&mut self) -> Result<(), MeasureError> {
        self.process.hang_up().map_err(MeasureError::system("signal a process"))
    }

    /// Ends it in order (SIGTERM); what was not as it should be then, in words.
    pub(super) fn take_down(&mut self, interrupt: &Interrupt) -> Result<Option<String>, MeasureError> {
        self.process.terminate().map_err(MeasureError::system("signal a process"))?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.process.try_wait().map_err(MeasureError::system("wait for a process"))? {
                Some(status) if !status.success() => {
                    return Ok(Some(format!("{} ended ({status})", self.name())));
                }
                Some(_) if self.recipe.control.exists() => {
                    return Ok(Some(format!("{} left its control socket", self.name())));
                }
                Some(_) => return Ok(None),
                None if Instant::now() > deadline => {
                    return Ok(Some(format!("{} did not end", self.name())));
                }
                None => interrupt.sleep(Duration::from_millis(50))?,
            }
        }
    }

    /// Whether it runs; its last words where it does not.
    pub(super) fn check_alive(&mut self) -> Result<(), MeasureError> {
        match self.process.try_wait() {
            Ok(Some(status)) => {
                let said = last_words(&stderr_of(&self.recipe, self.lives - 1));
                Err(MeasureError::Unexpected(format!("{} ended ({status}): {said}", self.name())))
            }
            _ => Ok(()),
        }
    }

    /// Lines that it wrote, in all of its lives, of what must not happen: a panic, or an error.
    pub(super) fn complaints(&self) -> Vec<String> {
        let lives = (0..self.lives).map(|life| stderr_of(&self.recipe, life));
        let said = lives.filter_map(|file| std::fs::read_to_string(file).ok()).collect::<String>();
        let bad = |line: &&str| line.contains("panicked") || line.contains("ERROR");
        said.lines().filter(bad).map(|line| format!("{}: {line}", self.name())).collect()
    }

    /// What it says to a command; none where it does not answer.
    pub(super) fn ask(&self, runtime: &Runtime, command: &str) -> Option<Value> {
        let call = async {
            let mut client = Client::connect(&self.recipe.control).await.ok()?;
            client.call(command, Value::Null).await.ok()
        };
        runtime.block_on(async { tokio::time::timeout(ANSWER, call).await.ok().flatten() })
    }

    /// What it holds now; none where it does not run or not answer.
    pub(super) fn level(&self, runtime: &Runtime) -> Option<Level> {
        // Before it is asked, which takes a socket.
        let mut level = Level::of_process(self.process.id())?;
        level.add_status(&self.ask(runtime, "status")?);
        Some(level)
    }

    /// How many carriers it has.
    pub(super) fn carriers(&self, runtime: &Runtime) -> usize {
        let status = self.ask(runtime, "status").unwrap_or_default();
        status["carriers"].as_array().map_or(usize::from(!status["carrier"].is_null()), Vec::len)
    }

    /// Waits until it has a carrier, or so many of them.
    pub(super) fn await_carriers(
        &mut self,
        runtime: &Runtime,
        interrupt: &Interrupt,
        wanted: usize,
    ) -> Result<(), MeasureError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.check_alive()?;
            if self.carriers(runtime) >= wanted {
                return Ok(());
            }
            if Instant::now() > deadline {
                let said = last_words(&stderr_of(&self.recipe, self.lives - 1));
                return Err(MeasureError::Unexpected(format!("{} has no carrier: {said}", self.name())));
            }
            interrupt.sleep(Duration::from_millis(50))?;
        }
    }
}

fn life(testbed: &Testbed, recipe: &Recipe, number: u32) -> Result<Running, MeasureError> {
    let mut command = farhop()?;
    command.arg(recipe.command).arg("--config").arg(&recipe.settings).args(&recipe.options);
    Ok(spawn(testbed, recipe.place, command, &stderr_of(recipe, number))?)
}

fn stderr_of(recipe: &Recipe, life: u32) -> PathBuf {
    recipe.stderr.with_extension(format!("{life}.stderr"))
}
