//! A page that is held fresh, and whose scripts ask for what is not: `farhop local` over a link with a long round trip.
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The page, and what its scripts ask for, each once the one before it is there. No text names any of it.
const CHAIN: [&str; 4] = ["/", "/one.js", "/two.json", "/three.json"];
/// What a script asks for is noted a moment after it is there.
const MOMENT: Duration = Duration::from_millis(1_500);

/// The page may be kept for an hour, and nothing else at all.
fn origin() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream));
        }
    });
    address
}

fn serve(stream: TcpStream) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            (reader.read_line(&mut head).ok()? > 0).then_some(())?;
        }
        let path = head.split(' ').nth(1)?.to_owned();
        let (kind, caching) = match &*path {
            "/" => ("text/html", "max-age=3600"),
            "/one.js" => ("text/javascript", "no-store"),
            _ => ("application/json", "no-store"),
        };
        // It thinks for a moment, as origins do.
        std::thread::sleep(Duration::from_millis(100));
        let body = format!("what is at {path}");
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncache-control: {caching}\r\netag: \"1\"\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        reader.get_mut().write_all(answer.as_bytes()).ok()?;
    }
}

/// A running `farhop local`, which ends with this.
struct Local(Child, SocketAddr);

impl Local {
    fn start() -> Local {
        let mut child = Command::new(env!("CARGO_BIN_EXE_farhop"))
            .args(["local", "--listen", "127.0.0.1:0", "--allow", "127.0.0.0/8", "--link", "geo-hylas2"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address =
            line.strip_prefix("farhop: proxy on ").and_then(|rest| rest.split(',').next()?.parse().ok());
        Local(child, address.unwrap_or_else(|| panic!("{line}")))
    }

    /// What `Cache-Status` says of the answer.
    fn ask(&self, origin: SocketAddr, path: &str) -> String {
        let agent = "user-agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36\r\naccept-encoding: gzip, deflate\r\naccept-language: en\r\n";
        let own = match path {
            "/" => "accept: text/html,*/*;q=0.8\r\nupgrade-insecure-requests: 1\r\n".to_owned(),
            _ => format!("accept: */*\r\nreferer: http://{origin}/\r\n"),
        };
        let mut stream = TcpStream::connect(self.1).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let request = format!(
            "GET http://{origin}{path} HTTP/1.1\r\nhost: {origin}\r\n{agent}{own}connection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.ends_with(&format!("what is at {path}")), "{answer}");
        let status = answer.lines().find_map(|line| line.strip_prefix("Cache-Status: "));
        status.unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    fn visit(&self, origin: SocketAddr) -> Vec<String> {
        let said = CHAIN.map(|path| self.ask(origin, path));
        std::thread::sleep(MOMENT);
        said.into()
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_scripts_of_a_held_page_ask_for_is_on_its_way_before_they_do() {
    let (origin, local) = (origin(), Local::start());
    let first = local.visit(origin);
    assert!(first.iter().all(|said| !said.contains("collapsed")), "{first:?}");
    for _ in 0..2 {
        let said = local.visit(origin);
        assert!(said[0].contains("hit"), "the page is held: {said:?}");
    }
    let said = local.visit(origin);
    assert!(said[0].contains("hit"), "{said:?}");
    for (path, said) in CHAIN.iter().zip(&said).skip(2) {
        assert!(said.contains("collapsed"), "{path} was not on its way: {said}");
    }
}
