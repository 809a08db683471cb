//! The program as a process: started, watched, killed. Its standard error goes to a file, to be read while it runs.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The program under test, with nothing to read.
pub(crate) fn farhop() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_farhop"));
    command.stdin(Stdio::null());
    command
}

/// Runs the program to its end, which has to be a failure (exit code 1) that is told in one line; gives the line.
pub(crate) fn refused(command: &mut Command) -> String {
    ended_with(1, command)
}

/// Runs the program to its end, which has to be of this exit code and told in one line; gives the line.
pub(crate) fn ended_with(code: i32, command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{command:?}: {said}");
    assert_eq!(said.lines().count(), 1, "{command:?}: {said}");
    assert!(output.stdout.is_empty(), "{command:?}: {output:?}");
    said
}

/// A process of the program that runs until this is dropped.
pub(crate) struct Program {
    pub(crate) child: Child,
    stderr: PathBuf,
}

impl Program {
    /// Starts `command` with its standard error in `folder`, in a file called after `name`.
    pub(crate) fn start(mut command: Command, folder: &Path, name: &str) -> Program {
        let stderr = folder.join(format!("{name}.stderr"));
        // A restarted end goes on in the same file.
        let file = std::fs::File::options().create(true).append(true).open(&stderr).unwrap();
        let child = command.stdout(Stdio::piped()).stderr(file).spawn().unwrap();
        Program { child, stderr }
    }

    /// What it has written to standard error so far.
    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(&self.stderr).unwrap()
    }

    /// Fails the test if the process has ended.
    pub(crate) fn assert_runs(&mut self) {
        if let Some(status) = self.child.try_wait().unwrap() {
            panic!("the process has ended ({status}): {}", self.said());
        }
    }

    /// The most resident memory it has held at a time, in bytes (`VmHWM`, proc(5)).
    pub(crate) fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let kilobytes: u64 = line.trim().strip_suffix("kB").unwrap().trim().parse().unwrap();
        kilobytes * 1024
    }

    /// SIGTERM, and waits until it has ended well.
    pub(crate) fn stop(&mut self) {
        let asked = Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        assert!(asked.success());
        assert!(self.child.wait().unwrap().success(), "{}", self.said());
    }

    /// SIGKILL, and its body taken away.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself, which is all that a drop wants.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
