//! A testbed without root, in a user namespace. A program of its own: such a namespace can only be entered before there is a second
//! thread, and tests of the usual kind are threads. Root starts itself anew without the capability that testbeds need; where that
//! or user namespaces are not to be had, it says so and passes.

#![allow(clippy::unwrap_used)] // a test

use farhop_netdev::{enter_user_namespace, is_rootless, require_privileges};
use farhop_orbit::Profile;
use farhop_testbed::{Place, Testbed};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;

/// Says that it is started anew.
const AGAIN: &str = "FARHOP_TEST_ROOTLESS";

fn main() {
    // As the usual tests: listing them runs none.
    if std::env::args().any(|argument| argument == "--list") {
        println!("a_testbed_stands_in_a_user_namespace: test");
        return;
    }
    if require_privileges("this test").is_ok() {
        assert!(std::env::var_os(AGAIN).is_none(), "setpriv took the capability away");
        return without_privileges();
    }
    match enter_user_namespace("this test") {
        Ok(()) => stands(),
        Err(reason) => println!("skipped: {reason}"),
    }
}

/// Root without the capability, then a user who never was root, on a machine where root has a folder for names of namespaces.
fn without_privileges() {
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin"]);
    again(command.arg(std::env::current_exe().unwrap()));
    let place = tempfile::tempdir().unwrap();
    let folder = Path::new("/etc/netns");
    let is_new = std::fs::create_dir(folder).is_ok();
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-ec", AS_NOBODY, "sh"]).arg(place.path());
    again(command.arg(std::env::current_exe().unwrap()));
    if is_new {
        // Another test's testbed may be in it by now.
        let _ = std::fs::remove_dir(folder);
    }
}

/// In a folder, with this program: a TUN device that is open to all, as such machines have it.
const AS_NOBODY: &str = "chmod 755 $1; mknod $1/tun c 10 200; chmod 666 $1/tun; mount --bind $1/tun /dev/net/tun; \
                         cp $2 $1/test; cd /; exec setpriv --reuid 65534 --regid 65534 --clear-groups $1/test";

fn again(command: &mut Command) {
    match command.env(AGAIN, "1").status() {
        Ok(status) => assert!(status.success(), "{status}"),
        Err(error) => println!("skipped: {:?}: {error}", command.get_program()),
    }
}

fn stands() {
    assert!(is_rootless());
    let testbed = Testbed::with_terminals(&Profile::named("none").unwrap(), 1, 2).unwrap();
    let conditions = testbed.conditions();
    let indicative = |(name, value): &(&str, String)| *name == "privileges" && value.ends_with("indicative");
    assert!(conditions.iter().any(indicative), "{conditions:?}");
    let target = (testbed.addresses.origin(1), 0);
    let listener = testbed.namespace(Place::Origins).run(|| TcpListener::bind(target).unwrap()).unwrap();
    let target = listener.local_addr().unwrap();
    for client in [testbed.namespace(Place::Client), testbed.terminals()[0].client()] {
        let mut near = client.run(|| TcpStream::connect(target).unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        far.write_all(b"through").unwrap();
        let mut received = [0; 7];
        near.read_exact(&mut received).unwrap();
        assert_eq!(&received, b"through");
    }
    // Names are resolved inside as anywhere.
    let mut command = Command::new("sh");
    command.args(["-c", "cat /etc/resolv.conf"]).stdout(std::process::Stdio::piped());
    let mut child = testbed.spawn_in(Place::Remote, command).unwrap();
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(text.contains(&testbed.addresses.dns.to_string()), "{text}");
    assert_eq!(testbed.link().record().tcp_flows, 2);
    drop(testbed);
    is_probed();
    println!("a testbed stood in a user namespace");
}

/// What comes before every plan: the link is measured, on demand as well.
fn is_probed() {
    let on_demand = "like = 'geo-2m'\nname = 'granted'\n[return]\non_demand = { capacity = '512 kbit/s', \
                     superframe = '26.5 ms', slot = '53 B', volume = 'vbdc' }\n";
    let mut nothing = |name: &str| Err(format!("there is no {name}"));
    let on_demand = Profile::from_toml(on_demand, "granted.toml", &mut nothing).unwrap();
    for profile in [Profile::named("leo-100m").unwrap(), on_demand] {
        let calibration = Testbed::up(&profile, 1).unwrap().calibrate().unwrap();
        assert!(calibration.forward.is_some() && calibration.return_.is_some(), "{calibration}");
        println!("{calibration}");
    }
}
