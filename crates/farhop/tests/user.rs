//! `farhop user` as a shell sees it.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

struct Shell {
    folder: tempfile::TempDir,
}

impl Shell {
    fn new() -> Shell {
        Shell { folder: tempfile::tempdir().expect("a folder") }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("remote.users")
    }

    /// Runs `farhop user` in the folder with this on its standard input.
    fn user(&self, arguments: &[&str], input: &str) -> Output {
        let mut child = Command::new(env!("CARGO_BIN_EXE_farhop"))
            .arg("user")
            .args(arguments)
            .current_dir(self.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        // It may refuse before it reads.
        let _ = child.stdin.take().expect("it is piped").write_all(input.as_bytes());
        child.wait_with_output().expect("the program ends")
    }

    fn works(&self, arguments: &[&str], input: &str) -> String {
        let output = self.user(arguments, input);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("it prints text")
    }

    fn fails(&self, arguments: &[&str], input: &str) -> String {
        let output = self.user(arguments, input);
        let text = String::from_utf8(output.stderr).expect("it prints text");
        assert_eq!((output.status.code(), text.lines().count()), (Some(1), 1), "{text}");
        text
    }
}

fn text(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap_or_default()
}

#[test]
fn users_are_added_listed_and_removed() {
    let shell = Shell::new();
    assert_eq!(shell.works(&["add", "remote.users", "anna"], "open sesame\n"), "");
    shell.works(&["add", "remote.users", "ben"], "no line end");
    assert_eq!(shell.works(&["list", "remote.users"], ""), "anna\nben\n");
    let mode = std::fs::metadata(shell.file()).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(!text(&shell.file()).contains("sesame"), "no password is written");
    shell.works(&["remove", "remote.users", "anna"], "");
    assert_eq!(shell.works(&["list", "remote.users"], ""), "ben\n");
}

#[test]
fn a_password_is_replaced_only_when_that_is_said() {
    let shell = Shell::new();
    shell.works(&["add", "remote.users", "anna"], "one\n");
    let before = text(&shell.file());
    let refused = shell.fails(&["add", "remote.users", "anna"], "two\n");
    assert!(refused.contains("anna is there already; give --replace"), "{refused}");
    assert_eq!(text(&shell.file()), before);
    shell.works(&["add", "--replace", "remote.users", "anna"], "two\n");
    assert_ne!(text(&shell.file()), before);
}

#[test]
fn what_cannot_be_done_is_said_in_one_line() {
    let shell = Shell::new();
    for (arguments, input, said) in [
        (&["list", "remote.users"][..], "", "farhop user add"),
        (&["add", "remote.users", "a:b"], "x\n", "it has a colon"),
        (&["add", "remote.users", "anna"], "", "there is no password on standard input"),
        (&["add", "remote.users", "anna"], "\n", "it is empty"),
        (&["add", "none/remote.users", "anna"], "x\n", "none/remote.users"),
    ] {
        let line = shell.fails(arguments, input);
        assert!(line.contains(said), "{line}");
    }
    std::fs::write(shell.file(), "anna:damaged\n").expect("it can be written");
    std::fs::set_permissions(shell.file(), std::fs::Permissions::from_mode(0o600)).expect("it is ours");
    let line = shell.fails(&["add", "remote.users", "ben"], "x\n");
    assert!(line.contains("remote.users:1: the hash of anna is damaged"), "{line}");
    let output = shell.user(&["add", "remote.users", "ben", "secret"], "");
    assert_eq!(output.status.code(), Some(2), "a password is no argument");
}
