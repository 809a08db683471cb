//! A generator of load for proxies: HTTP/1.1 requests in absolute form (RFC 9112 §3.2.2) over connections that are kept, either
//! as fast as answers come or at a rate of its own. Each byte of each body is compared. One thread, so that it has one core.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// Connections that are kept, as a few browsers have them.
const CONNECTIONS: usize = 32;
/// An answer that takes longer will not come.
const PATIENCE: Duration = Duration::from_secs(10);

/// A request as it is sent, and the body that has to come.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    request: Vec<u8>,
    body: Vec<u8>,
}

impl Asked {
    /// GET for `url`, with the fields of a plain browser.
    pub(super) fn new(url: &str, body: &[u8]) -> Asked {
        let host = url.split('/').nth(2).unwrap_or_default();
        let request = format!(
            "GET {url} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:150.0) \
             Gecko/20100101 Firefox/150.0\r\nAccept: */*\r\nAccept-Language: en\r\n\r\n"
        );
        Asked { request: request.into_bytes(), body: body.to_vec() }
    }
}

/// Confines the calling thread, and no other, to a core.
///
/// # Errors
/// `taskset` is missing or refuses.
pub(super) fn confine_this_thread(core: usize) -> io::Result<()> {
    // `…/task/TID`, proc(5); taskset takes the number of a thread as well (sched_setaffinity(2)).
    let own = std::fs::read_link("/proc/thread-self")?;
    let thread = own.file_name().unwrap_or_default();
    let done = std::process::Command::new("taskset").args(["-pc", &core.to_string()]).arg(thread).output()?;
    if done.status.success() {
        return Ok(());
    }
    Err(io::Error::other(String::from_utf8_lossy(&done.stderr).trim().to_owned()))
}

/// Asks again as soon as an answer is there, on every connection; how many came in `time`.
pub(super) fn closed_loop(proxy: SocketAddr, asked: &[Asked], time: Duration) -> io::Result<u64> {
    on_this_thread(async move {
        let mut tasks = JoinSet::new();
        let until = Instant::now() + time;
        for number in 0..CONNECTIONS {
            let asked = asked.to_vec();
            tasks.spawn(async move {
                let mut connection = Connection::open(proxy).await?;
                let mut answers = 0;
                for asked in asked.iter().cycle().skip(number) {
                    if Instant::now() >= until {
                        break;
                    }
                    connection.exchange(asked).await?;
                    answers += 1;
                }
                io::Result::Ok(answers)
            });
        }
        let mut all = 0;
        while let Some(ended) = tasks.join_next().await {
            all += ended.map_err(io::Error::other)??;
        }
        Ok(all)
    })
}

/// Asks `rate` times a second for `time`; how long each answer took from the moment at which it was due to be asked for, so that a
/// proxy that stalls does not thin out its own load.
pub(super) fn open_loop(
    proxy: SocketAddr,
    asked: &[Asked],
    rate: f64,
    time: Duration,
) -> io::Result<Vec<Duration>> {
    on_this_thread(async move {
        let mut tasks = JoinSet::new();
        let start = Instant::now() + Duration::from_millis(20);
        for number in 0..CONNECTIONS {
            let asked = asked.to_vec();
            tasks.spawn(async move {
                let mut connection = Connection::open(proxy).await?;
                let mut times = Vec::new();
                for (count, asked) in asked.iter().cycle().skip(number).enumerate() {
                    let due = start + Duration::from_secs_f64((count * CONNECTIONS + number) as f64 / rate);
                    if due >= start + time {
                        break;
                    }
                    // A timer is good to a millisecond only; this thread has a core for itself.
                    while Instant::now() < due {
                        tokio::task::yield_now().await;
                    }
                    connection.exchange(asked).await?;
                    times.push(due.elapsed());
                }
                io::Result::Ok(times)
            });
        }
        let mut all = Vec::new();
        while let Some(ended) = tasks.join_next().await {
            all.extend(ended.map_err(io::Error::other)??);
        }
        Ok(all)
    })
}

fn on_this_thread<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}

struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Connection {
    async fn open(proxy: SocketAddr) -> io::Result<Connection> {
        let stream = TcpStream::connect(proxy).await?;
        stream.set_nodelay(true)?;
        Ok(Connection { stream, read: Vec::with_capacity(16 << 10) })
    }

    async fn exchange(&mut self, asked: &Asked) -> io::Result<()> {
        self.stream.write_all(&asked.request).await?;
        self.read.clear();
        loop {
            if let Some(body) = whole_body(&self.read)? {
                if body == asked.body {
                    return Ok(());
                }
                return Err(io::Error::other("a body is not what the origin has"));
            }
            let reading = self.stream.read_buf(&mut self.read);
            if tokio::time::timeout(PATIENCE, reading).await?? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

/// The body of an answer with a length, once all of it is there.
fn whole_body(answer: &[u8]) -> io::Result<Option<&[u8]>> {
    let Some(end) = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { return Ok(None) };
    let (head, body) = (&answer[..end], &answer[end + 4..]);
    let wrong = |what: &str| io::Error::other(format!("{what}: {}", String::from_utf8_lossy(head)));
    if !head.starts_with(b"HTTP/1.1 200") {
        return Err(wrong("not 200"));
    }
    let length = head.split(|byte| *byte == b'\n').find_map(|line| {
        let (name, value) = std::str::from_utf8(line).ok()?.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let length = length.ok_or_else(|| wrong("no length"))?;
    if body.len() > length {
        return Err(wrong("more bytes than the answer says"));
    }
    Ok((body.len() == length).then_some(body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_whole_when_its_length_is_there_and_anything_but_200_is_an_error() {
        let answer = b"HTTP/1.1 200 OK\r\nX: y\r\ncontent-length: 3\r\n\r\nabc";
        assert_eq!(whole_body(answer).unwrap(), Some(&b"abc"[..]));
        assert_eq!(whole_body(&answer[..answer.len() - 1]).unwrap(), None);
        assert_eq!(whole_body(&answer[..20]).unwrap(), None);
        assert!(whole_body(b"HTTP/1.1 200 OK\r\n\r\nabc").is_err());
        assert!(whole_body(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n").is_err());
        assert!(whole_body(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabc").is_err());
    }

    #[test]
    fn a_request_names_its_host_twice_as_proxies_are_asked() {
        let asked = Asked::new("http://127.0.0.1:80/7", b"x");
        let text = String::from_utf8(asked.request).unwrap();
        assert!(text.starts_with("GET http://127.0.0.1:80/7 HTTP/1.1\r\nHost: 127.0.0.1:80\r\n"), "{text}");
        assert!(text.ends_with("\r\n\r\n") && asked.body == b"x");
    }
}
