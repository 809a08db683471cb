//! Connections in the names of clients, whose addresses are not this machine's: who may have them, and the sockets for them,
//! which a process with the right to make such has given.

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use farhop_settings::GroundSettings;
use tokio::net::TcpSocket;
use tokio::task::spawn_blocking;

/// Makes a socket that is bound to an address which is not this machine's.
pub type Speaker = Arc<dyn Fn(IpAddr) -> io::Result<std::net::TcpStream> + Send + Sync>;

/// See the module.
#[derive(Default)]
pub(crate) struct Names(OnceLock<Speaker>);

impl Names {
    /// Takes the maker of sockets. The first one counts.
    pub(crate) fn speak_through(&self, speaker: Speaker) {
        let _ = self.0.set(speaker);
    }

    /// The address of `client` if `remote` may have connections in its name. Else ground connects as itself.
    pub(crate) fn granted(
        &self,
        settings: &GroundSettings,
        remote: &str,
        client: Option<IpAddr>,
    ) -> Option<IpAddr> {
        let client = client.filter(|_| self.0.get().is_some())?;
        let peer = settings.remote.iter().find(|peer| peer.name.as_str() == remote)?;
        peer.client_addresses.iter().any(|range| range.contains(client)).then_some(client)
    }

    /// A socket to connect from in the name of `client`.
    pub(crate) async fn socket(&self, client: IpAddr) -> io::Result<TcpSocket> {
        let speaker = self.0.get().cloned().ok_or(io::ErrorKind::Unsupported)?;
        let made = spawn_blocking(move || speaker(client)).await.map_err(io::Error::other)??;
        Ok(TcpSocket::from_std_stream(made))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_its_name_only_where_it_is_granted_to_its_remote() {
        let text = "[[remote]]\nname = 'ship'\nkeys = ['a']\nclient_addresses = ['10.1.0.0/16', '2001:db8:1::/48']\n\
                    [[remote]]\nname = 'hut'\nkeys = ['b']\n";
        let settings: GroundSettings = farhop_settings::parse(text, "ground.toml".as_ref(), &[]).unwrap();
        let names = Names::default();
        let granted = |remote, client: &str| names.granted(&settings, remote, client.parse().ok()).is_some();
        assert!(!granted("ship", "10.1.2.3"), "nobody makes sockets");
        names.speak_through(Arc::new(|_| Err(io::ErrorKind::Unsupported.into())));
        assert!(granted("ship", "10.1.2.3") && granted("ship", "2001:db8:1::7"));
        for (remote, client) in
            [("ship", "10.2.0.1"), ("hut", "10.1.2.3"), ("plane", "10.1.2.3"), ("ship", "")]
        {
            assert!(!granted(remote, client), "{remote} {client}");
        }
    }
}
