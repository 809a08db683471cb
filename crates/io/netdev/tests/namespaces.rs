//! Namespaces and TUN devices in the real kernel. Needs root; without it each test says so and passes.

#![allow(clippy::unwrap_used)] // helpers of tests count as tests

use farhop_netdev::{Janitor, Namespace, Tun, require_privileges, wait_readable};
use nix::sys::signal::{SigHandler, Signal, signal};
use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsFd as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Whether this process may make namespaces; prints why not.
fn privileged() -> bool {
    match require_privileges("this test") {
        Ok(()) => true,
        Err(reason) => {
            println!("skipped: {reason}");
            false
        }
    }
}

fn exists(namespace: &str) -> bool {
    std::fs::exists(format!("/run/netns/{namespace}")).unwrap()
}

/// Waits for something that another process does; the deadline only ends a failing test.
fn eventually(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < deadline, "not in 20 s: {what}");
        std::thread::yield_now();
    }
}

fn running(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !matches!(stat.rsplit_once(") ").map(|(_, rest)| rest.as_bytes()[0]), None | Some(b'Z'))
}

fn start(namespace: &Namespace, program: &str, args: &[&str]) -> Child {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped());
    namespace.prepare(&mut command);
    command.spawn().unwrap()
}

fn output(namespace: &Namespace, program: &str, args: &[&str]) -> String {
    let output = start(namespace, program, args).wait_with_output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_namespace_and_what_runs_inside_go_with_the_janitor() {
    if !privileged() {
        return;
    }
    let janitor = Janitor::start().unwrap();
    let namespace = Namespace::create(&janitor, "gone").unwrap();
    let name = namespace.name().to_owned();
    // A grandchild, as browsers have them: its parent is not ours to kill by handle.
    let mut shell = start(&namespace, "sh", &["-c", "sleep 1000 & echo $!; wait"]);
    let mut line = String::new();
    BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let grandchild: u32 = line.trim().parse().unwrap();
    assert!(exists(&name) && running(grandchild));
    drop((namespace, janitor));
    assert!(!exists(&name));
    shell.wait().unwrap();
    assert!(!running(grandchild));
}

#[test]
fn threads_and_processes_inside_see_only_its_devices_and_settings() {
    if !privileged() {
        return;
    }
    let janitor = Janitor::start().unwrap();
    let namespace = Namespace::create(&janitor, "inside").unwrap();
    namespace.ip(&["addr add 10.77.0.1/32 dev lo"]).unwrap();
    namespace.sysctl("net/ipv4/ip_default_ttl", "77").unwrap();
    let inside = namespace.run(|| UdpSocket::bind("10.77.0.1:0").is_ok()).unwrap();
    assert!(inside && UdpSocket::bind("10.77.0.1:0").is_err());
    assert_eq!(output(&namespace, "cat", &["/proc/sys/net/ipv4/ip_default_ttl"]), "77\n");
    assert_ne!(std::fs::read_to_string("/proc/sys/net/ipv4/ip_default_ttl").unwrap(), "77\n");
}

#[test]
fn processes_inside_ask_the_resolver_of_their_namespace() {
    if !privileged() {
        return;
    }
    let janitor = Janitor::start().unwrap();
    let mut namespace = Namespace::create(&janitor, "names").unwrap();
    namespace.resolver(Ipv4Addr::new(10, 77, 3, 53).into()).unwrap();
    assert!(output(&namespace, "cat", &["/etc/resolv.conf"]).starts_with("nameserver 10.77.3.53\n"));
    assert!(output(&namespace, "cat", &["/etc/nsswitch.conf"]).contains("hosts: files dns"));
    let ours = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    assert!(!ours.contains("10.77.3.53"));
}

#[test]
fn a_refused_ip_command_is_named_with_its_reason() {
    if !privileged() {
        return;
    }
    let janitor = Janitor::start().unwrap();
    let namespace = Namespace::create(&janitor, "refused").unwrap();
    let error = namespace.ip(&["link set nonesuch up"]).unwrap_err().to_string();
    assert!(error.contains("link set nonesuch up") && error.contains("Cannot find device"), "{error}");
}

#[test]
fn a_tun_device_carries_packets_out_of_and_into_its_namespace() {
    if !privileged() {
        return;
    }
    let janitor = Janitor::start().unwrap();
    let namespace = Namespace::create(&janitor, "tun").unwrap();
    let tun = Tun::create(Some(&namespace), "sat0").unwrap();
    namespace.ip(&["addr add 10.77.2.1/24 dev sat0", "link set sat0 up"]).unwrap();
    let socket = namespace.run(|| UdpSocket::bind("10.77.2.1:7000")).unwrap().unwrap();
    socket.send_to(b"out", "10.77.2.2:7001").unwrap();
    wait_readable(&[tun.as_fd(), tun.as_fd()], Some(Duration::from_secs(20))).unwrap();
    let mut packet = [0; 1500];
    let length = tun.receive(&mut packet).unwrap().expect("a packet was sent above");
    assert_eq!(&packet[..length][28..], b"out");
    assert_eq!(tun.receive(&mut packet).unwrap(), None);

    // Addresses and ports turned round; the sums stay right, since they add the same words.
    let (source, destination) = ([10, 77, 2, 1], [10, 77, 2, 2]);
    packet[12..16].copy_from_slice(&destination);
    packet[16..20].copy_from_slice(&source);
    let ports: [u8; 4] = packet[20..24].try_into().unwrap();
    packet[20..22].copy_from_slice(&ports[2..]);
    packet[22..24].copy_from_slice(&ports[..2]);
    tun.send(&packet[..length]).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut answer = [0; 16];
    let (length, from) = socket.recv_from(&mut answer).unwrap();
    assert_eq!((&answer[..length], from.to_string().as_str()), (&b"out"[..], "10.77.2.2:7001"));
}

/// Not a test of its own: the owner that the next ones kill.
#[test]
#[ignore = "run by the tests about dying owners"]
fn dying_owner() {
    let janitor = Janitor::start().unwrap();
    let namespace = Namespace::create(&janitor, "orphan").unwrap();
    // It is inside by then: what is only being started when its owner is killed, no janitor can know of.
    let mut child = start(&namespace, "sleep", &["1000"]);
    println!("made {}", namespace.name());
    // Ends when a dying owner's janitor kills it: what follows must not outrun the signal.
    child.wait().unwrap();
}

/// Starts the owner and gives it with the name of its namespace.
fn dying_owner_process() -> (Child, String) {
    let mut owner = Command::new(std::env::current_exe().unwrap());
    owner
        .args(["--ignored", "--exact", "dying_owner", "--nocapture"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    // Started in the background or by nohup, this process ignores some of them, and so would the owner.
    let heed_signals = || {
        for number in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            // SAFETY: the default action is no handler at all.
            unsafe { signal(number, SigHandler::SigDfl) }?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes only syscalls.
    let mut owner = unsafe { owner.pre_exec(heed_signals) }.spawn().unwrap();
    let lines = BufReader::new(owner.stdout.take().unwrap()).lines();
    let made = lines.map_while(Result::ok).find_map(|line| Some(line.split_once("made ")?.1.to_owned()));
    (owner, made.expect("the owner says what it made"))
}

#[test]
fn an_owner_killed_outright_leaves_nothing_behind() {
    if !privileged() {
        return;
    }
    let (mut owner, name) = dying_owner_process();
    owner.kill().unwrap();
    owner.wait().unwrap();
    eventually("the namespace is gone", || !exists(&name));
}

#[test]
fn an_owner_ended_by_a_signal_has_cleaned_up_when_it_is_gone() {
    if !privileged() {
        return;
    }
    for (signal, number) in [("INT", 2), ("TERM", 15), ("HUP", 1)] {
        let (mut owner, name) = dying_owner_process();
        Command::new("kill").args(["-s", signal, &owner.id().to_string()]).status().unwrap();
        let status = owner.wait().unwrap();
        assert!(!exists(&name), "after SIG{signal}");
        assert_eq!(status.signal(), Some(number), "dies as if nobody had caught SIG{signal}");
    }
}

#[test]
fn the_next_start_sweeps_what_a_dead_owner_left() {
    if !privileged() {
        return;
    }
    let stale = format!("farhop-{}-1-0-stale", std::process::id()); // this pid, but not its start time
    Command::new("ip").args(["netns", "add", &stale]).status().unwrap();
    assert!(exists(&stale));
    let (mut owner, _) = dying_owner_process();
    assert!(!exists(&stale));
    owner.kill().unwrap();
    owner.wait().unwrap();
}
