//! What goes wrong at other people's hands, against the program itself: each has to end in a clear error that names the
//! failing side, with every process still up. `tests/system` holds the same, case by case.

use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt as _;

use farhop_testkit::{HostileOrigin, Manners, Step};

use crate::group::Context;
use crate::local::{Answer, Local, farhop, told_in_one_line};
use crate::strangers::wrong_key;
use crate::{MeasureError, Row};

/// Timeouts short enough to be waited for.
const SHORT: [&str; 4] = ["--set", "ground.origin.first_byte=1 s", "--set", "ground.origin.stall=1 s"];

/// What the words stand for.
const ORIGINS: [(&str, &[Manners]); 6] = [
    ("refuses", &[Manners::Refuses]),
    ("hangs", &[Manners::Hangs, Manners::StallsInBody]),
    (
        "resets or closes, in mid-body too",
        &[
            Manners::ClosesWithoutAnswer,
            Manners::ResetsWithoutAnswer,
            Manners::StopsInHead,
            Manners::ClosesInBody,
            Manners::ResetsInBody,
            Manners::ChunksWithoutEnd,
        ],
    ),
    (
        "lies about its length",
        &[Manners::SendsTooMuch, Manners::TwoLengths, Manners::LengthIsNoNumber, Manners::LengthAndChunks],
    ),
    (
        "sends garbage",
        &[
            Manners::Garbage,
            Manners::BadStatus,
            Manners::BadField,
            Manners::BareReturn,
            Manners::BadChunkSize,
            Manners::HugeChunkSize,
        ],
    ),
    (
        "sends huge or endless fields",
        &[
            Manners::HugeField,
            Manners::EndlessFields,
            Manners::EndlessField,
            Manners::EndlessInformational,
            Manners::EndlessTrailers,
        ],
    ),
];

pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let runtime = tokio::runtime::Runtime::new().map_err(MeasureError::system("a runtime"))?;
    let _inside = runtime.enter();
    let mut rows = vec![unknown_setting()?, port_in_use()?, no_privileges()?];
    rows.extend(wrong_key(&context.interrupt)?);
    let mut local = Local::start(&[&["--allow", "127.0.0.1/32"], &SHORT[..]].concat())?;
    for (what, manners) in ORIGINS {
        context.interrupt.check()?;
        rows.push(origins(&runtime, &mut local, what, manners)?);
    }
    rows.push(by_redirect(&runtime, &mut local)?);
    rows.push(private()?);
    Ok(rows)
}

fn one_line(what: &str, must_say: &str, command: &mut std::process::Command) -> Row {
    let bound = "one line that says it, exit code not 0";
    match told_in_one_line(command) {
        Ok(line) => Row::judged(what, format!("'{line}'"), bound, line.contains(must_say)),
        Err(why) => Row::judged(what, why, bound, false),
    }
}

fn unknown_setting() -> Result<Row, MeasureError> {
    let mut command = farhop()?;
    command.args(["local", "--set", "remote.drian=1 s"]);
    Ok(one_line("unknown setting", "did you mean 'remote.drain'?", &mut command))
}

fn port_in_use() -> Result<Row, MeasureError> {
    let taken = TcpListener::bind("127.0.0.1:0").and_then(|held| Ok((held.local_addr()?.to_string(), held)));
    let (address, _held) = taken.map_err(MeasureError::system("a port"))?;
    let mut command = farhop()?;
    command.args(["local", "--listen", &address]);
    Ok(one_line("port in use", &address, &mut command))
}

fn no_privileges() -> Result<Row, MeasureError> {
    const NOBODY: u32 = 65534;
    let failed = MeasureError::system("a copy of the program");
    let folder = tempfile::tempdir().map_err(&failed)?;
    let open = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).map_err(&failed)?;
    // Where the program lies others may not look.
    let program = folder.path().join("farhop");
    std::fs::copy(farhop()?.get_program(), &program).map_err(&failed)?;
    let mut command = std::process::Command::new(&program);
    command.args(["lab", "shell", "--", "true"]).current_dir(folder.path()).uid(NOBODY).gid(NOBODY);
    Ok(one_line("no privileges", "root", &mut command))
}

