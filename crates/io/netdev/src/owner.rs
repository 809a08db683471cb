//! Names that say which process owns a thing, so that testbeds run beside each other and what a dead owner
//! left behind can be told from what a living one uses.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

/// Every name made here starts with this, and nothing else on the machine should.
pub(crate) const PREFIX: &str = "farhop";

/// `farhop-<pid>-<start time>-<number>`; the start time tells a reused pid from the owner.
#[derive(Debug, Clone)]
pub(crate) struct Owner(String);

impl Owner {
    /// A new name owned by this process.
    pub(crate) fn this_process() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let pid = std::process::id();
        let start = start_time(pid).unwrap_or(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Owner(format!("{PREFIX}-{pid}-{start}-{number}"))
    }

    /// As a namespace name for `role`.
    pub(crate) fn namespace(&self, role: &str) -> String {
        format!("{}-{role}", self.0)
    }

    /// As an nftables identifier, which knows no dash.
    pub(crate) fn table(&self) -> String {
        self.0.replace('-', "_")
    }
}

/// Whether `name` is one of ours whose owner no longer runs.
pub(crate) fn is_stale(name: &str) -> bool {
    let mut parts = name.split(['-', '_']);
    if parts.next() != Some(PREFIX) {
        return false;
    }
    let numbers = (parts.next().and_then(|p| p.parse().ok()), parts.next().and_then(|s| s.parse().ok()));
    let (Some(pid), Some(start)) = numbers else {
        return false;
    };
    start_time(pid) != Some(start)
}

/// What names of congestion controllers begin with.
const CONTROLLER: &str = "fh_";
const BASE: u32 = 36;

/// `fh_<algorithm>_<pid><number>`: the kernel has room for 15 characters, so of the algorithm there are five letters, the pid is to
/// base 36, and the last character is the number.
pub(crate) fn controller(algorithm: &str) -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed) % BASE;
    let letters: String = algorithm.chars().filter(char::is_ascii_alphanumeric).take(5).collect();
    let digit = |value: u32| char::from_digit(value % BASE, BASE).unwrap_or('0');
    let (mut pid, mut digits) = (std::process::id(), vec![digit(number)]);
    while pid > 0 {
        digits.push(digit(pid));
        pid /= BASE;
    }
    format!("{CONTROLLER}{letters}_{}", digits.into_iter().rev().collect::<String>())
}

/// Whether a congestion controller is one of ours whose owner no longer runs.
pub(crate) fn is_stale_controller(name: &str) -> bool {
    let owner = name.strip_prefix(CONTROLLER).and_then(|rest| rest.split_once('_'));
    let Some((_, owner)) = owner.filter(|(_, owner)| owner.is_ascii() && owner.len() > 1) else {
        return false;
    };
    let pid = u32::from_str_radix(&owner[..owner.len() - 1], BASE);
    pid.is_ok_and(|pid| start_time(pid).is_none())
}

/// Clock ticks between boot and the start of a process; `None` if it does not run.
fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command name may hold blanks and parentheses; what follows its last one is regular.
    // proc_pid_stat(5): field 22 is starttime, the 20th after the name.
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_living_owner_are_not_stale() {
        let owner = Owner::this_process();
        assert!(!is_stale(&owner.namespace("client")));
        assert!(!is_stale(&owner.table()));
    }

    #[test]
    fn a_reused_pid_does_not_keep_a_dead_owners_names_alive() {
        let pid = std::process::id();
        assert!(is_stale(&format!("farhop-{pid}-1-0-client")));
        assert!(is_stale(&format!("farhop_{pid}_1_0")));
    }

    #[test]
    fn names_of_others_are_left_alone() {
        for name in ["docker0", "farhop", "farhop-x-1-0", "farhopper-1-1-0-a", "other-1-1-0"] {
            assert!(!is_stale(name), "{name}");
        }
    }

    #[test]
    fn controllers_have_short_names_of_their_own_and_only_those_of_dead_owners_are_stale() {
        let names = [controller("westwood"), controller("westwood")];
        assert_ne!(names[0], names[1]);
        for name in names {
            assert!(name.starts_with("fh_westw_") && name.len() <= 15, "{name}");
            assert!(!is_stale_controller(&name));
        }
        // No pid is as large as that.
        assert!(is_stale_controller("fh_hybla_zzzzz0"));
        for name in ["cubic", "fh_hybla", "fh_hybla_", "fh_hybla_0", "my_hybla_zzzzz0", "fh_hybla_..0"] {
            assert!(!is_stale_controller(name), "{name}");
        }
    }

    #[test]
    fn two_owners_in_one_process_have_different_names() {
        assert_ne!(Owner::this_process().table(), Owner::this_process().table());
    }
}
