//! Namespaces, veth, TUN and socket options: the only crate with unsafe code.
