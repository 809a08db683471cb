//! nginx at the gateway: an application proxy that splits nothing at the terminal. For plain HTTP it is the proxy that clients name;
//! over TLS, with HTTP/1.1 and HTTP/2, it stands in for the origins under their names, whose keys it has. New for each load, with no
//! cache.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;

use farhop_testbed::{Place, Running};
use farhop_workload::origins::{OriginSpec, OriginsSpec, chain_file, key_file};

use super::{Server, alive, program, settings_file};
use crate::CompareError;
use crate::ends::Stage;

const PORT: u16 = 3128;
const NAME: &str = "nginx";

/// Running.
pub(crate) struct Gateway {
    /// Where clients find it.
    pub(crate) proxy: SocketAddr,
    running: Running,
    stderr: PathBuf,
}

impl Gateway {
    /// Starts it and waits until it listens.
    ///
    /// # Errors
    /// It is not here, or does not come up.
    pub(crate) fn start(stage: Stage<'_>, origins: &OriginsSpec) -> Result<Gateway, CompareError> {
        let missing = || CompareError::Peer { name: NAME, reason: "it is not installed".into() };
        let addresses = &stage.testbed.addresses;
        let proxy = SocketAddr::from((addresses.ground_satellite, PORT));
        let file = settings_file(
            stage.folder,
            "nginx.conf",
            &settings(stage.folder, proxy, addresses.dns, origins),
        )?;
        let mut command = Command::new(program(NAME).ok_or_else(missing)?);
        let stderr = stage.folder.join("nginx.stderr");
        command.arg("-p").arg(stage.folder).arg("-c").arg(file).args(["-e", "stderr"]);
        let server = Server {
            name: NAME,
            place: Place::Ground,
            command,
            listens: proxy,
            stderr: stderr.clone(),
            testbed: stage.testbed,
        };
        Ok(Gateway { proxy, running: server.start(stage.interrupt)?, stderr })
    }

    pub(crate) fn process(&self) -> &Running {
        &self.running
    }

    /// Whether it runs.
    ///
    /// # Errors
    /// It does not; with its last words.
    pub(crate) fn check_alive(&mut self) -> Result<(), CompareError> {
        alive(NAME, &mut self.running, &self.stderr)
    }
}

/// Its settings: whatever it is asked for it asks of the host that is named, under the same name.
fn settings(folder: &Path, listen: SocketAddr, dns: Ipv4Addr, origins: &OriginsSpec) -> String {
    let folder = folder.display();
    let secure = stand_ins(listen, origins);
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("    {kind}_temp_path {folder}/nginx-{kind};\n"))
        .concat();
    format!(
        "daemon off;\nmaster_process off;\npid {folder}/nginx.pid;\nevents {{ }}\nhttp {{\n    access_log off;\n{temporary}\
         \x20   resolver {dns} ipv6=off;\n    server {{\n        listen {listen};\n        location / {{\n\
         \x20           proxy_pass http://$http_host$request_uri;\n            proxy_http_version 1.1;\n\
         \x20           proxy_set_header Host $http_host;\n            proxy_set_header Connection \"\";\n        }}\n    }}\n{secure}}}\n"
    )
}

/// A server over TLS for each site whose key is at hand; behind it a name of its own, since the plain proxy would take a site's for it. It has connections to the origins open, as a proxy has that is up for days,
/// and is tuned as a careful operator would have it: small TLS records.
fn stand_ins(listen: SocketAddr, origins: &OriginsSpec) -> String {
    let mut text = String::new();
    let Some(identities) = &origins.identities else { return text };
    for OriginSpec { name, address, .. } in origins.origins.iter().filter(|origin| origin.dns_name.is_none())
    {
        let (chain, key) = (chain_file(identities, name), key_file(identities, name));
        let _ = write!(
            text,
            "    upstream secure-{name} {{\n        server {address}:443;\n        keepalive 32;\n    }}\n    server {{\n\
             \x20       listen {ip}:443 ssl http2;\n        server_name {name};\n        ssl_certificate {chain};\n\
             \x20       ssl_certificate_key {key};\n        ssl_buffer_size 4k;\n        location / {{\n\
             \x20           proxy_pass https://secure-{name};\n            proxy_http_version 1.1;\n\
             \x20           proxy_set_header Host {name};\n            proxy_set_header Connection \"\";\n\
             \x20           proxy_ssl_name {name};\n            proxy_ssl_server_name on;\n\
             \x20           proxy_ssl_verify on;\n            proxy_ssl_trusted_certificate {ca};\n        }}\n    }}\n",
            ip = listen.ip(),
            chain = chain.display(),
            key = key.display(),
            ca = origins.ca.display(),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_asks_the_host_that_is_named_and_writes_nowhere_else() {
        let listen: SocketAddr = "10.0.0.2:3128".parse().unwrap();
        let folder = Path::new("/tmp/x");
        let origin = OriginSpec::new("a.test", [10, 77, 16, 1], "/site");
        let mut origins = OriginsSpec::on_free_ports(vec![origin], folder);
        let text = settings(folder, listen, Ipv4Addr::new(10, 0, 0, 53), &origins);
        for line in [
            "listen 10.0.0.2:3128;",
            "resolver 10.0.0.53 ipv6=off;",
            "proxy_pass http://$http_host$request_uri;",
            "proxy_temp_path /tmp/x/nginx-proxy;",
            "pid /tmp/x/nginx.pid;",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert_eq!(text.matches('{').count(), text.matches('}').count());
        assert!(!text.contains("ssl"), "without keys it can stand in for nobody");
        origins.identities = Some("/id".into());
        let text = settings(folder, listen, Ipv4Addr::new(10, 0, 0, 53), &origins);
        for line in [
            "listen 10.0.0.2:443 ssl http2;",
            "upstream secure-a.test {",
            "server_name a.test;",
            "server 10.77.16.1:443;",
            "ssl_certificate /id/a.test.pem;",
            "proxy_ssl_trusted_certificate /tmp/x/ca.pem;",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert_eq!(text.matches('{').count(), text.matches('}').count());
    }
}
