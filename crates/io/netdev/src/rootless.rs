//! Root within a user namespace, for who is not root outside: networks of one's own can be made there, and nothing else changes on
//! the machine. What needs the machine itself (real-time priority, the first namespace's networks) is still refused.

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::host::host_ip;
use crate::{Error, require_privileges};

static ENTERED: AtomicBool = AtomicBool::new(false);

/// Whether this process is root by [`enter_user_namespace`] alone.
pub fn is_rootless() -> bool {
    ENTERED.load(Ordering::Relaxed)
}

/// Moves this process into a user namespace of its own, where it is root, with a network, `/run` and changes to `/etc` of its own.
/// To be called before the process has a second thread; one that is privileged stays where it is.
///
/// # Errors
/// The system does not allow it, or only root may open `/dev/net/tun`.
pub fn enter_user_namespace(what: &str) -> Result<(), Error> {
    if !matches!(require_privileges(what), Err(Error::NoPrivileges { .. })) {
        return Ok(());
    }
    // Asked while an answer still helps: inside, nothing more can be done about it.
    File::options()
        .read(true)
        .write(true)
        .open("/dev/net/tun")
        .map_err(Error::system("open /dev/net/tun without being root (as root: chmod 666 /dev/net/tun)"))?;
    let me = fs::metadata("/proc/self").map_err(Error::system("read /proc/self"))?;
    let (uid, gid) = (me.uid(), me.gid());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWNET).map_err(
        Error::system(
            "make a user namespace (sysctl user.max_user_namespaces, or the container, may forbid it)",
        ),
    )?;
    let maps = || -> io::Result<()> {
        // user_namespaces(7): without this an ordinary process may not map groups.
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("0 {uid} 1"))?;
        fs::write("/proc/self/gid_map", format!("0 {gid} 1"))
    };
    maps().map_err(Error::system("map this user to root of its namespace"))?;
    own_folders().map_err(Error::system("mount /run and /etc of the namespace's own"))?;
    host_ip(&["link set lo up"])?;
    ENTERED.store(true, Ordering::Relaxed);
    Ok(())
}

/// What namespaces write: their names under /run, their resolvers under /etc/netns.
fn own_folders() -> io::Result<()> {
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_PRIVATE | MsFlags::MS_REC, none)?;
    mount(Some("tmpfs"), "/run", Some("tmpfs"), MsFlags::empty(), none)?;
    for folder in ["/run/etc-upper", "/run/etc-work"] {
        fs::create_dir(folder)?;
    }
    let layers = "lowerdir=/etc,upperdir=/run/etc-upper,workdir=/run/etc-work";
    mount(Some("overlay"), "/etc", Some("overlay"), MsFlags::empty(), Some(layers))?;
    // A folder that the machine has already stays the machine's root's in an overlay, who is nobody here.
    fs::create_dir_all("/etc/netns")?;
    mount(Some("tmpfs"), "/etc/netns", Some("tmpfs"), MsFlags::empty(), none)?;
    Ok(())
}
