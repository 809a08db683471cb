//! A pair of Squid proxies for `squid`: one beside the user that asks the one beyond the link for everything, both new for
//! each load, with nothing in their memory caches and none on disk.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use farhop_testbed::{Place, Running};

use super::{Server, program, settings_file};
use crate::CompareError;
use crate::ends::Stage;

const CHILD_PORT: u16 = 3128;
const PARENT_PORT: u16 = 3129;

/// Both proxies, running.
pub(crate) struct SquidPair {
    /// Where browsers find the one beside them.
    pub(crate) proxy: SocketAddr,
    both: [(&'static str, Running, PathBuf); 2],
}

impl SquidPair {
    /// Starts both and waits until they listen.
    ///
    /// # Errors
    /// Squid is not here, or does not come up.
    pub(crate) fn start(stage: Stage<'_>) -> Result<SquidPair, CompareError> {
        let addresses = &stage.testbed.addresses;
        let proxy = SocketAddr::from((addresses.remote, CHILD_PORT));
        let beyond = SocketAddr::from((addresses.ground_satellite, PARENT_PORT));
        let parent = start(stage, "squid-parent", Place::Ground, beyond, None)?;
        let child = start(stage, "squid-child", Place::Remote, proxy, Some(beyond))?;
        Ok(SquidPair { proxy, both: [parent, child] })
    }

    /// The one at the terminal, the one at the gateway.
    pub(crate) fn processes(&self) -> [&Running; 2] {
        let [parent, child] = &self.both;
        [&child.1, &parent.1]
    }

    /// Whether both run.
    ///
    /// # Errors
    /// One of them does not; with its last words.
    pub(crate) fn check_alive(&mut self) -> Result<(), CompareError> {
        self.both.iter_mut().try_for_each(|(name, process, stderr)| super::alive(name, process, stderr))
    }
}

fn start(
    stage: Stage<'_>,
    name: &'static str,
    place: Place,
    listen: SocketAddr,
    parent: Option<SocketAddr>,
) -> Result<(&'static str, Running, PathBuf), CompareError> {
    let missing = || CompareError::Peer { name: "squid", reason: "it is not installed".into() };
    let file = settings_file(stage.folder, &format!("{name}.conf"), &settings(name, listen, parent))?;
    let mut command = Command::new(program("squid").ok_or_else(missing)?);
    command.args(["-N", "-d", "0", "-n", &name.replace('-', ""), "-f"]).arg(file);
    let stderr = stage.folder.join(format!("{name}.stderr"));
    let server =
        Server { name, place, command, listens: listen, stderr: stderr.clone(), testbed: stage.testbed };
    Ok((name, server.start(stage.interrupt)?, stderr))
}

/// Squid's settings; with a parent everything goes through that.
fn settings(name: &str, listen: SocketAddr, parent: Option<SocketAddr>) -> String {
    let parent = parent.map(|parent| {
        let (host, port) = (parent.ip(), parent.port());
        format!("cache_peer {host} parent {port} 0 no-query no-digest default\nnever_direct allow all\n")
    });
    format!(
        "http_port {listen}\n{}http_access allow all\nvisible_hostname {name}\n\
         cache_mem 256 MB\nmaximum_object_size_in_memory 16 MB\n\
         access_log none\ncache_log /dev/null\ncache_store_log none\nnetdb_filename none\npid_filename none\n\
         coredump_dir none\nshutdown_lifetime 0 seconds\nforwarded_for delete\n",
        parent.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_beside_the_user_goes_nowhere_but_to_the_other() {
        let (near, far): (SocketAddr, SocketAddr) =
            ("10.0.0.1:3128".parse().unwrap(), "10.0.0.2:3129".parse().unwrap());
        let child = settings("child", near, Some(far));
        assert!(
            child.contains("cache_peer 10.0.0.2 parent 3129 0 ") && child.contains("never_direct allow all")
        );
        let parent = settings("parent", far, None);
        assert!(parent.contains("http_port 10.0.0.2:3129\n") && !parent.contains("never_direct"));
        for text in [child, parent] {
            assert!(!text.contains("cache_dir"), "nothing is kept on disk");
        }
    }
}
