//! The program as a shell sees it: what it prints, what it refuses, how it exits.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn farhop(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_farhop")).args(arguments).output().expect("the program starts")
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The one line of a failure.
fn error(output: &Output) -> String {
    error_with(output, 1)
}

/// The one line of an error with this exit code.
fn error_with(output: &Output, code: i32) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary folders have plain names")
}

#[test]
fn keygen_writes_a_secret_that_only_its_owner_reads_and_prints_the_public_line() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("remote.key");
    let made = farhop(&["keygen", text(&key)]);
    assert!(made.status.success());
    assert!(out(&made).starts_with("farhop-ed25519 ") && out(&made).lines().count() == 1);
    assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    let secret = std::fs::read_to_string(&key).unwrap();
    let again = error(&farhop(&["keygen", text(&key)]));
    assert!(again.contains(text(&key)), "{again}");
    assert_eq!(std::fs::read_to_string(&key).unwrap(), secret, "a key is never overwritten");
}

#[test]
fn keygen_tells_the_public_line_of_a_key_that_is_there_and_makes_none() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("remote.key");
    let missing = error(&farhop(&["keygen", "--public", text(&key)]));
    assert!(missing.contains("remote.key does not exist"), "{missing}");
    assert!(!key.exists());
    let made = out(&farhop(&["keygen", text(&key)]));
    assert_eq!(out(&farhop(&["keygen", "--public", text(&key)])), made);
}

#[test]
fn a_pair_of_samples_with_fresh_keys_checks_good() {
    let folder = tempfile::tempdir().unwrap();
    for (own, other) in [("remote", "ground"), ("ground", "remote")] {
        let mine = farhop(&["keygen", text(&folder.path().join(format!("{own}.key")))]);
        assert!(mine.status.success());
        let public =
            out(&farhop(&["keygen", text(&folder.path().join(format!("{other}-as-known-to-{own}.key")))]));
        let sample = out(&farhop(&["check", "--sample", own])).replace("farhop-ed25519 …", public.trim());
        let file = folder.path().join(format!("{own}.toml"));
        std::fs::write(&file, sample).unwrap();
        let checked = farhop(&["check", text(&file)]);
        assert!(checked.status.success(), "{checked:?}");
        assert!(out(&checked).contains(&format!("good, {own} of ")), "{}", out(&checked));
    }
}

#[test]
fn check_says_what_is_wrong_with_a_file_and_where() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ground.toml");
    std::fs::write(&file, "[[remote]]\nname = \"ship\"\nkeys = [\"farhop-ed25519 …\"]\n").unwrap();
    let missing = error(&farhop(&["check", text(&file)]));
    assert!(missing.contains("ground.key does not exist"), "{missing}");
    assert!(farhop(&["keygen", text(&folder.path().join("ground.key"))]).status.success());
    let damaged = error(&farhop(&["check", text(&file)]));
    assert!(damaged.starts_with("farhop: [[remote]] ship, key 1: key is damaged"), "{damaged}");
    let unknown = error_with(&farhop(&["check", text(&file), "--set", "spool.totl=1 GB"]), 2);
    assert!(unknown.ends_with("did you mean 'spool.total'?\n"), "{unknown}");
    let profile = error_with(&farhop(&["check", text(&file), "--set", "link.profile=geo-9"]), 2);
    assert!(profile.contains("geo-9") && profile.contains("geo-hylas2"), "{profile}");
    let rate = error_with(&farhop(&["check", text(&file), "--set", "link.congestion=rate"]), 2);
    let own = farhop(&["keygen", "--public", text(&folder.path().join("ground.key"))]);
    std::fs::write(&file, format!("[[remote]]\nname = \"ship\"\nkeys = [\"{}\"]\n", out(&own).trim()))
        .unwrap();
    let controller = error(&farhop(&["check", text(&file), "--set", "tcp_congestion=tachyon"]));
    assert!(controller.contains("'tachyon' is not offered by this kernel"), "{controller}");
    assert!(rate.contains("link.congestion=rate") && rate.contains("'link.forward_rate'"), "{rate}");
}

#[test]
fn check_reads_what_both_ends_in_one_process_read_at_their_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("local.toml");
    for (settings, named) in [
        ("[ground.origin]\ncrls = [\"gone.pem\"]\n", "gone.pem"),
        ("[remote.auth]\nrequired = true\nfile = \"users\"\n", "users"),
    ] {
        std::fs::write(&file, settings).unwrap();
        let said = error(&farhop(&["check", text(&file)]));
        assert!(said.contains(named), "{said}");
    }
    std::fs::write(&file, "[remote]\nlisten = [\"127.0.0.1:0\"]\n[ground.bundle]\nenabled = true\n").unwrap();
    assert!(out(&farhop(&["check", text(&file)])).ends_with("good, local: both ends\n"));
}

