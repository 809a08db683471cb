//! The first window of connections to one address, in the real kernel, by a helper process of its own. Needs root; without it the test
//! says so and passes.

#![allow(clippy::unwrap_used)] // helpers of tests count as tests

use farhop_netdev::{Janitor, Namespace, Privileged, require_privileges, serve_privileged, tcp_window};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};

const PORT: u16 = 7000;
/// At the far end. The third has a route to it alone.
const FAR: [&str; 4] = ["10.79.2.2", "fd79:2::2", "10.79.2.3", "10.79.2.4"];

/// What a command says in a namespace.
fn said(namespace: &Namespace, words: &str) -> String {
    let mut command = Command::new("sh");
    command.args(["-c", words]);
    namespace.prepare(&mut command);
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

/// The window with which a connection to `address` begins, in segments.
fn first_window(from: &Namespace, to: &Namespace, address: &str) -> u32 {
    let address = SocketAddr::new(address.parse().unwrap(), PORT);
    let listener = to.run(|| TcpListener::bind(address).unwrap()).unwrap();
    let near = from.run(|| TcpStream::connect(address).unwrap()).unwrap();
    let window = tcp_window(&near).unwrap();
    drop((near, listener));
    window
}

/// Not a test of its own: the helper that the other starts.
#[test]
#[ignore = "run by the other test"]
fn helper() {
    serve_privileged().unwrap();
    std::process::exit(0);
}

#[test]
fn connections_to_an_address_begin_with_the_window_that_was_asked_for_and_with_the_systems_once_the_owner_is_gone()
 {
    if let Err(reason) = require_privileges("this test") {
        println!("skipped: {reason}");
        return;
    }
    let janitor = Janitor::start().unwrap();
    let [near, far] = ["near", "far"].map(|role| Namespace::create(&janitor, role).unwrap());
    for scope in ["all", "default"] {
        near.sysctl(&format!("net/ipv6/conf/{scope}/disable_ipv6"), "0").unwrap();
        far.sysctl(&format!("net/ipv6/conf/{scope}/disable_ipv6"), "0").unwrap();
    }
    near.ip(&[format!("link add wan0 type veth peer name wan0 netns {}", far.name())]).unwrap();
    for (end, host) in [(&near, 1), (&far, 2)] {
        end.ip(&[
            format!("addr add 10.79.1.{host}/24 dev wan0"),
            format!("addr add fd79:1::{host}/64 dev wan0 nodad"),
            "link set wan0 up".into(),
        ])
        .unwrap();
    }
    for address in FAR {
        let nodad = if address.contains(':') { " nodad" } else { "" };
        far.ip(&[format!("addr add {address} dev wan0{nodad}")]).unwrap();
    }
    near.ip(&[
        "route add default via 10.79.1.2",
        "route add ::/0 via fd79:1::2",
        "route add 10.79.2.3/32 via 10.79.1.2",
    ])
    .unwrap();
    let before = said(&near, "ip route; ip -6 route");
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--ignored", "--exact", "helper", "--nocapture"]).stderr(Stdio::inherit());
    near.prepare(&mut program);
    // In a thread of its own, since it gives up rights.
    let helper = near.run(|| Privileged::start(program, "this test").unwrap()).unwrap();

    for address in &FAR[..2] {
        assert_eq!(first_window(&near, &far, address), 10, "the system's");
        helper.set_first_window(address.parse().unwrap(), 40).unwrap();
        assert_eq!(first_window(&near, &far, address), 40);
        // Once more, as with each call, and another.
        helper.set_first_window(address.parse().unwrap(), 25).unwrap();
        assert_eq!(first_window(&near, &far, address), 25);
    }
    assert_eq!(first_window(&near, &far, FAR[3]), 10, "nobody asked for others");
    for (address, why) in [(FAR[2], "there is a route to it alone"), ("10.79.1.1", "not beyond any device")] {
        let refused = helper.set_first_window(address.parse().unwrap(), 40).unwrap_err().to_string();
        assert!(refused.contains(why) && !refused.contains('\n'), "{refused}");
    }
    drop(helper);
    assert_eq!(said(&near, "ip route; ip -6 route"), before);
    assert_eq!(first_window(&near, &far, FAR[0]), 10);
}
