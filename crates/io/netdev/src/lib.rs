//! Namespaces, veth, TUN, diverted connections, shaped devices and socket options: every privileged syscall of Farhop and all of its `unsafe`.
//!
//! Mechanism only: what a testbed looks like, which addresses it has and what crosses a link is decided by
//! the callers. Whatever is made here is removed by its [`Janitor`], or by the helper of [`Privileged`], however its owner ends.

mod capability;
mod controller;
mod datagrams;
mod divert;
mod error;
mod first_window;
mod host;
mod icmp;
mod intake;
mod janitor;
mod memory;
mod namespace;
mod nat;
mod overhear;
mod owner;
mod ping;
mod privileged;
mod process;
mod rootless;
mod shaping;
mod signals;
mod socket;
mod thread;
mod transparent;
mod tun;
mod urgent;

pub use controller::{controller_name, register_controller};
pub use datagrams::receive_diverted;
pub use divert::{Catch, Divert, Network};
pub use error::Error;
pub use host::{congestion_control_allowed, host_addresses, host_ip, host_sysctl, require_privileges};
pub use icmp::{keep_complaints, next_complaint};
pub use intake::{Intake, listen_on};
pub use janitor::Janitor;
pub use memory::{give_back_large_memory, give_back_memory_when_idle};
pub use namespace::Namespace;
pub use nat::Nat;
pub use overhear::{MOST_PORT_RANGES, Overheard};
pub use ping::{Ping, left_by};
pub use privileged::{Privileged, serve_privileged};
pub use process::{Running, raise_descriptor_limit};
pub use rootless::{enter_user_namespace, is_rootless};
pub use shaping::{
    Applied, Crowd, Group, Hold, Leaf, LeafCounts, LeafKind, Listed, Losing, MarkRule, Metered, Shaped,
    Shaping, crowds, has_interface, media_passed, set_losing, shaped, unshape, waiting,
};
pub use signals::{IgnoredInterrupt, ignore_interrupt};
pub use socket::{
    congestion_control, fast_open_connect, fast_open_listen, receive_buffer, receive_timestamps,
    receive_with_timestamp, set_congestion_control, tcp_round_trip, tcp_window, unacknowledged,
};
pub use thread::{
    AwakeProcessors, Waker, cpu_time, precise_timers, realtime_priority, run_on_processor, wait_readable,
};
pub use tun::Tun;
pub use urgent::{is_next_urgent, keep_urgent_in_place, send_urgent};
