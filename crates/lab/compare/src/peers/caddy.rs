//! HTTP/3 servers for `direct-h3`: Caddy at an address of its own for each site, in front of the same origins as every other
//! variant has, so that bodies, codings and delays are the same.

use std::net::IpAddr;
use std::path::Path;
use std::process::Command;

use farhop_testbed::{Place, Running, Testbed};
use farhop_workload::origins::{OriginSpec, OriginsSpec, chain_file, key_file};

use super::{Server, program, settings_file};
use crate::CompareError;
use crate::interrupt::Interrupt;
use crate::origins::h3_servers;

/// Starts Caddy for every site that has an address for HTTP/3; none where no variant wants it.
///
/// # Errors
/// It does not come up.
pub(crate) fn start(
    testbed: &Testbed,
    spec: &OriginsSpec,
    folder: &Path,
    interrupt: &Interrupt,
) -> Result<Option<Running>, CompareError> {
    let servers = h3_servers(spec);
    let (Some((_, first)), Some(identities)) = (servers.first(), &spec.identities) else { return Ok(None) };
    let Some(caddy) = program("caddy") else { return Ok(None) };
    let file = settings_file(folder, "Caddyfile", &caddyfile(&servers, identities, &spec.ca))?;
    let mut command = Command::new(caddy);
    command.args(["run", "--adapter", "caddyfile", "--config"]).arg(file);
    // Where it keeps what it keeps.
    command.env("HOME", folder).env("XDG_DATA_HOME", folder).env("XDG_CONFIG_HOME", folder);
    let server = Server {
        name: "caddy",
        place: Place::Origins,
        command,
        listens: (*first, 443).into(),
        stderr: folder.join("caddy.stderr"),
        testbed,
    };
    server.start(interrupt).map(Some)
}

/// Caddy's settings: one site per origin, passed on to it over HTTPS.
fn caddyfile(servers: &[(&OriginSpec, IpAddr)], identities: &Path, ca: &Path) -> String {
    let mut text = String::from(
        "{\n\tadmin off\n\tauto_https off\n\tlog {\n\t\tlevel ERROR\n\t}\n\tservers {\n\t\tprotocols h1 h2 h3\n\t}\n}\n",
    );
    for (origin, address) in servers {
        let OriginSpec { name, address: own, .. } = origin;
        let (chain, key) = (chain_file(identities, name), key_file(identities, name));
        text.push_str(&format!(
            "https://{name} {{\n\tbind {address}\n\ttls {chain} {key}\n\treverse_proxy https://{own} {{\n\
             \t\ttransport http {{\n\t\t\ttls_server_name {name}\n\t\t\ttls_trusted_ca_certs {ca}\n\t\t\tversions 1.1\n\
             \t\t}}\n\t}}\n}}\n",
            chain = chain.display(),
            key = key.display(),
            ca = ca.display(),
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_site_is_served_under_its_name_at_its_own_address_from_its_origin() {
        let origin = OriginSpec::new("a.test", [10, 77, 16, 1], "/site");
        let text = caddyfile(&[(&origin, [10, 77, 16, 2].into())], Path::new("/id"), Path::new("/ca.pem"));
        for line in [
            "https://a.test {",
            "bind 10.77.16.2",
            "tls /id/a.test.pem /id/a.test.key",
            "reverse_proxy https://10.77.16.1 {",
            "tls_server_name a.test",
            "tls_trusted_ca_certs /ca.pem",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert_eq!(text.matches('{').count(), text.matches('}').count());
    }
}
