//! The two ends together, as their users meet them: the program itself is started, spoken to over sockets, killed.
//! Nothing in here knows the inside of an end; only `outages` puts both into one process, to cut the link between them.
//!
//! The package `farhop` builds these tests, since cargo tells a test where a program is only within its own package.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod browser;
mod caching;
mod carriers;
mod ceilings;
mod clients;
mod conformance;
mod control;
mod deltas;
mod destinations;
mod dns;
mod first_window;
mod ground_store;
mod held_pages;
mod histories;
mod hostile;
mod hostile_page;
mod keys;
mod logins;
mod mirror;
mod models;
mod outages;
mod pac;
mod portal;
mod requests;
mod roles;
mod rotation;
mod slow_clients;
mod speech;
mod starting;
mod store;
mod streaming;
mod support;
mod transparent;
mod tun;
mod tunnels;
mod udp;
mod users;
mod validation;
