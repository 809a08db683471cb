//! The first window of carriers over TCP, put into the kernel by the helpers of both ends. Needs root; without it the test says so and
//! passes.

use std::process::Command;

use farhop_netdev::Namespace;

use crate::support::routed::Routed;
use crate::support::until;

/// The routes of ours in a namespace.
fn routes(namespace: &Namespace) -> String {
    let mut command = Command::new("ip");
    command.args(["route", "show", "proto", "250"]);
    namespace.prepare(&mut command);
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

#[tokio::test]
async fn each_end_has_a_route_to_the_other_with_its_first_window_until_it_ends() {
    let Some(routed) = Routed::new() else { return };
    let settings = routed.settings_of("ground");
    let text = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(settings, format!("tcp_initial_window = 25\n{text}")).unwrap();
    let ends =
        [routed.ground(), routed.remote(&["--set", "carrier=tcp", "--set", "tcp_initial_window=40"]).await];
    routed.joined().await;
    for (namespace, other, window) in
        [(&routed.router, "10.79.2.2 ", 40), (&routed.internet, "10.79.2.1 ", 25)]
    {
        let wanted = format!("initcwnd {window}");
        until("there is a route to the other end", async || {
            let routes = routes(namespace);
            (routes.starts_with(other) && routes.contains(&wanted)).then_some(())
        })
        .await;
    }
    drop(ends);
    for namespace in [&routed.router, &routed.internet] {
        until("it is gone with its end", async || routes(namespace).is_empty().then_some(())).await;
    }
}
