//! `farhop ca` as a shell sees it: what it makes, who may read it, what it refuses.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

struct Shell(tempfile::TempDir);

impl Shell {
    fn new() -> Shell {
        Shell(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn farhop(&self, line: &str) -> Output {
        let arguments = line.split_whitespace();
        let mut command = Command::new(env!("CARGO_BIN_EXE_farhop"));
        command.args(arguments).current_dir(self.0.path()).output().unwrap()
    }

    /// Standard output of a command that must succeed.
    fn said(&self, line: &str) -> String {
        let output = self.farhop(line);
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The one line of a command that must fail with this exit code.
    fn refused(&self, line: &str, code: i32) -> String {
        let output = self.farhop(line);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{line}: {text}");
        assert_eq!((text.lines().count(), output.stdout.len()), (1, 0), "{line}: {text}");
        text
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn init_makes_a_ca_that_only_its_owner_reads_and_show_tells_it_again() {
    let shell = Shell::new();
    let made = shell.said("ca init ca --name Aurora --permit example.org --permit 10.0.0.0/8 --years 2");
    assert_eq!(mode(&shell.path("ca/ca.key")), 0o600);
    let shown = shell.said("ca show ca");
    assert!(made.starts_with(&shown), "{made}{shown}");
    assert!(shown.starts_with("certificate  Aurora "), "{shown}");
    assert!(shown.contains("\nvouches for  example.org, 10.0.0.0/8\n"), "{shown}");
    let fingerprint = shown.lines().find_map(|line| line.strip_prefix("SHA-256      ")).unwrap();
    assert_eq!(fingerprint.split(':').count(), 32);
}

#[test]
fn what_the_names_of_many_sites_end_in_is_no_permit() {
    let shell = Shell::new();
    for suffix in ["co.uk", "CO.UK", "com"] {
        let error = shell.refused(&format!("ca init ca --permit {suffix}"), 2);
        assert!(error.contains(&format!("'{suffix}' is what the names of many sites end in")), "{error}");
    }
    shell.said("ca init ca --permit example.co.uk --permit ship");
}

#[test]
fn a_ca_is_never_overwritten_and_a_readable_key_is_refused() {
    let shell = Shell::new();
    shell.said("ca init ca");
    let before = fs::read(shell.path("ca/ca.key")).unwrap();
    let again = shell.refused("ca init ca", 1);
    assert!(again.contains("ca/ca.key exists already and is not overwritten"), "{again}");
    shell.refused("ca export ca --out ca/ca.key", 1);
    assert_eq!(fs::read(shell.path("ca/ca.key")).unwrap(), before);
    fs::set_permissions(shell.path("ca/ca.key"), fs::Permissions::from_mode(0o604)).unwrap();
    for command in ["ca show ca", "ca export ca", "ca rotate ca"] {
        let error = shell.refused(command, 1);
        assert!(
            error.contains("can be read by other users (mode 0604), run 'chmod 600 ca/ca.key'"),
            "{error}"
        );
    }
}

#[test]
fn export_gives_the_certificate_in_each_form_and_never_the_key() {
    let shell = Shell::new();
    shell.said("ca init ca");
    let pem = shell.said("ca export ca");
    assert!(pem.starts_with("-----BEGIN CERTIFICATE-----\n") && !pem.contains("PRIVATE"));
    let profile = shell.said("ca export ca --format mobileconfig");
    assert!(profile.contains("com.apple.security.root") && !profile.contains("PRIVATE"));
    assert_eq!(shell.said("ca export ca --format der --out ca.crt"), "");
    assert_eq!(mode(&shell.path("ca.crt")) & 0o444, 0o444, "everybody may read a certificate");
    let der = fs::read(shell.path("ca.crt")).unwrap();
    assert!(pem_of(&der).starts_with(&pem.lines().nth(1).unwrap()[..48]));
    let none = shell.refused("ca export ca --previous", 1);
    assert!(none.contains("there is no previous CA in ca"), "{none}");
}

/// The Base64 of the first bytes, by the system's own tool.
fn pem_of(der: &[u8]) -> String {
    use std::io::Write;
    let mut child = Command::new("base64")
        .args(["-w", "0"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(der).unwrap();
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
}

#[test]
fn rotate_makes_a_successor_and_carries_the_older_one_over() {
    let shell = Shell::new();
    shell.said("ca init ca --name Aurora --permit example.org");
    let older = shell.said("ca export ca");
    let rotated = shell.said("ca rotate ca --overlap 30");
    assert!(
        rotated.contains("vouches for  example.org\n") && rotated.contains("follows      Aurora "),
        "{rotated}"
    );
    assert_ne!(shell.said("ca export ca"), older);
    assert_eq!(shell.said("ca export ca --previous"), older);
    let again = shell.refused("ca rotate ca", 1);
    assert!(again.contains("end it now with '--overlap 0'"), "{again}");
    let last = shell.said("ca rotate ca --overlap 0 --permit-all");
    assert!(last.contains("vouches for  any host\n") && !last.contains("follows"), "{last}");
    assert!(last.contains("certificate at once") && !rotated.contains("at once"), "{last}");
    assert_eq!(mode(&shell.path("ca/ca.key")), 0o600);
}

#[test]
fn what_is_missing_or_cannot_be_is_told_in_one_line() {
    let shell = Shell::new();
    let missing = shell.refused("ca show none", 1);
    assert!(
        missing.contains("none/ca.key does not exist, make a CA with 'farhop ca init none'"),
        "{missing}"
    );
    let subtree = shell.refused("ca init ca --permit 10.1.2.3/8", 2);
    assert!(subtree.contains("'10.1.2.3/8' is neither a domain"), "{subtree}");
    let below = shell.refused("ca init ca --permit *.example.org", 2);
    assert!(below.contains("write example.org, which stands for itself as well"), "{below}");
    let nowhere = shell.refused("ca init /proc/ca", 1);
    assert!(nowhere.contains("/proc/ca: ") && nowhere.contains("give a folder that exists"), "{nowhere}");
    let years = shell.refused("ca init ca --years 99", 2);
    assert!(years.contains("99 is not in 1..=30"), "{years}");
    let loose = shell.refused("local --ca-out ca.pem", 2);
    assert!(loose.contains("--intercept"), "{loose}");
    assert!(!shell.path("ca").exists(), "nothing was made");
}

#[test]
fn a_certificate_that_cannot_be_written_says_where_it_can() {
    let shell = Shell::new();
    shell.said("ca init ca");
    let nowhere = shell.refused("ca export ca --out none/ca.pem", 1);
    assert!(nowhere.contains("none/ca.pem: ") && nowhere.contains("give a file in a folder"), "{nowhere}");
    let key = std::fs::read(shell.path("ca/ca.key")).unwrap();
    std::os::unix::fs::symlink(shell.path("ca/ca.key"), shell.path("link")).unwrap();
    for key in ["ca/ca.key", "link"] {
        let refused = shell.refused(&format!("ca export ca --out {key}"), 1);
        assert!(refused.contains("this is where a CA keeps its key"), "{refused}");
    }
    assert_eq!(std::fs::read(shell.path("ca/ca.key")).unwrap(), key);
}

#[test]
fn check_wants_the_ca_that_the_settings_name() {
    let shell = Shell::new();
    let key = shell.said("keygen ground.key");
    shell.said("keygen remote.key");
    let settings = format!(
        "[interception]\nenabled = true\n[[ground]]\nname = \"g\"\naddress = \"192.0.2.1:4433\"\nkeys = [\"{}\"]\n",
        key.trim()
    );
    fs::write(shell.path("remote.toml"), settings).unwrap();
    let missing = shell.refused("check remote.toml", 1);
    assert!(
        missing.contains("interception.ca: ") && missing.contains("ca/ca.key does not exist"),
        "{missing}"
    );
    shell.said("ca init ca");
    let said = shell.said("check remote.toml");
    let ports = "CONNECT is looked into on port 443, and goes through untouched on 80, 563, 8080, 8443";
    assert!(said.contains(ports), "{said}");
}
