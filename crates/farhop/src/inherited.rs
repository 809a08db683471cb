//! Sockets that a service manager opened for this process and passed on (systemd: `LISTEN_FDS`), so that it needs no
//! right of its own to a port below 1024 and clients can knock while it restarts.

use std::net::TcpListener;

use anyhow::{Context, ensure};
use listenfd::ListenFd;
use socket2::SockRef;

/// The listeners passed on, none where this process was started in another way. Ask once and before threads are
/// started: the environment forgets them.
///
/// # Errors
/// One that was passed does not listen on TCP.
pub(crate) fn listeners() -> anyhow::Result<Vec<TcpListener>> {
    let mut passed = ListenFd::from_env();
    let mut listeners = Vec::new();
    for index in 0..passed.len() {
        let what = || format!("socket {} that the service manager passed (LISTEN_FDS)", index + 1);
        let listener = passed.take_tcp_listener(index).with_context(what)?;
        let Some(listener) = listener else { continue };
        let listens = SockRef::from(&listener).is_listener().with_context(what)?;
        ensure!(listens, "{}: it does not listen; set ListenStream=", what());
        listener.set_nonblocking(true).with_context(what)?;
        listeners.push(listener);
    }
    Ok(listeners)
}
