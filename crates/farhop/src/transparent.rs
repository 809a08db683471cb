//! Has connections caught for `farhop remote` as its settings say, by the helper that may.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::Command;
use std::sync::{Arc, Weak};

use anyhow::Context;
use farhop_netdev::{Catch, Divert, Intake, Network, Privileged};
use farhop_packets::{Complaint, Ends};
use farhop_remote::{Answerer, Answers, Device, Place, Running};
use farhop_settings::{Cidr, RemoteSettings};
use tokio::net::{TcpListener, UdpSocket};

use crate::first_window;

/// Connections that are caught, until this is dropped.
pub(crate) struct Catching {
    helper: Arc<Privileged>,
    way: Way,
    /// What a reload does not change.
    started: RemoteSettings,
}

/// How they are caught.
enum Way {
    /// Diverted to these listeners and sockets (TPROXY).
    Diverted { to: Vec<SocketAddr>, datagrams_to: Vec<SocketAddr> },
    /// Routed into a device with these addresses.
    Routed { device: Arc<Device>, addresses: Vec<Network> },
}

/// What they come to.
pub(crate) struct Taking {
    listeners: Vec<TcpListener>,
    datagrams: Vec<UdpSocket>,
}

/// Starts the helper if connections are to be caught, or a first window put; before there are other threads, since this one gives up the right.
///
/// # Errors
/// There is no such right, or the program can't be started again.
pub(crate) fn helper(settings: &RemoteSettings) -> anyhow::Result<Option<Privileged>> {
    let what = match (settings.transparent.enabled, settings.tcp_initial_window) {
        (true, _) => "catching connections (--transparent)",
        (false, Some(_)) => first_window::WHAT,
        (false, None) => return Ok(None),
    };
    privileged(what).map(Some)
}

/// Starts the helper for `what`; before there are other threads.
///
/// # Errors
/// As [`helper`].
pub(crate) fn privileged(what: &str) -> anyhow::Result<Privileged> {
    // The file may have been replaced meanwhile, by an update; this is what runs.
    let mut program = Command::new("/proc/self/exe");
    program.arg("privileged");
    Ok(Privileged::start(program, what)?)
}

impl Catching {
    /// Listens. Nothing is caught before [`Catching::set`].
    ///
    /// # Errors
    /// The system has no transparent sockets, or no TUN devices.
    pub(crate) fn listen(
        helper: Arc<Privileged>,
        settings: &RemoteSettings,
    ) -> anyhow::Result<(Catching, Taking)> {
        helper.watch(|how| {
            tracing::error!(
                "the helper that has connections caught has {how}: what it had caught is caught until the remote ends, and \
                 changes of [transparent] are refused; start the remote again"
            );
        })?;
        let (way, listeners, datagrams) = match settings.transparent.tun.is_empty() {
            true => divert(&helper, settings)?,
            false => route(&helper, settings)?,
        };
        let listeners = listeners.into_iter().map(TcpListener::from_std).collect::<Result<_, _>>()?;
        let datagrams = datagrams.into_iter().map(UdpSocket::from_std).collect::<Result<_, _>>()?;
        let catching = Catching { helper, way, started: settings.clone() };
        Ok((catching, Taking { listeners, datagrams }))
    }

    /// Has `running` serve what is caught.
    pub(crate) fn serve(&self, running: &mut Running, taking: Taking) {
        match &self.way {
            Way::Diverted { .. } => {
                running.catch(taking.listeners);
                // What makes the sockets that answer datagrams, for as long as there is the helper.
                let answerer: Answerer = Arc::new(ByHelper(Arc::downgrade(&self.helper)));
                running.catch_datagrams(taking.datagrams, &answerer);
            }
            Way::Routed { device, .. } => running.catch_by(device, taking.listeners),
        }
    }

