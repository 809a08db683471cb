//! Programs of others that tests use and a machine may lack. Who starts tests by hand has those passed over whose programs are
//! missing; where `./run test` has installed them, none may be missing but those that it says could not be.

use std::path::PathBuf;

/// Names of programs that could not be installed, apart by blanks. Where it is set at all, no other may be missing.
const WITHOUT: &str = "FARHOP_WITHOUT";

/// Where a program is, if the machine has it. Servers live in /usr/sbin, which not every PATH names.
pub fn found(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
    folders.map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Whether all of these programs are here, for a test that passes over otherwise; says which is not.
///
/// # Panics
/// One is missing that was to be installed.
pub fn at_hand(programs: &[&str]) -> bool {
    programs.iter().all(|program| {
        let is_here = found(program).is_some();
        if !is_here {
            passed_over(program, "is not installed ('./run test' as root installs it)");
        }
        is_here
    })
}

/// Says that a test is passed over, since this program `is` not there.
///
/// # Panics
/// It was to be installed.
pub(crate) fn passed_over(program: &str, is: &str) {
    let without = std::env::var(WITHOUT).ok();
    assert!(
        may_be_missing(program, without.as_deref()),
        "{program} {is}, and {WITHOUT} does not say that it may be missing"
    );
    eprintln!("skipped: {program} {is}");
}

fn may_be_missing(program: &str, without: Option<&str>) -> bool {
    without.is_none_or(|without| without.split_ascii_whitespace().any(|name| name == program))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_programs_were_installed_only_those_that_could_not_be_may_be_missing() {
        assert!(may_be_missing("curl", None), "nobody has installed any");
        assert!(!may_be_missing("curl", Some("")), "all were installed");
        assert!(may_be_missing("curl", Some("wget curl")));
        assert!(!may_be_missing("curl", Some("curling wget")));
    }

    #[test]
    fn a_program_is_found_by_its_name_and_none_by_another() {
        assert!(found("sh").is_some_and(|file| file.ends_with("sh")));
        assert!(found("no-program-has-this-name").is_none());
    }
}
