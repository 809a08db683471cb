//! Removal of whatever was made, on every way out: drop, panic, error, signal and SIGKILL.
//!
//! A janitor is a shell that reads one command per line from its owner's pipe and does nothing until the
//! pipe closes; then it runs them, last first. The kernel closes the pipe when the owner dies, so there is
//! one way of removal whatever the end. It must hold no descriptor of its owner but that pipe.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, Once, PoisonError, Weak};

use crate::owner::{self, Owner};
use crate::{Error, signals};

/// Waits for end of file, then undoes. `drop_namespace` first kills what still runs inside, again and again
/// since a dying shell may fork, but never the owner. Settings of the first namespace are shared by all
/// testbeds, so the last one to go writes back what was there before the first.
const SCRIPT: &str = r#"
trap '' INT TERM HUP QUIT
owner=$1
drop_namespace() {
  tries=0
  while [ $tries -lt 100 ]; do
    pids=$(ip netns pids "$1" 2>/dev/null | grep -vx "$owner")
    [ -n "$pids" ] || break
    kill -9 $pids 2>/dev/null
    tries=$((tries + 1))
    sleep 0.01
  done
  ip netns delete "$1" 2>/dev/null
  rm -f "/etc/netns/$1/resolv.conf" "/etc/netns/$1/nsswitch.conf"
  rmdir "/etc/netns/$1" /etc/netns 2>/dev/null
}
restore_sysctl() {
  saved=/run/farhop/$(printf %s "$1" | tr / :)
  ls /run/netns 2>/dev/null | grep -q '^farhop-' && return
  [ -f "$saved" ] && cat "$saved" >"/proc/sys/$1" && rm -f "$saved"
  rmdir /run/farhop 2>/dev/null
}
undo= sysctls=
while IFS= read -r line; do
  undo="$line
$undo"
done
eval "$undo"
for path in $sysctls; do restore_sysctl "$path"; done
"#;

