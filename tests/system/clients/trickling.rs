//! Bytes cross as they are written: what curl reads from a pipe while it uploads, and what a server says bit by bit. Each piece
//! has to come out at the other end before the next is written, so that nothing can have waited for it. The server is OpenSSL's,
//! which shows on its output what comes within TLS and says what its input says.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};

use super::servers::{free_port, identity};
use super::{PATIENCE_S, World, at_hand, client};
use crate::support::until;

/// Pieces of a body.
const PIECES: usize = 5;

/// A program that is written to and read from; it ends when this is dropped.
struct Piped {
    child: Child,
    output: ChildStdout,
    /// What it has written.
    got: Vec<u8>,
}

impl Piped {
    fn start(mut command: Command) -> Piped {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = child.stdout.take().unwrap();
        Piped { child, output, got: Vec::new() }
    }

    fn write(&mut self, text: &str) {
        let input = self.child.stdin.as_mut().unwrap();
        input.write_all(text.as_bytes()).unwrap();
        input.flush().unwrap();
    }

    /// Writes nothing more.
    fn close(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Reads until it has written `text`. Who waits in vain is ended by `timeout`, and its output with it.
    fn read_until(&mut self, text: &str) {
        let mut buffer = [0; 4096];
        while !self.got.windows(text.len()).any(|window| window == text.as_bytes()) {
            let count = self.output.read(&mut buffer).unwrap();
            assert!(count > 0, "'{text}' never came: {:?}", String::from_utf8_lossy(&self.got));
            self.got.extend_from_slice(&buffer[..count]);
        }
    }

    /// Reads to its end, which has to be a good one; gives all that it has written.
    fn finish(&mut self) -> String {
        self.output.read_to_end(&mut self.got).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
        String::from_utf8_lossy(&self.got).into_owned()
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        // `timeout` hands it on to what it runs; who has ended by itself needs none.
        let _ = Command::new("kill").arg(self.child.id().to_string()).stderr(Stdio::null()).status();
        let _ = self.child.wait();
    }
}

fn piece(number: usize) -> String {
    format!("piece {number} of what comes.")
}

/// A server on `port`, for one connection after another.
async fn server(world: &World, port: u16) -> Piped {
    let (chain, key) = identity(world);
    let mut command = Command::new("timeout");
    command.args([PATIENCE_S, "openssl", "s_server", "-quiet", "-naccept", "100"]);
    command.args(["-accept", &format!("127.0.0.1:{port}"), "-cert", &chain, "-key", &key]);
    command.stderr(Stdio::null());
    let server = Piped::start(command);
    until("the server listens", async || TcpStream::connect(("127.0.0.1", port)).ok()).await;
    server
}

/// curl, about to ask this server.
fn curl(world: &World, port: u16, options: &[&str]) -> Command {
    let mut command = client("curl");
    command.args(["--silent", "--show-error", "--no-buffer", "--proxy"]);
    command.arg(format!("http://{}", world.local.proxy)).arg("--cacert").arg(&world.ca).args(options);
    command.arg(format!("https://{}:{port}/x", super::HOST));
    command
}

/// Both versions of HTTP, each with a server of its own.
async fn over_both(course: fn(Piped, Piped), options: &[&str]) {
    if !at_hand(&["curl", "openssl"]) {
        return;
    }
    let ports = [free_port(), free_port()];
    let world = World::start(&ports).await;
    for (version, port) in ["--http1.1", "--http2"].into_iter().zip(ports) {
        let server = server(&world, port).await;
        let curl = Piped::start(curl(&world, port, &[&[version], options].concat()));
        tokio::task::spawn_blocking(move || course(curl, server)).await.unwrap();
    }
    let counted = world.local.counters().await;
    assert_eq!(counted["intercepted"], 2, "{counted}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_from_a_pipe_arrives_piece_by_piece_before_it_ends() {
    let course = |mut curl: Piped, mut server: Piped| {
        for number in 0..PIECES {
            curl.write(&piece(number));
            server.read_until(&piece(number));
        }
        curl.close();
        server.read_until("0\r\n\r\n");
        server.write("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nall");
        assert_eq!(curl.finish(), "all");
    };
    // It would wait a second for a 100 that no such server says.
    over_both(course, &["--upload-file", "-", "--header", "Expect:"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_says_bit_by_bit_arrives_bit_by_bit() {
    let course = |mut curl: Piped, mut server: Piped| {
        server.read_until("\r\n\r\n");
        server.write("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n");
        for number in 0..PIECES {
            let piece = piece(number);
            server.write(&format!("{:x}\r\n{piece}\r\n", piece.len()));
            curl.read_until(&piece);
        }
        server.write("0\r\n\r\n");
        assert_eq!(curl.finish(), (0..PIECES).map(piece).collect::<String>());
    };
    over_both(course, &[]).await;
}
