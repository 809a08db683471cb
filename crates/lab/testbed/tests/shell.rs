//! Commands behind the link, in the real kernel. Needs root; without it each test says so and passes.

use farhop_orbit::Profile;
use std::ffi::OsString;
use std::io::{BufRead as _, Read as _, Write as _};
use std::net::TcpListener;
use std::process::Command;

/// Runs a script behind a link without delay; `None` without privileges.
fn behind_the_link(script: &str) -> Option<i32> {
    behind(&Profile::named("none").expect("it is a named profile"), script)
}

/// Runs a script behind a link; `None` without privileges.
fn behind(profile: &Profile, script: &str) -> Option<i32> {
    if let Err(reason) = farhop_netdev::require_privileges("this test") {
        println!("skipped: {reason}");
        return None;
    }
    let command = ["bash", "-c", script].map(OsString::from);
    Some(farhop_testbed::shell(profile, 1, &command).expect("the shell runs"))
}

/// A shell's device bears its process's id, so the tests of this file take turns.
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

#[test]
fn the_exit_code_is_the_commands_own() {
    let _turn = TURN.lock();
    if let Some(code) = behind_the_link("exit 7") {
        assert_eq!(code, 7);
        assert_eq!(behind_the_link("kill -TERM $$"), Some(128 + 15));
    }
}

#[test]
fn servers_of_this_machine_are_reached_even_those_on_localhost_alone() {
    let _turn = TURN.lock();
    for address in ["0.0.0.0:0", "127.0.0.1:0"] {
        let listener = TcpListener::bind(address).unwrap();
        let port = listener.local_addr().unwrap().port();
        let script = format!("echo from-$FARHOP_LINK >/dev/tcp/$FARHOP_HOST/{port}");
        let Some(code) = behind_the_link(&script) else { return };
        assert_eq!(code, 0, "{address}");
        let mut heard = String::new();
        listener.accept().unwrap().0.read_to_string(&mut heard).unwrap();
        assert_eq!(heard, "from-none\n");
    }
}

#[test]
fn a_satellite_of_a_file_is_what_the_command_meets() {
    let _turn = TURN.lock();
    let text = r#"
        [forward]
        delay = "10 ms"
        steps = [{ at = "0 s", rate = "50 Mbit/s" }]
        codel = { ecn = true }
        terrestrial = { jitter = "1 ms" }
        [return]
        delay = "10 ms"
        on_demand = { capacity = "2 Mbit/s", superframe = "50 ms", slot = "100 B", volume = "avbdc" }
    "#;
    let satellite = Profile::from_toml(text, "mine.toml", &mut |_| unreachable!("it names no file")).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // It waits for an answer: with the command ends the link, and with that what is still on its way.
    let script = format!(
        "exec 3<>/dev/tcp/$FARHOP_HOST/{port}; echo from-$FARHOP_LINK >&3; read -r said <&3; [ \"$said\" = heard ]"
    );
    let server = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut line = String::new();
        std::io::BufReader::new(&stream).read_line(&mut line).unwrap();
        (&stream).write_all(b"heard\n").unwrap();
        line
    });
    let start = std::time::Instant::now();
    let Some(code) = behind(&satellite, &script) else { return };
    assert_eq!(code, 0);
    assert_eq!(server.join().unwrap(), "from-mine\n");
    // Two superframes until the first packet may leave, and the way: no machine beats that.
    assert!(start.elapsed() >= std::time::Duration::from_millis(120), "{:?}", start.elapsed());
}

#[test]
fn nothing_of_a_shell_is_left_behind() {
    let _turn = TURN.lock();
    if behind_the_link("true").is_none() {
        return;
    }
    let ours = |program: &str, args: &[&str], mark: &str| {
        let output = Command::new(program).args(args).output().unwrap().stdout;
        String::from_utf8_lossy(&output).contains(mark)
    };
    let pid = std::process::id();
    assert!(!ours("nft", &["list", "tables"], &format!("farhop_{pid}_")));
    assert!(!ours("ip", &["netns"], &format!("farhop-{pid}-")));
    assert!(!ours("ip", &["link"], &format!("fhsat{pid}")));
}

#[test]
fn a_command_that_does_not_exist_is_named() {
    let _turn = TURN.lock();
    if farhop_netdev::require_privileges("this test").is_err() {
        println!("skipped: needs root");
        return;
    }
    let profile = Profile::named("none").unwrap();
    let error = farhop_testbed::shell(&profile, 1, &["/nonesuch".into()]).unwrap_err().to_string();
    assert!(error.starts_with("cannot start /nonesuch in the client namespace: "), "{error}");
}
