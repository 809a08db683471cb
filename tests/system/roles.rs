//! The three roles of BACOPT's framework, transport, application and resource, each on and off by itself. Needs root; without
//! it the test says so and passes.

use std::process::{Command, Output};

use tokio::time::timeout;

use crate::support::routed::{PROXY, Routed, SERVER};
use crate::support::{PATIENCE, farhop};

/// Where the users' traffic leaves the router for the hop.
const DEVICE: &str = "sat0";
/// The client, and ground as it goes out.
const CLIENT: &str = "10.79.1.2";
const GROUND: &str = "10.79.3.1";

fn on_router(routed: &Routed, mut command: Command) -> Output {
    routed.router.prepare(&mut command);
    command.output().unwrap()
}

/// Switches the resource role on or off at the router.
fn resource(routed: &Routed, switch: &str) {
    let mut command = farhop();
    command.args([
        "link",
        switch,
        "--config",
        "/dev/null",
        "--set",
        &format!("interface={DEVICE}"),
        "--set",
        "rate=10 Mbit/s",
        "--set",
        "profile=none",
    ]);
    let output = on_router(routed, command);
    assert!(output.status.success(), "link {switch}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Whether its classes are in force.
fn is_shaped(routed: &Routed) -> bool {
    let mut command = Command::new("tc");
    command.args(["qdisc", "show", "dev", DEVICE]);
    String::from_utf8(on_router(routed, command).stdout).unwrap().contains("htb fa40:")
}

/// As whom the client reaches a server: as ground where the transport role carries its connection, else as itself.
async fn reaches_as(routed: &Routed) -> String {
    let server = routed.listen(SERVER[0], 2022).await;
    let _near = routed.connect(SERVER[0], 2022).unwrap();
    let (_, client) = timeout(PATIENCE, server.accept()).await.unwrap().unwrap();
    client.ip().to_string()
}

async fn components(routed: &Routed) -> Vec<String> {
    let status = routed.ask("remote", "status").await.unwrap();
    let components = status["components"].as_array().unwrap();
    components.iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_role_is_there_with_and_without_the_others() {
    let Some(routed) = Routed::new() else { return };
    let _ground = routed.ground();
    let proxy: std::net::SocketAddr = PROXY.parse().unwrap();
    for (role, halves, has_proxy, reached_as) in [
        ("transport", &["tcp", "udp"][..], false, GROUND),
        ("application", &["http", "dictionaries", "tcp"], true, CLIENT),
        ("both", &["http", "dictionaries", "tcp", "udp"], true, GROUND),
    ] {
        let _remote = routed.remote(&["--role", role]).await;
        routed.joined().await;
        // The resource role comes and goes meanwhile, and changes none of it.
        for switch in ["remove", "apply", "remove"] {
            resource(&routed, switch);
            assert_eq!(is_shaped(&routed), switch == "apply", "{role}");
            assert_eq!(components(&routed).await, halves, "{role}");
            let is_served = routed.connect(&proxy.ip().to_string(), proxy.port()).is_ok();
            assert_eq!(is_served, has_proxy, "{role}");
            assert_eq!(reaches_as(&routed).await, reached_as, "{role}");
        }
    }
    // And by itself.
    resource(&routed, "apply");
    assert!(is_shaped(&routed));
    assert_eq!(reaches_as(&routed).await, CLIENT);
}
