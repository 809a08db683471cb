//! The three layers hold: dependencies point down, core is pure, unsafe code lives in one crate.

use farhop_tests::source::{code, is_test_file, lines_with, read, rust_files};
use farhop_tests::workspace::{Crate, Layer, closure, crates, root};

/// Packages that bring a runtime, a socket, a clock or randomness with them.
const IMPURE: &[&str] = &[
    "tokio",
    "mio",
    "quinn",
    "hyper",
    "socket2",
    "nix",
    "rand",
    "rand_core",
    "fastrand",
    "getrandom",
    "tempfile",
    "async-std",
    "smol",
    "reqwest",
    "chrono",
    "hickory-resolver",
    "rustls",
    "ring",
];

/// What core code may not name: each needs a syscall.
const SYSCALLS: &[&str] = &[
    "fs::",
    "process::",
    "thread::",
    "env::",
    "File::",
    "OpenOptions",
    "TcpStream",
    "TcpListener",
    "UdpSocket",
    "UnixStream",
    "UnixListener",
    "ToSocketAddrs",
    "Instant::now",
    "SystemTime::now",
    "Utc::now",
    ".elapsed()",
    "thread_rng",
    "OsRng",
    "stdin",
    "stdout",
    "println!",
    "eprintln!",
    "extern \"C\"",
];

fn of_layer(layer: Layer) -> Vec<Crate> {
    let found: Vec<_> = crates().into_iter().filter(|it| it.layer == layer).collect();
    assert!(!found.is_empty(), "no crate of {layer:?} was found");
    found
}

#[test]
fn dependencies_point_down() {
    let all = crates();
    for user in &all {
        for name in &user.dependencies {
            let Some(used) = all.iter().find(|it| it.name == *name) else { continue };
            assert!(
                used.layer <= user.layer,
                "{} ({:?}) depends on {name} ({:?})",
                user.name,
                user.layer,
                used.layer
            );
        }
    }
}

#[test]
fn nothing_impure_is_built_into_a_core_crate() {
    for core in of_layer(Layer::Core) {
        let impure: Vec<_> =
            closure(&core.name).into_iter().filter(|it| IMPURE.contains(&it.as_str())).collect();
        assert!(impure.is_empty(), "{} is built with {impure:?}; see cargo tree -p {}", core.name, core.name);
    }
}

#[test]
fn core_code_reads_no_clock_file_socket_or_environment() {
    let mut found = Vec::new();
    for core in of_layer(Layer::Core) {
        for file in rust_files(&root().join(&core.folder).join("src")) {
            if is_test_file(&file) {
                continue;
            }
            let code = code(&read(&file));
            for name in SYSCALLS {
                found.extend(
                    lines_with(&code, name)
                        .into_iter()
                        .map(|line| format!("{}:{line}: {name}", file.display())),
                );
            }
        }
    }
    assert!(found.is_empty(), "core is handed what it needs; it reads nothing:\n{}", found.join("\n"));
}

#[test]
fn unsafe_code_lives_in_netdev_alone() {
    let mut found = Vec::new();
    for file in rust_files(&root().join("crates")).into_iter().chain(rust_files(&root().join("tests"))) {
        if file.starts_with(root().join("crates/io/netdev")) {
            continue;
        }
        found.extend(
            lines_with(&code(&read(&file)), "unsafe")
                .into_iter()
                .map(|line| format!("{}:{line}", file.display())),
        );
    }
    assert!(found.is_empty(), "unsafe outside io/netdev:\n{}", found.join("\n"));
}

#[test]
fn a_request_that_crosses_is_one_url_by_one_rule_alone() {
    // `RequestHead::resource` and `normalised`: what is parsed by hand forgets which targets are no resource of their URL.
    let mut found = Vec::new();
    for file in rust_files(&root().join("crates/app")).into_iter().filter(|file| !is_test_file(file)) {
        let code = code(&read(&file));
        let lines = code.lines().enumerate();
        let by_hand = lines.filter(|(_, line)| line.contains("Url::parse(&") && line.contains(".url())"));
        found.extend(by_hand.map(|(at, _)| format!("{}:{}", file.display(), at + 1)));
    }
    assert!(
        found.is_empty(),
        "ask the request's head for its resource or normalised URL:\n{}",
        found.join("\n")
    );
}

#[test]
fn every_file_opens_with_what_it_is_for() {
    let folders = ["crates", "tests", "fuzz"];
    let files = folders.iter().flat_map(|folder| rust_files(&root().join(folder)));
    let silent: Vec<_> = files.filter(|file| !read(file).starts_with("//! ")).collect();
    assert!(silent.is_empty(), "no //! at the top of {silent:#?}");
}

#[test]
fn every_crate_is_under_the_workspace_lints() {
    // io/netdev alone may differ, in the one lint that forbids unsafe code.
    for it in crates().into_iter().filter(|it| it.name != "farhop-netdev") {
        let manifest = read(&root().join(&it.folder).join("Cargo.toml"));
        assert!(manifest.contains("[lints]\nworkspace = true"), "{} has lints of its own", it.name);
    }
}