#[test]
fn check_asks_whose_settings_they_are_when_the_file_does_not_tell() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.toml");
    std::fs::write(&file, "[log]\nlevel = \"warn\"\n").unwrap();
    assert!(error(&farhop(&["check", text(&file)])).contains("--as remote"));
    assert!(error(&farhop(&["check", text(&file), "--as", "remote"])).contains("there is no [[ground]]"));
}

#[test]
fn path_names_the_socket_at_which_nobody_answers() {
    let nobody = error(&farhop(&["path", "/nowhere/farhop.sock"]));
    assert!(nobody.contains("/nowhere/farhop.sock"), "{nobody}");
}

#[test]
fn a_wrong_command_line_is_told_in_one_line_with_what_was_meant_and_where_the_rest_is_said() {
    let cases: &[(&[&str], &str)] = &[
        (
            &["keygne"],
            "unrecognized subcommand 'keygne'; a similar subcommand exists: 'keygen'; see farhop --help",
        ),
        (
            &["remote"],
            "the following required arguments were not provided: --config <FILE>; see farhop remote --help",
        ),
        (
            &["local", "--lisen", "x"],
            "unexpected argument '--lisen' found; a similar argument exists: '--listen'; see farhop local --help",
        ),
        (
            &["check", "x", "--as", "moon"],
            "invalid value 'moon' for '--as <END>' [possible values: remote, ground, local, link]; see farhop check --help",
        ),
        (
            &["check", "x", "--reference"],
            "the argument '[FILE]' cannot be used with '--reference'; see farhop check --help",
        ),
        (
            &["lab", "compare", "--runs", "many"],
            "invalid value 'many' for '--runs <RUNS>': invalid digit found in string; see farhop lab compare --help",
        ),
    ];
    for (arguments, told) in cases {
        assert_eq!(error_with(&farhop(arguments), 2), format!("farhop: {told}\n"));
    }
}

#[test]
fn a_wrong_command_line_exits_with_2_and_a_failure_with_1() {
    error_with(&farhop(&["check"]), 2);
    error_with(&farhop(&["control", "x.sock", "drain", "{"]), 2);
    let error = error(&farhop(&["status", "no-such.sock"]));
    assert!(error.starts_with("farhop: no-such.sock: no farhop answers there"), "{error}");
}

#[test]
fn output_that_finds_no_room_is_a_failure_in_one_line() {
    for arguments in [["check", "--reference"].as_slice(), &["--help"], &["--version"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output =
            Command::new(env!("CARGO_BIN_EXE_farhop")).args(arguments).stdout(full).output().unwrap();
        let told = error(&output);
        assert!(told.starts_with("farhop: cannot write to standard output: No space left"), "{told}");
    }
}

#[test]
fn a_failure_that_cannot_be_told_is_still_a_failure() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let status =
        Command::new(env!("CARGO_BIN_EXE_farhop")).args(["status", "no-such.sock"]).stderr(full).status();
    assert_eq!(status.unwrap().code(), Some(1));
}

#[test]
fn a_reader_that_hangs_up_is_no_failure() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_farhop"))
        .args(["check", "--reference"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn status_and_control_talk_to_a_running_end() {
    use farhop_control::{Server, Socket};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("end.sock");
    let server = Server::new(farhop_events::Bus::new())
        .command("status", "what is on", || async { Ok(serde_json::json!({"side": "remote"})) })
        .command_with("echo", "its arguments", &["n"], |args| async move { Ok(args) });
    tokio::spawn(server.serve(Socket::open(&path).unwrap()));
    let call = |arguments: &[&str]| {
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        tokio::task::spawn_blocking(move || farhop(&arguments.iter().map(String::as_str).collect::<Vec<_>>()))
    };
    let status = call(&["status", text(&path)]).await.unwrap();
    let json: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(json["status"]["side"], "remote");
    assert_eq!(json["counters"]["requests_crossed"], 0);
    let echo = call(&["control", text(&path), "echo", "{\"n\": 1}"]).await.unwrap();
    assert_eq!(
        serde_json::from_slice::<serde_json::Value>(&echo.stdout).unwrap(),
        serde_json::json!({"n": 1})
    );
    let refused = call(&["control", text(&path), "fly"]).await.unwrap();
    assert!(error(&refused).starts_with("farhop: unknown command 'fly'; this end knows "));
}
