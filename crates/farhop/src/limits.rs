//! How much this process may have open at a time, and what it keeps of its memory.

/// Lets it have as many sockets and files as the system allows; where that is refused, the log says so. Large memory that it
/// frees is the system's again: a password's check takes 19 MB for a moment. Other memory is once it has come to rest.
pub(crate) fn set() {
    if let Err(error) = farhop_netdev::raise_descriptor_limit() {
        tracing::warn!("only as many sockets as the shell allows (ulimit -n): {error}");
    }
    farhop_netdev::give_back_large_memory();
    farhop_netdev::give_back_memory_when_idle();
}
