//! Capabilities of this process (capabilities(7)): whether it has the one that networks are changed with, giving that
//! up, and passing it on to the tools that are run with it.

use nix::errno::Errno;

use crate::Error;

/// Networks are changed with it.
pub(crate) const NET_ADMIN: u32 = 12;
/// Sockets with foreign addresses are made with it, too.
const NET_RAW: u32 = 13;
/// `_LINUX_CAPABILITY_VERSION_3`: two words for each set.
const VERSION: u32 = 0x2008_0522;

#[repr(C)]
struct Header {
    version: u32,
    pid: libc::c_int,
}

/// The low word of each set, then the high one.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Sets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

fn read() -> Result<[Sets; 2], Errno> {
    let (mut header, mut sets) = (Header { version: VERSION, pid: 0 }, [Sets::default(); 2]);
    // SAFETY: both live through the call, and have the layout that this version of the call has.
    let result = unsafe { libc::syscall(libc::SYS_capget, &raw mut header, &raw mut sets) };
    Errno::result(result).map(|_| sets)
}

fn write(sets: [Sets; 2]) -> Result<(), Errno> {
    let mut header = Header { version: VERSION, pid: 0 };
    // SAFETY: as in `read`; the kernel only reads the sets.
    let result = unsafe { libc::syscall(libc::SYS_capset, &raw mut header, &raw const sets) };
    Errno::result(result).map(drop)
}

/// Fails unless the calling thread may change networks. `what` opens the sentence that says so.
pub(crate) fn require_net_admin(what: &str) -> Result<(), Error> {
    let sets = read().map_err(Error::system("read the capabilities of this process"))?;
    if sets[0].effective & 1 << NET_ADMIN == 0 {
        return Err(Error::NoNetAdmin { what: what.into() });
    }
    Ok(())
}

/// Gives up what changes networks and makes sockets with foreign addresses, for this thread and those that it starts.
pub(crate) fn give_up_net_admin() -> Result<(), Error> {
    let give_up = || {
        let mut sets = read()?;
        let kept = !(1 << NET_ADMIN | 1 << NET_RAW);
        for set in [&mut sets[0].effective, &mut sets[0].permitted, &mut sets[0].inheritable] {
            *set &= kept;
        }
        write(sets)
    };
    give_up().map_err(Error::system("give up CAP_NET_ADMIN"))
}

/// Lets the tools that are run from here change networks as well, where this process is not root: the capability
/// becomes an ambient one.
pub(crate) fn pass_net_admin_on() {
    let pass_on = || {
        let mut sets = read()?;
        sets[0].inheritable |= 1 << NET_ADMIN;
        write(sets)?;
        // SAFETY: takes numbers only.
        let raised = unsafe {
            libc::prctl(
                libc::PR_CAP_AMBIENT,
                libc::PR_CAP_AMBIENT_RAISE,
                libc::c_ulong::from(NET_ADMIN),
                0 as libc::c_ulong,
                0 as libc::c_ulong,
            )
        };
        Errno::result(raised)
    };
    // Root's tools have it anyway; where they end up without, their complaint says so.
    let _ = pass_on();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_up_is_gone_in_this_thread_and_its_children_only() {
        let had = require_net_admin("this test").is_ok();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                give_up_net_admin().unwrap();
                let here = require_net_admin("this test");
                let child = std::thread::spawn(|| require_net_admin("this test")).join().unwrap();
                for refused in [here, child] {
                    let line = refused.unwrap_err().to_string();
                    assert!(line.starts_with("this test needs CAP_NET_ADMIN"), "{line}");
                }
            });
        });
        assert_eq!(require_net_admin("this test").is_ok(), had);
    }
}
