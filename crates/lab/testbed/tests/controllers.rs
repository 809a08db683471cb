//! The lab's own TCP congestion controllers: outside the kernel round trip by round trip, against what the equations of their papers
//! give, and in the kernel. What needs root, clang or bpftool says so and passes without.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

use farhop_netdev::{congestion_control, set_congestion_control};
use farhop_orbit::Profile;
use farhop_testbed::{Place, Testbed};

/// The window after each round trip of a course; `|` is a loss and the window after it.
fn windows(algorithm: &str, course: &str) -> Option<String> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = manifest.join(format!("../../../bpf/{algorithm}.c"));
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("rounds");
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-Wall", "-Werror", "-DCONTROLLER=tried"])
        .arg(format!("-DSOURCE={:?}", source.display().to_string()));
    let built = cc.arg(manifest.join("tests/congestion/rounds.c")).arg("-o").arg(&program).status();
    match built {
        Ok(status) => assert!(status.success(), "{algorithm} does not build"),
        Err(error) => {
            eprintln!("skipped: no C compiler: {error}");
            return None;
        }
    }
    let mut run = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    run.stdin.take().unwrap().write_all(course.as_bytes()).unwrap();
    let output = run.wait_with_output().unwrap();
    assert!(output.status.success());
    Some(String::from_utf8(output.stdout).unwrap().trim().to_owned())
}

/// Rounds are told by their number, the round trip in microseconds, and how many segments the link holds.
#[test]
fn windows_grow_and_shrink_by_the_equations() {
    let table = [
        // Hybla is Reno at its reference round trip of 25 ms, ...
        ("hybla", "rounds 4 25000 1000 loss rounds 3 25000 1000", "20 40 80 160 | 80 80 81 82"),
        // ... grows by rho^2 = 16 segments a round at 100 ms, as often as Reno by one at 25 ms, and by 2^4 - 1 for each in slow start, ...
        ("hybla", "rounds 3 100000 100000 loss rounds 3 100000 100000", "25 55 115 | 57 71 85 100"),
        // ... and has no bound at 600 ms before its first loss.
        ("hybla", "rounds 1 600000 100000", "65545"),
        // Vegas doubles in every other round, ends slow start as soon as it queues, and then keeps 2 to 4 segments in the queue.
        ("vegas", "rounds 14 600000 40", "10 19 19 37 37 73 73 41 42 43 43 43 43 43"),
        ("vegas", "rounds 5 100000 1000 loss rounds 3 100000 1000", "10 19 19 37 37 | 18 19 20 21"),
        // Westwood goes to what is delivered in a round trip without queues (10), as far as its filter knows it, however large the window was.
        (
            "westwood",
            "loss rounds 24 100000 10 loss rounds 3 100000 10",
            "| 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 | 9 10 11 12",
        ),
        // BIC: an eighth less, then half of the way in each round, by 32 segments at most, and beyond as slow start does.
        (
            "bic",
            "rounds 6 100000 100000 loss rounds 16 100000 100000",
            "20 40 80 160 320 640 | 560 589 609 621 628 633 635 637 638 639 640 641 644 649 659 680 711",
        ),
        // Below 14 segments it is Reno.
        ("bic", "loss rounds 3 100000 100000", "| 5 6 7 8"),
        // Fast convergence: below the last loss it aims lower.
        (
            "bic",
            "rounds 6 100000 100000 loss rounds 2 100000 100000 loss rounds 9 100000 100000",
            "20 40 80 160 320 640 | 560 589 609 | 533 547 556 562 565 567 568 569 570 571",
        ),
    ];
    for (algorithm, course, expected) in table {
        let Some(windows) = windows(algorithm, course) else { return };
        assert_eq!(windows, expected, "{algorithm}: {course}");
    }
}

/// What the kernel lists.
fn registered() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    text.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn the_kernel_sends_with_each_and_has_none_left_when_the_testbed_is_gone() {
    if let Err(reason) = farhop_testbed::require_privileges() {
        eprintln!("skipped: {reason}");
        return;
    }
    let testbed = Testbed::up(&Profile::named("leo-100m").unwrap(), 1).unwrap();
    let mut own = Vec::new();
    for algorithm in ["hybla", "vegas", "westwood", "bic"] {
        let name = match testbed.congestion_control(algorithm) {
            Ok(name) => name,
            Err(error) => {
                eprintln!("skipped: {error}");
                return;
            }
        };
        assert_eq!(testbed.congestion_control(algorithm).unwrap(), name, "it is made once");
        let address = testbed.addresses.origin(0);
        let listening = testbed.namespace(Place::Origins).run(|| TcpListener::bind((address, 80)));
        let listener = listening.unwrap().unwrap();
        let sending = std::thread::spawn({
            let name = name.clone();
            move || {
                let (mut stream, _) = listener.accept().unwrap();
                set_congestion_control(&stream, &name).unwrap();
                stream.write_all(&[7; 3_000_000]).unwrap();
                congestion_control(&stream).unwrap()
            }
        });
        let connecting = testbed.namespace(Place::Client).run(|| TcpStream::connect((address, 80)));
        let mut bytes = Vec::new();
        connecting.unwrap().unwrap().read_to_end(&mut bytes).unwrap();
        assert_eq!(sending.join().unwrap(), name);
        assert_eq!((bytes.len(), bytes.iter().all(|byte| *byte == 7)), (3_000_000, true), "{algorithm}");
        if name != algorithm {
            own.push(name);
        }
    }
    assert!(own.iter().all(|name| registered().contains(name)), "{own:?}");
    drop(testbed);
    assert!(!own.iter().any(|name| registered().contains(name)), "{own:?}");
}

#[test]
fn what_nobody_has_is_told_with_what_there_is() {
    if let Err(reason) = farhop_testbed::require_privileges() {
        eprintln!("skipped: {reason}");
        return;
    }
    let testbed = Testbed::up(&Profile::named("leo-100m").unwrap(), 1).unwrap();
    let error = testbed.congestion_control("nonesuch").unwrap_err().to_string();
    assert!(error.starts_with("this kernel has no TCP congestion control 'nonesuch', only: "), "{error}");
}
