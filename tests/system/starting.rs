//! What the program says when it cannot start: one line that names what, where and what to do; exit code 1.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;

use crate::support::{ended_with, farhop, keygen, refused};

fn write(folder: &Path, name: &str, text: &str) -> std::path::PathBuf {
    let file = folder.join(name);
    std::fs::write(&file, text).unwrap();
    file
}

/// Settings files of both ends with fresh keys, and what is added to each at its top.
fn settings(folder: &Path, remote: &str, ground: &str) -> (std::path::PathBuf, std::path::PathBuf) {
    let (remote_key, ground_key) = (keygen(&folder.join("remote.key")), keygen(&folder.join("ground.key")));
    let remote =
        format!("{remote}\n[[ground]]\nname = 'home'\naddress = '127.0.0.1:4433'\nkeys = ['{ground_key}']\n");
    let ground = format!("{ground}\n[[remote]]\nname = 'ship'\nkeys = ['{remote_key}']\n");
    (write(folder, "remote.toml", &remote), write(folder, "ground.toml", &ground))
}

#[test]
fn an_unknown_setting_is_refused_by_each_end_with_the_nearest_known_one() {
    let folder = tempfile::tempdir().unwrap();
    let (remote, ground) = settings(folder.path(), "drian = '5 s'", "[bundel]\nenabled = false");
    let said = refused(farhop().args(["remote", "--config"]).arg(&remote));
    assert!(said.contains("remote.toml:1") && said.contains("did you mean 'drain'?"), "{said}");
    let said = refused(farhop().args(["ground", "--config"]).arg(&ground));
    assert!(said.contains("ground.toml:2") && said.contains("did you mean 'bundle.enabled'?"), "{said}");
    let said = ended_with(2, farhop().args(["local", "--set", "remote.timeouts.outge=5 s"]));
    assert!(said.contains("did you mean 'remote.timeouts.outage'?"), "{said}");
}

#[test]
fn a_port_in_use_is_named_by_each_end() {
    let folder = tempfile::tempdir().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let (tcp, udp) = (listener.local_addr().unwrap().to_string(), socket.local_addr().unwrap().to_string());
    let (remote, ground) =
        settings(folder.path(), &format!("listen = ['{tcp}']"), &format!("listen = '{udp}'"));
    let in_use = |said: String, address: &str| {
        assert!(said.contains(address) && said.contains("in use"), "{said}");
    };
    in_use(refused(farhop().args(["local", "--listen", &tcp])), &tcp);
    in_use(refused(farhop().args(["remote", "--config"]).arg(&remote)), &tcp);
    in_use(refused(farhop().args(["ground", "--config"]).arg(&ground)), &udp);
}

#[test]
fn without_privileges_each_experiment_of_the_lab_says_that_it_needs_root() {
    const NOBODY: u32 = 65534;
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::create_dir(folder.path().join("site")).unwrap();
    // The build folder may be closed to others.
    let program = folder.path().join("farhop");
    std::fs::copy(farhop().get_program(), &program).unwrap();
    let is_root = std::fs::read_to_string("/proc/self/status").unwrap().contains("\nUid:\t0\t");
    let site = folder.path().join("site");
    let site = site.to_str().unwrap();
    for words in [&["lab", "shell", "--", "true"][..], &["lab", "compare", "--site", site], &["demo"]] {
        let mut command = std::process::Command::new(&program);
        command.args(words).current_dir(folder.path());
        command.env("FARHOP_NODE", concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/node"));
        if is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        let said = refused(&mut command);
        assert!(said.contains("root") || said.contains("privileges"), "{words:?}: {said}");
    }
}
