//! `farhop local` as a process of its own, and a client that tells a whole answer from one that was cut off.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use farhop_netdev::Running;

use crate::MeasureError;

/// The client gives up after so long without a byte.
const STILL: Duration = Duration::from_secs(30);
/// More of an endless body proves nothing new.
const ENOUGH: usize = 4096;

/// The program that is running.
pub(crate) fn farhop() -> Result<Command, MeasureError> {
    std::env::current_exe().map(Command::new).map_err(MeasureError::system("the running program"))
}

/// Whether a command ended as a failure that is told in one line on standard error; the line, or what was wrong.
pub(crate) fn told_in_one_line(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    let Output { status, stderr, .. } = output;
    let said = String::from_utf8_lossy(&stderr).trim().to_owned();
    match (status.code(), said.lines().count()) {
        (Some(1 | 2), 1) => Ok(said),
        (code, lines) => Err(format!("exit code {code:?}, {lines} lines: {said}")),
    }
}

/// A running `farhop local`.
pub(crate) struct Local {
    process: Running,
    proxy: SocketAddr,
}

/// An answer as far as it came.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// `Proxy-Status` and `Location`, empty where there are none.
    pub(crate) proxy_status: String,
    pub(crate) location: String,
    pub(crate) body: Vec<u8>,
    /// Whether it ended as its framing says that a whole one does.
    pub(crate) whole: bool,
}

impl Local {
    /// Starts it and waits until it serves.
    pub(crate) fn start(options: &[&str]) -> Result<Local, MeasureError> {
        Local::start_as(farhop()?, options, Stdio::null())
    }

    /// The same of `command`, which becomes the program; what it says goes to `errors`.
    pub(crate) fn start_as(
        mut command: Command,
        options: &[&str],
        errors: Stdio,
    ) -> Result<Local, MeasureError> {
        command.args(["local", "--listen", "127.0.0.1:0"]).args(options);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors);
        let mut process = Running::start(&mut command).map_err(MeasureError::system("farhop local"))?;
        let mut line = String::new();
        if let Some(output) = process.stdout.take() {
            BufReader::new(output).read_line(&mut line).map_err(MeasureError::system("farhop local"))?;
        }
        let address =
            line.strip_prefix("farhop: proxy on ").and_then(|rest| rest.split(',').next()?.parse().ok());
        let proxy = address.ok_or_else(|| MeasureError::Unexpected(format!("farhop local said '{line}'")))?;
        Ok(Local { process, proxy })
    }

    /// Whether the process still runs.
    pub(crate) fn runs(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }

    /// SIGKILL: it has no moment left.
    pub(crate) fn kill(&mut self) {
        // It may have ended by itself, which is all that is wanted.
        let _ = self.process.kill_group();
    }

    /// SIGTERM, as a service manager would, and waits until it has ended.
    pub(crate) fn end(mut self, patience: Duration) -> Result<(), MeasureError> {
        let failed = MeasureError::system("farhop local");
        self.process.terminate().map_err(&failed)?;
        let deadline = Instant::now() + patience;
        while self.process.try_wait().map_err(&failed)?.is_none() {
            if Instant::now() > deadline {
                return Err(MeasureError::Unexpected("farhop local does not end".into()));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Where it serves.
    pub(crate) fn proxy(&self) -> SocketAddr {
        self.proxy
    }

    /// The most resident memory it has held at a time, in bytes (`VmHWM`, proc(5)); 0 once it is gone.
    pub(crate) fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok());
        kilobytes.map_or(0, |kilobytes: u64| kilobytes * 1024)
    }

    /// What it has computed, in seconds, its own and the kernel's for it (`utime`, `stime`, proc(5)).
    pub(crate) fn cpu_seconds(&self) -> f64 {
        /// Linux counts for programs in hundredths of a second on every architecture (`USER_HZ`).
        const TICKS: f64 = 100.0;
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).unwrap_or_default();
        // Fields 14 and 15; the second, which may hold spaces, ends with the last parenthesis.
        let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        let ticks: f64 = rest.split(' ').skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
        ticks / TICKS
    }

    /// GET through the proxy, up to as much of an answer as is enough to tell that it is endless.
    pub(crate) fn get(&self, url: &str) -> Result<Answer, MeasureError> {
        self.ask(url, "", 16 * ENOUGH)
    }

    /// GET as a browser asks for a document, the whole of it.
    pub(crate) fn get_page(&self, url: &str) -> Result<Answer, MeasureError> {
        let fields = "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:150.0) Gecko/20100101 Firefox/150.0\r\n\
                      Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n\
                      Upgrade-Insecure-Requests: 1\r\n";
        self.ask(url, fields, usize::MAX)
    }

    fn ask(&self, url: &str, more: &str, most: usize) -> Result<Answer, MeasureError> {
        let failed = MeasureError::system("the client");
        let host = url.split('/').nth(2).unwrap_or_default();
        let mut stream = TcpStream::connect(self.proxy).map_err(&failed)?;
        stream.set_read_timeout(Some(STILL)).map_err(&failed)?;
        write!(stream, "GET {url} HTTP/1.1\r\nHost: {host}\r\n{more}Connection: close\r\n\r\n")
            .map_err(&failed)?;
        let mut stream = BufReader::new(stream);
        let mut answer = Answer::default();
        let fields = loop {
            let (status, fields) = head(&mut stream).map_err(&failed)?;
            if !(100..200).contains(&status) {
                answer.status = status;
                break fields;
            }
        };
        let field = |name: &str| {
            let found = fields.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        (answer.proxy_status, answer.location) = (field("proxy-status"), field("location"));
        let mut buffer = [0; ENOUGH];
        // A reset is one way of being cut off.
        while answer.body.len() < most
            && let Ok(count @ 1..) = stream.read(&mut buffer)
        {
            answer.body.extend_from_slice(&buffer[..count]);
        }
        // RFC 9112 §6.3: without either, the body would end with the connection, and nobody could tell.
        answer.whole = match field("content-length").parse::<usize>() {
            Ok(length) => answer.body.len() == length,
            Err(_) => field("transfer-encoding") == "chunked" && answer.body.ends_with(b"0\r\n\r\n"),
        };
        Ok(answer)
    }
}

/// A status and its fields.
type Head = (u16, Vec<(String, String)>);

fn head(stream: &mut impl std::io::BufRead) -> std::io::Result<Head> {
    let mut status = None;
    let mut fields = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let line = line.trim_end();
        match (status, line.split_once(": ")) {
            (Some(status), None) => return Ok((status, fields)),
            (Some(_), Some((name, value))) => fields.push((name.to_owned(), value.to_owned())),
            (None, _) => {
                let code = line.split(' ').nth(1).and_then(|code| code.parse().ok());
                status = Some(code.ok_or(std::io::ErrorKind::UnexpectedEof)?);
            }
        }
    }
}