    /// Catches what these settings say, in place of what was caught before.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn set(&self, settings: &RemoteSettings) -> anyhow::Result<()> {
        let mut settings = settings.clone();
        settings.role = self.started.role;
        settings.interception.enabled = self.started.interception.enabled;
        settings.udp.enabled = self.started.udp.enabled;
        match &self.way {
            Way::Diverted { to, datagrams_to } => {
                let catch = catch(&settings, to.clone());
                self.divert(Some(Catch { datagrams_to: datagrams_to.clone(), ..catch }))
            }
            Way::Routed { device, addresses } => {
                let intake = intake(&self.started, addresses, &settings);
                self.helper.reroute(&intake).context("transparent")?;
                device.set(Some(catch(&settings, Vec::new())));
                Ok(())
            }
        }
    }

    /// Catches no more; what was caught goes on.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn let_go(&self) -> anyhow::Result<()> {
        match &self.way {
            Way::Diverted { .. } => self.divert(None),
            Way::Routed { device, .. } => {
                device.set(None);
                Ok(())
            }
        }
    }

    fn divert(&self, catch: Option<Catch>) -> anyhow::Result<()> {
        let mark = self.started.transparent.mark;
        self.helper.divert(&Divert { mark, catch }).context("transparent")
    }
}

type Sockets = (Way, Vec<std::net::TcpListener>, Vec<std::net::UdpSocket>);

fn divert(helper: &Privileged, settings: &RemoteSettings) -> anyhow::Result<Sockets> {
    let mut listeners = vec![helper.listen(IpAddr::V4(Ipv4Addr::LOCALHOST))?];
    match helper.listen(IpAddr::V6(Ipv6Addr::LOCALHOST)) {
        Ok(listener) => listeners.push(listener),
        Err(error) => tracing::warn!("connections over IPv6 are not caught: {error}"),
    }
    let mut datagrams = Vec::new();
    if settings.role.carries() && settings.udp.enabled {
        datagrams.push(helper.take(IpAddr::V4(Ipv4Addr::LOCALHOST))?);
        // Said of connections above.
        datagrams.extend(helper.take(IpAddr::V6(Ipv6Addr::LOCALHOST)));
    }
    let datagrams_to = datagrams.iter().map(std::net::UdpSocket::local_addr).collect::<Result<_, _>>()?;
    let to = listeners.iter().map(std::net::TcpListener::local_addr).collect::<Result<_, _>>()?;
    Ok((Way::Diverted { to, datagrams_to }, listeners, datagrams))
}

/// Makes the device, to which nothing is routed yet.
fn route(helper: &Privileged, settings: &RemoteSettings) -> anyhow::Result<Sockets> {
    let addresses: Vec<Network> =
        settings.transparent.tun_networks.iter().map(|range| within(range, 1)).collect();
    let tun = helper.route(&intake(settings, &addresses, settings)).context("transparent.tun")?;
    let (mut listeners, mut places) = (Vec::new(), Vec::new());
    for range in &settings.transparent.tun_networks {
        match farhop_netdev::listen_on(within(range, 1).address) {
            Ok(listener) => {
                places.push(Place { listener: listener.local_addr()?, peer: within(range, 2).address });
                listeners.push(listener);
            }
            // It may be switched off.
            Err(error) if range.network.is_ipv6() => {
                tracing::warn!("connections over IPv6 are not caught: {error}");
            }
            Err(error) => return Err(error).context("transparent.tun"),
        }
    }
    let device = Arc::new(Device::new(tun, places)?);
    Ok((Way::Routed { device, addresses }, listeners, Vec::new()))
}

/// The address of this number in a range, with the range's prefix.
fn within(range: &Cidr, number: u8) -> Network {
    let address = match range.network {
        IpAddr::V4(first) => IpAddr::V4(Ipv4Addr::from_bits(first.to_bits() + u32::from(number))),
        IpAddr::V6(first) => IpAddr::V6(Ipv6Addr::from_bits(first.to_bits() + u128::from(number))),
    };
    Network { address, prefix: range.prefix }
}

fn intake(started: &RemoteSettings, addresses: &[Network], settings: &RemoteSettings) -> Intake {
    Intake {
        device: started.transparent.tun.clone(),
        table: started.transparent.mark,
        addresses: addresses.to_vec(),
        interfaces: settings.transparent.interfaces.clone(),
        except: settings.transparent.except.iter().map(network).collect(),
    }
}