fn origins(
    runtime: &tokio::runtime::Runtime,
    local: &mut Local,
    what: &str,
    manners: &[Manners],
) -> Result<Row, MeasureError> {
    let (mut pages, mut cut, mut wrong) = (0, 0, Vec::new());
    for manners in manners {
        let origin = runtime.block_on(HostileOrigin::with(*manners));
        let answer = local.get(&origin.url("/"))?;
        match answer.status {
            _ if *manners == Manners::SendsTooMuch && answer.body == b"0123" => cut += 1,
            502 | 504 if answer.whole && answer.proxy_status.starts_with("farhop-ground; error=") => {
                pages += 1
            }
            200 if !answer.whole => cut += 1,
            _ => wrong.push(format!("{manners:?}: {}", described(&answer))),
        }
    }
    let up = if local.runs() { "process up" } else { "process DOWN" };
    let measured = match wrong.is_empty() {
        true => format!("{pages} × 502/504 naming the origin, {cut} × cut off, {up}"),
        false => format!("{}, {up}", wrong.join("; ")),
    };
    let pass = wrong.is_empty() && local.runs();
    Ok(Row::judged(format!("origin {what}"), measured, "502/504 naming the side, or cut off", pass))
}

/// An origin that may be reached sends the client to one that may not.
fn by_redirect(runtime: &tokio::runtime::Runtime, local: &mut Local) -> Result<Row, MeasureError> {
    let (forbidden, address) = forbidden(Ipv4Addr::new(127, 0, 0, 2))?;
    let answer = format!("HTTP/1.1 302 Found\r\nLocation: http://{address}/\r\nContent-Length: 0\r\n\r\n");
    let script = vec![Step::ReadHead, Step::Send(answer.into()), Step::Close];
    let origin = runtime.block_on(HostileOrigin::playing(vec![script]));
    let moved = local.get(&origin.url("/"))?;
    let refused = local.get(&moved.location)?;
    Ok(refusal(
        "private destination by redirect",
        &[refused],
        moved.status == 302 && forbidden.accept().is_err() && local.runs(),
    ))
}

/// Without `--allow`, nothing of this machine is reached, by address or by name.
fn private() -> Result<Row, MeasureError> {
    let mut local = Local::start(&[])?;
    let (forbidden, address) = forbidden(Ipv4Addr::LOCALHOST)?;
    let hosts = ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0"];
    let urls = hosts.map(|host| format!("http://{host}:{}/", address.port()));
    let others = ["10.0.0.1", "192.168.0.1", "169.254.169.254", "[::1]", "[fe80::1]"];
    let others = others.map(|host| format!("http://{host}/"));
    let answers = urls.iter().chain(&others).map(|url| local.get(url)).collect::<Result<Vec<_>, _>>()?;
    Ok(refusal(
        "private destinations by address and by name",
        &answers,
        forbidden.accept().is_err() && local.runs(),
    ))
}

fn refusal(what: &str, answers: &[Answer], besides: bool) -> Row {
    let prohibited = "farhop-ground; error=destination_ip_prohibited";
    let refused = |answer: &&Answer| answer.status == 403 && answer.proxy_status.starts_with(prohibited);
    let count = answers.iter().filter(refused).count();
    let seen = if besides { "nobody reached" } else { "REACHED, or a process down" };
    let measured = format!("{count} of {} × 403 destination_ip_prohibited, {seen}", answers.len());
    Row::judged(what, measured, "all refused by name of the rule", count == answers.len() && besides)
}

/// A server that must not be reached.
fn forbidden(host: Ipv4Addr) -> Result<(TcpListener, std::net::SocketAddr), MeasureError> {
    let listener = TcpListener::bind((host, 0)).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok((listener.local_addr()?, listener))
    });
    listener.map(|(address, listener)| (listener, address)).map_err(MeasureError::system("a port"))
}

fn described(answer: &Answer) -> String {
    let end = if answer.whole { "whole" } else { "cut off" };
    format!("{} '{}', {end}, {} bytes", answer.status, answer.proxy_status, answer.body.len())
}