/// One thing to undo. The only commands that a janitor is ever given.
pub(crate) enum Undo<'a> {
    /// Kill what runs inside and delete it.
    Namespace(&'a str),
    /// Delete an nftables table of family `ip`.
    NftTable(&'a str),
    /// Take a congestion controller in BPF from the kernel's list; connections that have it keep it.
    Controller(&'a str),
    /// Write a saved setting of the first namespace back, once no testbed needs it.
    Sysctl(&'a str),
}

impl Undo<'_> {
    fn line(&self) -> String {
        match self {
            Undo::Namespace(name) => format!("drop_namespace {}", quoted(name)),
            Undo::NftTable(name) => format!("nft delete table ip {} 2>/dev/null", quoted(name)),
            Undo::Controller(name) => {
                format!("bpftool struct_ops unregister name {} 2>/dev/null", quoted(name))
            }
            Undo::Sysctl(path) => format!("sysctls=\"$sysctls \"{}", quoted(path)),
        }
    }
}

/// `text` as one word of the shell on one line.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\n', " ").replace('\'', r"'\''"))
}

/// Owns what was made in the kernel and undoes it when dropped or when this process ends.
#[derive(Debug)]
pub struct Janitor {
    owner: Owner,
    shell: Mutex<Option<(Child, ChildStdin)>>,
}

static LIVING: Mutex<Vec<Weak<Janitor>>> = Mutex::new(Vec::new());

impl Janitor {
    /// Starts a janitor, and clears away what dead owners left behind.
    ///
    /// From the first call on, SIGINT, SIGTERM and SIGHUP clean up and then end the process as they would
    /// have without us. A program that wants to handle one of them itself installs its handler before this
    /// call: then that signal is left to it, and so is dropping what it owns.
    ///
    /// # Errors
    /// `sh` cannot be started.
    pub fn start() -> Result<Arc<Self>, Error> {
        let janitor = Arc::new(Janitor { owner: Owner::this_process(), shell: Mutex::new(Some(shell()?)) });
        let mut living = LIVING.lock().unwrap_or_else(PoisonError::into_inner);
        living.retain(|other| other.strong_count() > 0);
        living.push(Arc::downgrade(&janitor));
        drop(living);

        static FIRST: Once = Once::new();
        FIRST.call_once(|| {
            signals::finish_janitors_on_signals();
            sweep();
        });
        Ok(janitor)
    }

    /// The names of what this janitor will undo.
    pub(crate) fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Promises that `undo` will happen. Called before the thing is made, so that no moment is uncovered.
    pub(crate) fn promise(&self, undo: &Undo<'_>) -> Result<(), Error> {
        let mut shell = self.shell.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((_, pipe)) = shell.as_mut() else {
            let source = std::io::Error::other("it has already cleaned up");
            return Err(Error::System { what: "reach the janitor".into(), source });
        };
        writeln!(pipe, "{}", undo.line()).map_err(Error::system("reach the janitor"))
    }

    /// Undoes everything and waits until it is done. Later calls find nothing to do, but a call at the same
    /// time waits as well: nobody goes on, or exits, before it is done.
    fn finish(&self) {
        let mut shell = self.shell.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((mut child, pipe)) = shell.take() {
            drop(pipe);
            // It cannot fail in a way that we could mend: what it could not remove the next start sweeps.
            let _ = child.wait();
        }
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Lets every janitor of this process do its work; for the way out on a signal.
pub(crate) fn finish_all() {
    let living = std::mem::take(&mut *LIVING.lock().unwrap_or_else(PoisonError::into_inner));
    living.iter().filter_map(Weak::upgrade).for_each(|janitor| janitor.finish());
}

fn shell() -> Result<(Child, ChildStdin), Error> {
    let mut child = Command::new("sh")
        .args(["-c", SCRIPT, "farhop-janitor", &std::process::id().to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .current_dir("/")
        .process_group(0) // Ctrl-C at the terminal is for its owner, not for it
        .spawn()
        .map_err(Error::system("start sh"))?;
    let pipe = child.stdin.take().expect("stdin was piped above");
    Ok((child, pipe))
}

/// Removes what dead owners left behind, should their janitors have died with them. Best effort: what
/// cannot be removed is in nobody's way, since names are never used twice.
fn sweep() {
    let mut names: Vec<String> = ["/run/netns", "/etc/netns"]
        .iter()
        .filter_map(|dir| std::fs::read_dir(dir).ok())
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| owner::is_stale(name))
        .collect();
    names.sort();
    names.dedup();
    let tables = Command::new("nft").args(["list", "tables", "ip"]).stderr(Stdio::null()).output();
    let tables = tables.map(|out| String::from_utf8_lossy(&out.stdout).into_owned()).unwrap_or_default();
    let tables = tables.lines().filter_map(|line| line.strip_prefix("table ip "));
    let tables: Vec<&str> = tables.map(str::trim).filter(|name| owner::is_stale(name)).collect();
    let controllers = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let controllers = controllers.unwrap_or_default();
    let controllers: Vec<&str> =
        controllers.split_whitespace().filter(|name| owner::is_stale_controller(name)).collect();
    if names.is_empty() && tables.is_empty() && controllers.is_empty() {
        return;
    }
    let Ok((mut child, mut pipe)) = shell() else {
        return;
    };
    let undos = names.iter().map(|name| Undo::Namespace(name)).chain(tables.into_iter().map(Undo::NftTable));
    let undos = undos.chain(controllers.into_iter().map(Undo::Controller));
    for undo in undos {
        let _ = writeln!(pipe, "{}", undo.line());
    }
    drop(pipe);
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_one_word_whatever_is_in_it() {
        assert_eq!(quoted("net/ipv4 x"), "'net/ipv4 x'");
        assert_eq!(quoted("a'; rm -rf x\n"), r"'a'\''; rm -rf x '");
    }

    #[test]
    fn a_janitor_that_has_finished_takes_no_more_promises() {
        let janitor = Janitor::start().unwrap();
        janitor.finish();
        assert!(janitor.promise(&Undo::NftTable("farhop_0_0_0")).is_err());
    }
}
