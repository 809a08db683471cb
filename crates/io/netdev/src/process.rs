//! Child processes that do not outlive the value that holds them, their own children included; and how much this
//! process may have open.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::io;
use std::ops::{Deref, DerefMut};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus};

/// Lets this process open as many descriptors as the system allows it, and gives that number. Programs of old break when
/// there are more than 1,024, so systems offer that many and leave it to others to take what they need.
///
/// # Errors
/// The system refuses.
pub fn raise_descriptor_limit() -> io::Result<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft < hard {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    }
    Ok(hard)
}

/// A running process in a process group of its own; dropping this kills the whole group and reaps it.
#[derive(Debug)]
pub struct Running(Child);

impl Running {
    /// Starts `command`. It will not see the terminal's interrupt key: its owner decides when it ends.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        command.process_group(0).spawn().map(Running)
    }

    /// Sends SIGKILL to the process and what it started (unless that left the group), and reaps it.
    ///
    /// # Errors
    /// The process cannot be waited for.
    pub fn kill_group(&mut self) -> io::Result<ExitStatus> {
        // The group bears the child's pid for as long as one member is left, so no stranger can have it;
        // after the last it is gone, and that error is what we want.
        let _ = killpg(Pid::from_raw(self.0.id().cast_signed()), Signal::SIGKILL);
        self.0.wait()
    }

    /// Asks the process to end (SIGTERM), as a service manager would.
    ///
    /// # Errors
    /// It has ended and been reaped already.
    pub fn terminate(&mut self) -> io::Result<()> {
        self.signal(Signal::SIGTERM)
    }

    /// Has the process read its settings anew (SIGHUP).
    ///
    /// # Errors
    /// As [`terminate`](Self::terminate).
    pub fn hang_up(&mut self) -> io::Result<()> {
        self.signal(Signal::SIGHUP)
    }

    fn signal(&mut self, signal: Signal) -> io::Result<()> {
        if self.0.try_wait()?.is_some() {
            return Ok(()); // reaped: the pid may be a stranger's by now
        }
        Ok(nix::sys::signal::kill(Pid::from_raw(self.0.id().cast_signed()), signal)?)
    }
}

impl Deref for Running {
    type Target = Child;
    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Running {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.kill_group(); // it has ended, which is all that a drop wants
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::process::Stdio;

    #[test]
    fn as_many_descriptors_as_the_system_allows_may_be_open() {
        let most = raise_descriptor_limit().unwrap();
        assert_eq!(getrlimit(Resource::RLIMIT_NOFILE).unwrap(), (most, most));
    }

    #[test]
    fn a_dropped_process_takes_its_children_along() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 & wait"]).stdout(Stdio::piped());
        let mut running = Running::start(&mut command).unwrap();
        let mut output = running.stdout.take().unwrap();
        drop(running);
        // The grandchild holds the write end: this returns only once it is gone as well.
        assert_eq!(output.read_to_end(&mut Vec::new()).unwrap(), 0);
    }

    #[test]
    fn a_terminated_process_can_say_goodbye() {
        let mut command = Command::new("sh");
        command.args(["-c", "trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done"]);
        let mut running = Running::start(command.stdout(Stdio::piped())).unwrap();
        let mut ready = [0; 6];
        running.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
        running.terminate().unwrap();
        assert_eq!(running.wait().unwrap().code(), Some(7));
    }
}
