//! nginx and Apache httpd as origins: their own TLS, HTTP/2, codings and ranges, asked by curl directly and through Farhop.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use farhop_workload::origins::{chain_file, key_file};

use super::{HOST, World, at_hand, client, succeeds};
use crate::support::until;

/// A server that ends when this is dropped.
pub(super) struct Server {
    child: Child,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        // In the foreground, each is one process that takes its workers along when asked to end.
        let asked = Command::new("kill").arg(self.child.id().to_string()).status();
        if asked.is_err() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// A port that is free, and stays so until a server has it: none of those that the kernel gives to whoever asks for any, nor one
/// that another test of this process was given.
pub(super) fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    const FIRST: u32 = 16_000;
    const ALL: u32 = 16_000;
    let own = std::process::id().wrapping_mul(97);
    loop {
        let next = own.wrapping_add(NEXT.fetch_add(1, Relaxed));
        let port = (FIRST + next % ALL) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Starts a server in the foreground and waits until it takes connections.
pub(super) async fn start(mut command: Command, port: u16, log: &Path) -> Server {
    let file = std::fs::File::create(log).unwrap();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
    let mut server = Server { child: command.spawn().unwrap(), port };
    until("the server listens", async || {
        if let Some(status) = server.child.try_wait().unwrap() {
            panic!("the server ended ({status}): {}", std::fs::read_to_string(log).unwrap());
        }
        tokio::net::TcpStream::connect(("127.0.0.1", port)).await.ok()
    })
    .await;
    server
}

async fn nginx(world: &World, port: u16) -> Server {
    let folder = world.folder.path();
    let (chain, key) = identity(world);
    let text = format!(
        "daemon off;\nmaster_process off;\npid {at}/nginx.pid;\nerror_log stderr warn;\nevents {{}}\nhttp {{\n\
         access_log off;\ninclude /etc/nginx/mime.types;\ngzip on;\ngzip_proxied any;\ngzip_min_length 1;\n\
         gzip_types text/css text/javascript application/javascript;\n\
         client_body_temp_path {at}/body;\nproxy_temp_path {at}/proxy;\nfastcgi_temp_path {at}/fastcgi;\n\
         uwsgi_temp_path {at}/uwsgi;\nscgi_temp_path {at}/scgi;\n\
         server {{\nlisten 127.0.0.1:{port} ssl http2;\nserver_name {HOST};\nssl_certificate {chain};\n\
         ssl_certificate_key {key};\nroot {at}/site;\n}}\n}}\n",
        at = folder.display(),
    );
    let settings = folder.join("nginx.conf");
    std::fs::write(&settings, text).unwrap();
    let mut command = Command::new("/usr/sbin/nginx");
    command.arg("-p").arg(folder).arg("-c").arg(settings);
    start(command, port, &folder.join("nginx.log")).await
}

async fn apache(world: &World, port: u16) -> Server {
    let folder = world.folder.path();
    let (chain, key) = identity(world);
    let modules =
        ["mpm_event", "authz_core", "mime", "dir", "deflate", "filter", "socache_shmcb", "ssl", "http2"];
    let load: String = modules
        .map(|name| format!("LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n"))
        .concat();
    let text = format!(
        "{load}ServerRoot {at}\nServerName {HOST}\nListen 127.0.0.1:{port}\nPidFile {at}/apache.pid\n\
         ErrorLog /dev/stderr\nMutex file:{at}\nDefaultRuntimeDir {at}\nTypesConfig /etc/mime.types\n\
         DocumentRoot {at}/site\nDirectoryIndex index.html\nProtocols h2 http/1.1\n\
         AddOutputFilterByType DEFLATE text/css text/html text/javascript application/javascript\n\
         SSLEngine on\nSSLCertificateFile {chain}\nSSLCertificateKeyFile {key}\n",
        at = folder.display(),
    );
    let settings = folder.join("apache.conf");
    std::fs::write(&settings, text).unwrap();
    let mut command = Command::new("/usr/sbin/apache2");
    command.arg("-DFOREGROUND").arg("-f").arg(settings);
    start(command, port, &folder.join("apache.log")).await
}

/// The chain and key of the lab's own origin, which these stand in for.
pub(super) fn identity(world: &World) -> (String, String) {
    let identities = world.folder.path().join("identities");
    let text = |path: std::path::PathBuf| path.display().to_string();
    (text(chain_file(&identities, HOST)), text(key_file(&identities, HOST)))
}

/// Every kind of request, directly and through Farhop: the same status and the same bytes.
async fn answers_alike(world: &World, server: &Server) {
    let proxy = format!("http://{}", world.local.proxy);
    let own = world.folder.path().join("origins.pem");
    let ways: [(&Path, &[&str]); 2] = [(&own, &["--noproxy", "*"]), (&world.ca, &["--proxy", &proxy])];
    let requests: [(&str, &[&str]); 8] = [
        ("/", &[]),
        ("/a.css", &["--compressed"]),
        ("/a.js", &["--http1.1", "--compressed"]),
        ("/large.bin", &["--http2"]),
        ("/large.bin", &["--http1.1", "--range", "2999000-"]),
        ("/large.bin", &["--range", "9000000-"]),
        ("/nothing-here", &[]),
        ("/a.svg", &["--header", "If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT"]),
    ];
    for (path, options) in requests {
        let mut answers = Vec::new();
        for (ca, way) in &ways {
            let mut command = client("curl");
            command.args([
                "--silent",
                "--show-error",
                "--max-time",
                "60",
                "--write-out",
                "|%{http_code}|%{content_type}",
            ]);
            command.args(*way).args(options).arg("--cacert").arg(ca);
            command.arg(format!("https://{HOST}:{}{path}", server.port));
            answers.push(succeeds(command).await);
        }
        // Of a file that it holds the remote says by itself that it has no such part; in which words is everyone's own.
        if options.contains(&"9000000-") {
            let refused = |answer: &[u8]| String::from_utf8_lossy(answer).contains("|416|");
            assert!(answers.iter().all(|answer| refused(answer)), "{path} {options:?}");
            continue;
        }
        let told =
            |answer: &[u8]| String::from_utf8_lossy(&answer[answer.len().saturating_sub(60)..]).into_owned();
        assert!(
            answers[0] == answers[1],
            "{path} {options:?}: {} bytes directly, ending {:?}; {} through Farhop, ending {:?}",
            answers[0].len(),
            told(&answers[0]),
            answers[1].len(),
            told(&answers[1])
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nginx_answers_through_farhop_as_it_does_directly() {
    if !at_hand(&["curl", "nginx"]) {
        return;
    }
    let port = free_port();
    let world = World::start(&[port]).await;
    let server = nginx(&world, port).await;
    tokio::time::timeout(Duration::from_secs(300), answers_alike(&world, &server)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn apache_answers_through_farhop_as_it_does_directly() {
    if !at_hand(&["curl", "apache2"]) {
        return;
    }
    let port = free_port();
    let world = World::start(&[port]).await;
    let server = apache(&world, port).await;
    tokio::time::timeout(Duration::from_secs(300), answers_alike(&world, &server)).await.unwrap();
}
