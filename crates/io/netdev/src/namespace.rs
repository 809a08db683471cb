//! A network namespace with a name under `/run/netns`: its devices, its settings, and the threads and
//! processes that run inside it.

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::signal::{SigHandler, Signal, signal};
use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::net::IpAddr;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::host::{ip_batch, run};
use crate::janitor::Undo;
use crate::{Error, Janitor, signals};

/// A network namespace. It goes when its janitor goes, together with every process inside.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    file: Arc<File>,
    /// Files of this namespace and what they hide in the view of its processes.
    binds: Vec<(CString, CString)>,
    _janitor: Arc<Janitor>,
}

impl Namespace {
    /// Makes a namespace for `role` (a word of letters), named so that no other testbed's is met; its
    /// loopback is up, and devices made in it have no IPv6, whose chatter would count as traffic.
    ///
    /// # Errors
    /// No privileges, or `ip` is missing or refuses.
    pub fn create(janitor: &Arc<Janitor>, role: &str) -> Result<Self, Error> {
        let name = janitor.owner().namespace(role);
        janitor.promise(&Undo::Namespace(&name))?;
        run("ip", &["netns", "add", &name])?;
        let path = format!("/run/netns/{name}");
        let file = File::open(&path).map_err(Error::system(format!("open {path}")))?;
        let namespace =
            Namespace { name, file: Arc::new(file), binds: Vec::new(), _janitor: Arc::clone(janitor) };
        // Kernels without IPv6 have no such setting, and no chatter either.
        let _ = namespace.sysctl("net/ipv6/conf/default/disable_ipv6", "1");
        namespace.ip(&["link set lo up"])?;
        Ok(namespace)
    }

    /// Its name, as `ip netns exec NAME` takes it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs `ip` commands inside, one per line, in one process.
    ///
    /// # Errors
    /// `ip` refuses one of them; those before it are done.
    pub fn ip<S: AsRef<str>>(&self, lines: &[S]) -> Result<(), Error> {
        ip_batch(&["-n", &self.name], lines)
    }

    /// Sets a sysctl inside, by its path below `/proc/sys`.
    ///
    /// # Errors
    /// There is no such setting, or it takes no such value.
    pub fn sysctl(&self, path: &str, value: &str) -> Result<(), Error> {
        let what = format!("set {path} to '{value}' in namespace {}", self.name);
        self.run(|| fs::write(format!("/proc/sys/{path}"), value))?.map_err(Error::system(what))
    }

    /// From now on processes started inside resolve names by asking `server` and nothing else.
    ///
    /// # Errors
    /// `/etc/netns` cannot be written.
    pub fn resolver(&mut self, server: IpAddr) -> Result<(), Error> {
        let dir = format!("/etc/netns/{}", self.name);
        let resolv = format!("nameserver {server}\noptions timeout:5 attempts:3\n");
        // Without this a resolver daemon of the host (systemd-resolved, mDNS) would answer over its Unix
        // socket, past the link.
        let present = fs::read_to_string("/etc/nsswitch.conf").unwrap_or_default();
        let others = present.lines().filter(|line| !line.trim_start().starts_with("hosts:"));
        let switch: String = others.flat_map(|line| [line, "\n"]).chain(["hosts: files dns\n"]).collect();
        let write = || -> io::Result<()> {
            fs::create_dir_all(&dir)?;
            fs::write(format!("{dir}/resolv.conf"), resolv)?;
            fs::write(format!("{dir}/nsswitch.conf"), switch)
        };
        write().map_err(Error::system(format!("write {dir}")))?;
        self.binds = ["resolv.conf", "nsswitch.conf"]
            .into_iter()
            .filter(|file| fs::exists(format!("/etc/{file}")).unwrap_or(false)) // else there is nothing to hide
            .filter_map(|file| {
                Some((
                    CString::new(format!("{dir}/{file}")).ok()?,
                    CString::new(format!("/etc/{file}")).ok()?,
                ))
            })
            .collect();
        Ok(())
    }

    /// Moves the calling thread inside for good; sockets that it opens from now on live there.
    ///
    /// # Errors
    /// No privileges.
    pub fn enter(&self) -> Result<(), Error> {
        setns(&self.file, CloneFlags::CLONE_NEWNET)
            .map_err(Error::system(format!("enter namespace {}", self.name)))
    }

    /// Runs `work` inside, on a thread of its own, and waits for it. A panic in `work` goes on here.
    ///
    /// # Errors
    /// The thread cannot be started or moved inside.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, Error> {
        std::thread::scope(|scope| {
            let inside = move || self.enter().map(|()| work());
            let thread = std::thread::Builder::new().spawn_scoped(scope, inside);
            let thread = thread.map_err(Error::system("start a thread"))?;
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Starts a thread inside. It keeps the namespace alive in the kernel, but not its name.
    ///
    /// # Errors
    /// The thread cannot be started or moved inside.
    pub fn thread(&self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Error> {
        let file = Arc::clone(&self.file);
        let (tell, entered) = std::sync::mpsc::sync_channel(1);
        let inside = move || {
            let result = setns(&*file, CloneFlags::CLONE_NEWNET);
            let ready = result.is_ok();
            // The receiver waits below, and if its thread is gone then so is everyone who wants the work.
            if tell.send(result).is_ok() && ready {
                work();
            }
        };
        let thread = std::thread::Builder::new().name(name.into()).spawn(inside);
        let thread = thread.map_err(Error::system("start a thread"))?;
        let result = entered.recv().unwrap_or(Err(nix::errno::Errno::ESRCH));
        result.map_err(Error::system(format!("enter namespace {}", self.name)))?;
        Ok(thread)
    }

    /// Makes `command` start inside: with this namespace's network, its resolver, and the interrupt keys at
    /// their default. The std command may become a tokio one afterwards.
    pub fn prepare(&self, command: &mut Command) {
        let file = Arc::clone(&self.file);
        let binds = self.binds.clone();
        let enter = move || {
            setns(&*file, CloneFlags::CLONE_NEWNET)?;
            if !binds.is_empty() {
                let none = None::<&std::ffi::CStr>;
                unshare(CloneFlags::CLONE_NEWNS)?;
                // Slave: what the host mounts later is seen, what is bound here stays here.
                mount(none, c"/", none, MsFlags::MS_SLAVE | MsFlags::MS_REC, none)?;
                for (source, target) in &binds {
                    mount(Some(&**source), &**target, none, MsFlags::MS_BIND, none)?;
                }
            }
            for key in [Signal::SIGINT, Signal::SIGQUIT] {
                // SAFETY: the default action is no handler at all.
                unsafe { signal(key, SigHandler::SigDfl) }?;
            }
            Ok(())
        };
        // SAFETY: between fork and exec the closure makes only syscalls: no allocation, no lock. The paths
        // were made above.
        unsafe {
            command.pre_exec(enter);
        }
    }
}

impl Drop for Namespace {
    /// The janitor removes it; this only keeps a process that a signal is ending from going on as if its
    /// children had died by themselves.
    fn drop(&mut self) {
        signals::wait_for_the_end();
    }
}
