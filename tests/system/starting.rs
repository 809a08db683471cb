//! What the program says when it cannot start: one line that names what, where and what to do; exit code 1.

use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use tokio::net::TcpStream;

use crate::support::{Local, Program, ended_with, farhop, keygen, raw, refused, until};

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
fn both_ends_in_one_process_listen_where_their_file_says() {
    let folder = tempfile::tempdir().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().to_string();
    let file = write(folder.path(), "local.toml", &format!("[remote]\nlisten = ['{taken}']\n"));
    let said = refused(farhop().args(["local", "--config"]).arg(&file));
    assert!(said.contains(&taken) && said.contains("in use"), "{said}");
}

#[tokio::test]
async fn both_ends_in_one_process_read_their_file_anew_when_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "local.toml", "");
    let mut local = Local::start(&["--config", file.to_str().unwrap()]).await;
    write(
        folder.path(),
        "local.toml",
        "[remote]\nconnect_ports = ['443', '8443']\n[ground]\nallow = ['127.0.0.0/8']\n",
    );
    let pid = local.program.child.id().to_string();
    assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
    until("both ends have their own in force", async || {
        let said = local.program.said();
        ["connect_ports", "allow"].iter().all(|key| said.contains(key)).then_some(())
    })
    .await;
    local.program.assert_runs();
}

/// A remote that is passed `socket` as a service manager does it: as descriptor 3, named in the environment.
fn remote_passed(socket: impl Into<OwnedFd>, settings: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "LISTEN_FDS=1 LISTEN_PID=$$ exec \"$@\" 3<&0 </dev/null", "sh"]);
    command.arg(farhop().get_program()).args(["remote", "--config"]).arg(settings).stdin(socket.into());
    command
}

#[tokio::test]
async fn a_remote_serves_on_the_listener_that_a_service_manager_passes_it() {
    let folder = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (remote, _) = settings(folder.path(), &format!("listen = ['{}']", taken.local_addr().unwrap()), "");
    let passed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = passed.local_addr().unwrap();
    let _remote = Program::start(remote_passed(passed, &remote), folder.path(), "remote");
    // The socket listens from the start: what is asked before the remote is up waits in it.
    let mut client = TcpStream::connect(address).await.unwrap();
    let text = "OPTIONS * HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let answer = raw(&mut client, text, |_| false).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[test]
fn a_passed_socket_that_is_no_listener_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (remote, _) = settings(folder.path(), "", "");
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let said = refused(&mut remote_passed(socket, &remote));
    assert!(said.contains("socket 1 that the service manager passed"), "{said}");
}

#[test]
fn without_privileges_what_the_lab_cannot_do_without_says_that_it_needs_root() {
    const NOBODY: u32 = 65534;
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    // The build folder may be closed to others.
    let program = folder.path().join("farhop");
    // By a program of its own: one that we had open for writing could not be run while a child of another test inherits that.
    let copied = std::process::Command::new("cp").arg(farhop().get_program()).arg(&program).status().unwrap();
    assert!(copied.success());
    let is_root = std::fs::read_to_string("/proc/self/status").unwrap().contains("\nUid:\t0\t");
    // `lab compare` is none of these where the system lets anyone have namespaces.
    for words in [&["lab", "shell", "--", "true"][..], &["demo"]] {
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
