//! `farhop local` as a process with a proxy port and a control socket of its own.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{Program, ask, farhop};

/// A running `farhop local`, its carrier up.
pub(crate) struct Local {
    pub(crate) program: Program,
    pub(crate) proxy: SocketAddr,
    control: PathBuf,
    _folder: tempfile::TempDir,
}

impl Local {
    /// Starts it with these options besides its own and waits until it serves.
    pub(crate) async fn start(options: &[&str]) -> Local {
        Local::start_as(farhop(), options).await
    }

    /// The same of `command`, which becomes the program.
    pub(crate) async fn start_as(mut command: Command, options: &[&str]) -> Local {
        let folder = tempfile::tempdir().unwrap();
        let control = folder.path().join("remote.sock");
        command.args(["local", "--listen", "127.0.0.1:0", "--control"]).arg(&control).args(options);
        let mut program = Program::start(command, folder.path(), "local");
        let mut output = BufReader::new(program.child.stdout.take().unwrap());
        let first = tokio::task::spawn_blocking(move || {
            let mut line = String::new();
            output.read_line(&mut line).map(|_| line)
        });
        let line = first.await.unwrap().unwrap();
        let proxy =
            line.strip_prefix("farhop: proxy on ").and_then(|rest| rest.split(',').next()?.parse().ok());
        let Some(proxy) = proxy else { panic!("farhop local did not start: '{line}' {}", program.said()) };
        Local { program, proxy, control, _folder: folder }
    }

    /// With every loopback address open to it.
    pub(crate) async fn allowed(options: &[&str]) -> Local {
        Local::start(&[&["--allow", "127.0.0.0/8"], options].concat()).await
    }

    /// The remote end's control socket.
    pub(crate) fn control(&self) -> &Path {
        &self.control
    }

    /// What the remote end is doing.
    pub(crate) async fn status(&self) -> Value {
        ask(&self.control, "status").await.unwrap()
    }

    /// What the remote end has counted.
    pub(crate) async fn counters(&self) -> Value {
        ask(&self.control, "counters").await.unwrap()
    }
}
