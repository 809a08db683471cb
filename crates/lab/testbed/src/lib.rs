//! Namespaces client, remote, ground, origins around an emulated link.