/// Has the helper speak for destinations, for as long as it is there.
struct ByHelper(Weak<Privileged>);

impl Answers for ByHelper {
    fn socket(&self, Ends { client, to }: Ends) -> io::Result<Option<std::net::UdpSocket>> {
        let helper = self.0.upgrade().ok_or(io::ErrorKind::Unsupported)?;
        helper.answer(to, client).map(Some).map_err(io::Error::other)
    }

    /// The socket does.
    fn answer(&self, _: Ends, _: &[u8]) {}

    fn complain(&self, what: Complaint, Ends { client, to }: Ends) {
        if let Some(Err(error)) = self.0.upgrade().map(|helper| helper.complain(what, to, client)) {
            tracing::debug!("{client} does not hear {what:?} of {to}: {error}");
        }
    }
}

fn catch(settings: &RemoteSettings, to: Vec<SocketAddr>) -> Catch {
    let transparent = &settings.transparent;
    let served = || {
        let looked_into = settings.interception.ports.iter().filter(|_| settings.interception.enabled);
        transparent.http_ports.iter().chain(looked_into)
    };
    let is_served = |first, last| {
        // What is in both.
        served().filter_map(move |range| {
            let both = (range.first.max(first), range.last.min(last));
            (both.0 <= both.1).then_some(both)
        })
    };
    let ports = transparent.ports.iter().map(|range| (range.first, range.last));
    let ports = match settings.role.carries() {
        true => ports.collect(),
        false => ports.flat_map(|(first, last)| is_served(first, last)).collect(),
    };
    Catch {
        to,
        interfaces: transparent.interfaces.clone(),
        clients: settings.clients.iter().map(network).collect(),
        except: transparent.except.iter().map(network).collect(),
        ports,
        datagrams_to: Vec::new(),
        datagram_ports: match settings.role.carries() && settings.udp.enabled {
            true => settings.udp.ports.iter().map(|range| (range.first, range.last)).collect(),
            false => Vec::new(),
        },
    }
}

fn network(range: &Cidr) -> Network {
    Network { address: range.network, prefix: range.prefix }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_settings::{LocalSettings, parse};

    fn ports(sets: &[&str]) -> Vec<(u16, u16)> {
        let sets: Vec<_> = sets.iter().map(|set| format!("remote.{set}")).collect();
        let settings: LocalSettings = parse("", "".as_ref(), &sets).unwrap();
        catch(&settings.remote, Vec::new()).ports
    }

    #[test]
    fn a_device_has_the_first_addresses_of_its_networks() {
        let settings: LocalSettings = parse("", "".as_ref(), &[]).unwrap();
        let networks = &settings.remote.transparent.tun_networks;
        let shown =
            |number| networks.iter().map(|range| within(range, number).to_string()).collect::<Vec<_>>();
        assert_eq!(shown(1), ["198.18.255.1/30", "fdfa:1840:255::1/126"]);
        assert_eq!(shown(2), ["198.18.255.2/30", "fdfa:1840:255::2/126"]);
    }

    #[test]
    fn as_many_connections_as_may_be_set_leave_streams_to_pages() {
        let most = |connections: u64| {
            let set = format!("remote.transparent.connections={connections}");
            parse::<LocalSettings>("", "".as_ref(), &[set]).is_ok()
        };
        let sure = (farhop_tuning::MOST_STREAMS - 9_536) / 2;
        assert!(most(sure) && !most(sure + 1), "of both families, beside 9,536 streams");
    }

    #[test]
    fn the_application_role_alone_has_only_what_it_serves_caught() {
        assert_eq!(ports(&[]), [(1, 65535)]);
        assert_eq!(ports(&["role=application"]), [(80, 80)]);
        let both = ["role=application", "interception.enabled=true", "transparent.ports=1-100,443-500"];
        assert_eq!(ports(&both), [(80, 80), (443, 443)]);
    }
}
