//! nginx at the gateway, as a proxy for plain HTTP: an application proxy that splits nothing at the terminal. New for each load,
//! with no cache.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;

use farhop_testbed::{Place, Running};

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
    pub(crate) fn start(stage: Stage<'_>) -> Result<Gateway, CompareError> {
        let missing = || CompareError::Peer { name: NAME, reason: "it is not installed".into() };
        let addresses = &stage.testbed.addresses;
        let proxy = SocketAddr::from((addresses.ground_satellite, PORT));
        let file = settings_file(stage.folder, "nginx.conf", &settings(stage.folder, proxy, addresses.dns))?;
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

    /// Whether it runs.
    ///
    /// # Errors
    /// It does not; with its last words.
    pub(crate) fn check_alive(&mut self) -> Result<(), CompareError> {
        alive(NAME, &mut self.running, &self.stderr)
    }
}

/// Its settings: whatever it is asked for it asks of the host that is named, under the same name.
fn settings(folder: &Path, listen: SocketAddr, dns: Ipv4Addr) -> String {
    let folder = folder.display();
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("    {kind}_temp_path {folder}/nginx-{kind};\n"))
        .concat();
    format!(
        "daemon off;\nmaster_process off;\npid {folder}/nginx.pid;\nevents {{ }}\nhttp {{\n    access_log off;\n{temporary}\
         \x20   resolver {dns} ipv6=off;\n    server {{\n        listen {listen};\n        location / {{\n\
         \x20           proxy_pass http://$http_host$request_uri;\n            proxy_http_version 1.1;\n\
         \x20           proxy_set_header Host $http_host;\n            proxy_set_header Connection \"\";\n        }}\n    }}\n}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_asks_the_host_that_is_named_and_writes_nowhere_else() {
        let listen: SocketAddr = "10.0.0.2:3128".parse().unwrap();
        let text = settings(Path::new("/tmp/x"), listen, Ipv4Addr::new(10, 0, 0, 53));
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
    }
}
