//! A way between the two ends that a test can break: it passes on TCP connections and UDP packets, or does not.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{copy, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// What passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Way {
    /// TCP connections of an earlier number have ended.
    severed: u64,
    /// Nothing passes; connections stand.
    pub(crate) cut: bool,
    /// Nothing passes towards `to`; what comes from there does.
    pub(crate) up_cut: bool,
    pub(crate) udp: bool,
    /// Of packets towards the remote, each so many-th gets lost; 0 for none.
    pub(crate) loses: usize,
}

/// A relay that runs until it is dropped.
pub(crate) struct Relay {
    way: watch::Sender<Way>,
    _tasks: JoinSet<()>,
}

impl Relay {
    /// Passes on what comes to `at`.
    pub(crate) async fn start(at: SocketAddr, to: SocketAddr) -> Relay {
        let way = watch::Sender::new(Way { severed: 0, cut: false, up_cut: false, udp: true, loses: 0 });
        let (tcp, udp) = (TcpListener::bind(at).await.unwrap(), UdpSocket::bind(at).await.unwrap());
        let mut tasks = JoinSet::new();
        tasks.spawn(pass_tcp(tcp, to, way.subscribe()));
        tasks.spawn(pass_udp(Arc::new(udp), to, way.subscribe()));
        Relay { way, _tasks: tasks }
    }

    /// Ends all TCP connections. Others may be made.
    pub(crate) fn sever(&self) {
        self.way.send_modify(|way| way.severed += 1);
    }

    /// Changes what passes.
    pub(crate) fn set(&self, change: impl FnOnce(&mut Way)) {
        self.way.send_modify(change);
    }
}

async fn pass_tcp(listener: TcpListener, to: SocketAddr, way: watch::Receiver<Way>) {
    let mut connections = JoinSet::new();
    loop {
        let (mut near, _) = listener.accept().await.unwrap();
        let mut way = way.clone();
        connections.spawn(async move {
            let number = way.borrow_and_update().severed;
            let Ok(mut far) = TcpStream::connect(to).await else { return };
            loop {
                let Way { cut, up_cut, .. } = *way.borrow();
                let pass = async {
                    match (cut, up_cut) {
                        (true, _) => std::future::pending().await,
                        (false, true) => copy(&mut far, &mut near).await.map(drop),
                        (false, false) => copy_bidirectional(&mut near, &mut far).await.map(drop),
                    }
                };
                tokio::select! {
                    biased;
                    changed = way.changed() => if changed.is_err() || way.borrow().severed > number { return },
                    _ = pass => return,
                }
            }
        });
    }
}

async fn pass_udp(near: Arc<UdpSocket>, to: SocketAddr, way: watch::Receiver<Way>) {
    let mut tasks = JoinSet::new();
    let mut clients: HashMap<SocketAddr, Arc<UdpSocket>> = HashMap::new();
    let passes = |way: &watch::Receiver<Way>| way.borrow().udp && !way.borrow().cut;
    let mut buffer = vec![0; 65_536];
    loop {
        let Ok((length, from)) = near.recv_from(&mut buffer).await else { continue };
        if !passes(&way) || way.borrow().up_cut {
            continue;
        }
        if let Entry::Vacant(client) = clients.entry(from) {
            let far = Arc::new(UdpSocket::bind((to.ip(), 0)).await.unwrap());
            far.connect(to).await.unwrap();
            client.insert(Arc::clone(&far));
            let (near, way) = (Arc::clone(&near), way.clone());
            tasks.spawn(async move {
                let mut buffer = vec![0; 65_536];
                for packet in 1_usize.. {
                    let Ok(length) = far.recv(&mut buffer).await else { continue };
                    let loses = way.borrow().loses;
                    if passes(&way) && (loses == 0 || !packet.is_multiple_of(loses)) {
                        let _ = near.send_to(&buffer[..length], from).await;
                    }
                }
            });
        }
        let _ = clients[&from].send(&buffer[..length]).await;
    }
}
