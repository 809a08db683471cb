//! The satellite link live: core/orbit between two TUN devices.
