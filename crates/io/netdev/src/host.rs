//! The first namespace: whether we may act at all, the tools that act for us, and the few settings that a
//! testbed needs there. Everything changed here is promised to the janitor first.

use std::fs;
use std::io::{self, Write as _};
use std::net::Ipv4Addr;
use std::process::{Command, Output, Stdio};

use crate::janitor::Undo;
use crate::{Error, Janitor};

/// Of what a tool was given and did not take, so many letters are told.
const SHOWN: usize = 120;

/// Where the machine's own values of changed settings wait to be written back; the janitor's script knows it.
const SAVED: &str = "/run/farhop";

/// Fails, with a line that says what to do, unless this process may make namespaces and TUN devices.
/// `what` opens the sentence, such as `farhop lab`.
///
/// # Errors
/// No privileges, no TUN driver, or no `ip`.
pub fn require_privileges(what: &str) -> Result<(), Error> {
    // capabilities(7): CAP_NET_ADMIN is 12, CAP_SYS_ADMIN is 21.
    const NEEDED: u64 = 1 << 12 | 1 << 21;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    if effective & NEEDED != NEEDED {
        return Err(Error::NoPrivileges { what: what.into() });
    }
    if !fs::exists("/dev/net/tun").unwrap_or(false) {
        return Err(Error::NoTun);
    }
    run("ip", &["-V"]).map(drop)
}

/// Runs a tool to its end.
pub(crate) fn run(program: &'static str, args: &[&str]) -> Result<Output, Error> {
    let output = Command::new(program).args(args).stdin(Stdio::null()).output();
    let output = output.map_err(|error| unstarted(program, error))?;
    if output.status.success() {
        return Ok(output);
    }
    Err(Error::Command { command: format!("{program} {}", args.join(" ")), reason: complaint(&output) })
}

/// Why a tool did not start.
pub(crate) fn unstarted(program: &'static str, error: io::Error) -> Error {
    if error.kind() != io::ErrorKind::NotFound {
        return Error::system(format!("start {program}"))(error);
    }
    let package = match program {
        "ip" | "tc" => "iproute2",
        "nft" => "nftables",
        other => other,
    };
    Error::MissingProgram { program, package }
}

/// The first line of what a tool said against it.
pub(crate) fn complaint(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    line.map_or_else(|| output.status.to_string(), str::to_owned)
}

/// Sets a sysctl of the first namespace, by its path below `/proc/sys`, for as long as testbeds run. Call it
/// after the namespaces are made: while one stands, no other testbed on its way out takes the setting back.
///
/// # Errors
/// There is no such setting, or it takes no such value.
pub fn host_sysctl(janitor: &Janitor, path: &str, value: &str) -> Result<(), Error> {
    let file = format!("/proc/sys/{path}");
    let before = fs::read_to_string(&file).map_err(Error::system(format!("read {file}")))?;
    janitor.promise(&Undo::Sysctl(path))?;
    if before.trim() == value {
        return Ok(());
    }
    let saved = format!("{SAVED}/{}", path.replace('/', ":"));
    let save = || -> io::Result<()> {
        fs::create_dir_all(SAVED)?;
        // The first testbed's is the machine's own value; a later one would save what the first one set.
        match fs::File::create_new(&saved) {
            Ok(mut file) => file.write_all(before.as_bytes()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
    };
    save().map_err(Error::system(format!("write {saved}")))?;
    fs::write(&file, value).map_err(Error::system(format!("set {path} to '{value}'")))
}

/// Lets namespaces choose the congestion control `name`: only what the first namespace lists as allowed can
/// be set in another one.
///
/// # Errors
/// The kernel does not have it.
pub fn congestion_control_allowed(janitor: &Janitor, name: &str) -> Result<(), Error> {
    const ALLOWED: &str = "net/ipv4/tcp_allowed_congestion_control";
    let path = format!("/proc/sys/{ALLOWED}");
    let allowed = fs::read_to_string(&path).map_err(Error::system(format!("read {path}")))?;
    let wanted = match allowed.split_whitespace().any(|word| word == name) {
        true => allowed.trim().to_owned(),
        false => format!("{} {name}", allowed.trim()),
    };
    host_sysctl(janitor, ALLOWED, &wanted)
}

/// The IPv4 networks of the first namespace's addresses and routes: address and prefix length.
///
/// # Errors
/// `ip` refuses.
pub fn host_addresses() -> Result<Vec<(Ipv4Addr, u8)>, Error> {
    let output = run("ip", &["-4", "-o", "route", "show", "table", "all"])?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let network = |line: &str| {
        let mut words = line.split_whitespace();
        let first = words.next()?;
        // `local`, `broadcast` and such stand before the destination.
        let word = if first.starts_with(|c: char| c.is_ascii_digit()) { first } else { words.next()? };
        let (address, length) = word.split_once('/').unwrap_or((word, "32"));
        Some((address.parse().ok()?, length.parse().ok()?))
    };
    Ok(text.lines().filter_map(network).collect())
}

/// Runs `ip` commands in the first namespace, one per line, in one process.
///
/// # Errors
/// `ip` refuses one of them; those before it are done.
pub fn host_ip<S: AsRef<str>>(lines: &[S]) -> Result<(), Error> {
    ip_batch(&[], lines)
}

/// Runs `ip` with `options` and a batch of commands.
pub(crate) fn ip_batch<S: AsRef<str>>(options: &[&str], lines: &[S]) -> Result<(), Error> {
    let batch: String = lines.iter().flat_map(|line| [line.as_ref(), "\n"]).collect();
    feed("ip", &[options, &["-batch", "-"]].concat(), &batch)
}

/// Runs a tool to its end with `input` as its standard input.
pub(crate) fn feed(program: &'static str, args: &[&str], input: &str) -> Result<(), Error> {
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| unstarted(program, error))?;
    let mut pipe = child.stdin.take().expect("stdin was piped above");
    // If it stops reading it has a complaint, and that is the error to report.
    let _ = pipe.write_all(input.as_bytes());
    drop(pipe);
    let output = child.wait_with_output().map_err(Error::system(format!("wait for {program}")))?;
    if output.status.success() {
        return Ok(());
    }
    let input = input.trim().replace('\n', "; ");
    let shown: String = input.chars().take(SHOWN).collect();
    let rest = if shown.len() < input.len() { " …" } else { "" };
    let command = format!("{program} {}: {shown}{rest}", args.join(" "));
    Err(Error::Command { command, reason: complaint(&output) })
}
