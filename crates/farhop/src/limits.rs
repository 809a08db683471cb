//! How much this process may have open at a time.

/// Lets it have as many sockets and files as the system allows; where that is refused, the log says so.
pub(crate) fn raise() {
    if let Err(error) = farhop_netdev::raise_descriptor_limit() {
        tracing::warn!("only as many sockets as the shell allows (ulimit -n): {error}");
    }
}
