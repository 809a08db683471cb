//! `farhop link run` at an end of the link.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use farhop_compare::Interrupt;
use farhop_control::Client;
use farhop_netdev::Running;
use farhop_testbed::{Place, Testbed};
use serde_json::Value;

use crate::MeasureError;

/// It has to stand by then.
const PATIENCE: Duration = Duration::from_secs(20);

/// A manager that runs.
pub(super) struct Manager {
    running: Running,
    socket: PathBuf,
}

impl Manager {
    /// At this end of a link of which it is told so much; settings that are written down here stay for the next one there.
    pub(super) fn start(
        testbed: &Testbed,
        place: Place,
        folder: &Path,
        told: &str,
        interrupt: &Interrupt,
    ) -> Result<Manager, MeasureError> {
        let failed = MeasureError::system("the link manager");
        let direction = if place == Place::Ground { "forward" } else { "return" };
        let file = folder.join(format!("{direction}.toml"));
        let socket = folder.join(format!("{direction}.sock"));
        let text = format!(
            "interface = \"sat0\"\n{told}direction = \"{direction}\"\ncontrol = \"{direction}.sock\"\n\
             calls_file = \"{direction}.calls\"\n[sip]\nports = [\"5060\"]\n"
        );
        std::fs::write(&file, text).map_err(&failed)?;
        let mut command = Command::new(std::env::current_exe().map_err(&failed)?);
        command.args(["link", "run", "--config"]).arg(&file);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit());
        let running = testbed.spawn_in(place, command)?;
        let manager = Manager { running, socket };
        let begin = Instant::now();
        while manager.ask("status", Value::Null).is_err() {
            if begin.elapsed() > PATIENCE {
                return Err(MeasureError::Unexpected("the link manager does not answer".into()));
            }
            interrupt.sleep(Duration::from_millis(50))?;
        }
        Ok(manager)
    }

    /// Asks it over its control socket; its own word where it refuses.
    pub(super) fn ask(&self, command: &str, args: Value) -> Result<Value, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(|error| error.to_string())?.block_on(async {
            let mut client = Client::connect(&self.socket).await.map_err(|error| error.to_string())?;
            client.call(command, args).await.map_err(|error| error.to_string())
        })
    }

    /// The names of its calls.
    pub(super) fn calls(&self) -> Vec<String> {
        let calls = self.ask("calls", Value::Null).unwrap_or_default();
        let name = |call: &Value| call["call"].as_str().unwrap_or_default().to_owned();
        calls.as_array().map(|calls| calls.iter().map(name).collect()).unwrap_or_default()
    }

    /// Kills it as SIGKILL does.
    pub(super) fn kill(mut self) -> Result<(), MeasureError> {
        self.running.kill_group().map(drop).map_err(MeasureError::system("killing the link manager"))
    }
}
