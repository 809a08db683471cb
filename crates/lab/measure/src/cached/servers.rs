//! The proxies that are asked, each a process confined to one core: Farhop with both its ends, Squid, nginx as a caching proxy. All
//! hold what they hold in memory, write no access log, and keep connections.

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use farhop_netdev::Running;

use super::free_port;
use crate::MeasureError;
use crate::local::farhop;
use farhop_workload::programs::found;

/// How long one may take until it listens.
const PATIENCE: Duration = Duration::from_secs(30);

/// Which proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Farhop,
    Squid,
    Nginx,
}

impl Kind {
    pub(super) const ALL: [Kind; 3] = [Kind::Farhop, Kind::Squid, Kind::Nginx];

    /// Its name, which is that of its program.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Farhop => "farhop",
            Kind::Squid => "squid",
            Kind::Nginx => "nginx",
        }
    }
}

/// One that runs.
pub(super) struct Server {
    pub(super) kind: Kind,
    pub(super) address: SocketAddr,
    process: Running,
    _folder: tempfile::TempDir,
}

impl Server {
    /// Starts one on `core`, in front of `origin`, and waits until it listens.
    ///
    /// # Errors
    /// It is not installed, or does not come up.
    pub(super) fn start(kind: Kind, core: usize, origin: SocketAddr) -> Result<Server, MeasureError> {
        let failed = MeasureError::system(kind.name());
        let folder = tempfile::tempdir().map_err(&failed)?;
        let address = free_port()?;
        let file = folder.path().join("settings");
        let program = || {
            let missing = || MeasureError::Unexpected(format!("{} is not installed", kind.name()));
            Ok::<_, MeasureError>(Command::new(found(kind.name()).ok_or_else(missing)?))
        };
        let command = match kind {
            Kind::Farhop => {
                let mut command = farhop()?;
                let listen = address.to_string();
                command.args(["local", "--listen", &listen, "--allow", "127.0.0.0/8"]);
                command.args(["--set", "remote.log.level=error", "--set", "ground.log.level=error"]);
                command
            }
            Kind::Squid => {
                std::fs::write(&file, squid_settings(address)).map_err(&failed)?;
                let mut command = program()?;
                command.args(["-N", "-d", "0", "-n", "farhopcached", "-f"]).arg(&file);
                command
            }
            Kind::Nginx => {
                std::fs::write(&file, nginx_settings(address, origin, folder.path())).map_err(&failed)?;
                let mut command = program()?;
                command.arg("-p").arg(folder.path()).arg("-c").arg(&file).args(["-e", "stderr"]);
                command
            }
        };
        let mut command = confined(core, &command);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut process = Running::start(&mut command).map_err(&failed)?;
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(address).is_err() {
            let ended = matches!(process.try_wait(), Ok(Some(_)));
            if ended || Instant::now() > deadline {
                let what = if ended { "ended" } else { "does not listen" };
                return Err(MeasureError::Unexpected(format!("{} {what}", kind.name())));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(Server { kind, address, process, _folder: folder })
    }

    /// What it and the processes that it started have computed, in seconds, their own and the kernel's for them (proc(5)).
    pub(super) fn cpu_seconds(&self) -> f64 {
        let own = self.process.id();
        let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let stats = all.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
        stats
            .filter_map(|stat| Stat::of(&stat))
            .filter(|stat| stat.group == own)
            .map(|stat| stat.seconds)
            .sum()
    }
}

/// The same command on one core. `taskset` becomes it, so that its process is the program's.
fn confined(core: usize, command: &Command) -> Command {
    let mut whole = Command::new("taskset");
    whole.args(["-c", &core.to_string()]).arg(command.get_program()).args(command.get_args());
    whole
}

/// Of a process: its group, and what it has computed.
struct Stat {
    group: u32,
    seconds: f64,
}

impl Stat {
    /// Reads `/proc/PID/stat`: fields 5 (`pgrp`), 14 and 15 (`utime`, `stime`); the second, which may hold spaces, ends with the last
    /// parenthesis.
    fn of(text: &str) -> Option<Stat> {
        /// Linux counts for programs in hundredths of a second on every architecture (`USER_HZ`).
        const TICKS: f64 = 100.0;
        let (_, rest) = text.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split(' ').collect();
        let ticks = |place: usize| fields.get(place)?.parse::<f64>().ok();
        let group = fields.get(2)?.parse().ok()?;
        Some(Stat { group, seconds: (ticks(11)? + ticks(12)?) / TICKS })
    }
}

/// Squid's settings: the memory cache alone, one process (`-N`).
fn squid_settings(listen: SocketAddr) -> String {
    format!(
        "http_port {listen}\nhttp_access allow all\nvisible_hostname farhop-measure\n\
         cache_mem 256 MB\nmaximum_object_size_in_memory 16 MB\nclient_persistent_connections on\n\
         access_log none\ncache_log /dev/null\ncache_store_log none\nnetdb_filename none\npid_filename none\n\
         coredump_dir none\nshutdown_lifetime 0 seconds\n"
    )
}

/// nginx's settings: one worker, what it holds in files that the system's page cache has.
fn nginx_settings(listen: SocketAddr, origin: SocketAddr, folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "daemon off;\nuser root;\nworker_processes 1;\npid {folder}/pid;\nevents {{ worker_connections 1024; }}\n\
         http {{\n access_log off;\n keepalive_requests 1000000000;\n tcp_nodelay on;\n open_file_cache max=1000;\n \
         client_body_temp_path {folder}/body;\n proxy_temp_path {folder}/proxy;\n fastcgi_temp_path {folder}/f;\n \
         uwsgi_temp_path {folder}/u;\n scgi_temp_path {folder}/s;\n \
         proxy_cache_path {folder}/cache keys_zone=held:10m use_temp_path=off;\n \
         server {{ listen {listen}; location / {{ proxy_pass http://{origin}; proxy_cache held; }} }}\n}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_has_computed_is_told_by_group_whatever_its_name() {
        let text = "17 (a b) c) S 1 5 5 0 -1 0 1 2 3 4 250 150 0 0 20 0 1 0 9 8 7";
        let stat = Stat::of(text).unwrap();
        assert_eq!((stat.group, stat.seconds), (5, 4.0));
        assert!(Stat::of("nothing").is_none());
    }

    #[test]
    fn a_program_is_started_on_its_core_with_its_own_arguments() {
        let mut command = Command::new("nginx");
        command.args(["-c", "file"]);
        let whole = confined(3, &command);
        let arguments: Vec<_> = whole.get_args().map(|it| it.to_string_lossy().into_owned()).collect();
        assert_eq!(
            (whole.get_program().to_str(), arguments.join(" ")),
            (Some("taskset"), "-c 3 nginx -c file".into())
        );
    }

    #[test]
    fn none_of_them_keeps_an_access_log_or_closes_connections_after_a_while() {
        let at: SocketAddr = "127.0.0.1:8080".parse().unwrap();
        assert!(squid_settings(at).contains("access_log none\n"));
        let nginx = nginx_settings(at, at, Path::new("/lab"));
        assert!(nginx.contains("access_log off;") && nginx.contains("keepalive_requests 1000000000;"));
    }
}
