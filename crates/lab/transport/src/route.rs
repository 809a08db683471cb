//! The ways that downloads take. Pure.

use farhop_compare::{Splitter, Tuning};

/// A way from the user to the origin.
pub struct Route {
    /// As command line and results have it.
    pub name: &'static str,
    /// In words.
    pub words: &'static str,
    /// What runs in between.
    pub(crate) kind: Kind,
}

/// What runs in between.
pub(crate) enum Kind {
    /// Both ends of Farhop.
    Farhop {
        /// The profile that both are told; without, the link's own, with its contracted rates.
        profile: Option<&'static str>,
        /// Of `[link]`, at both ends.
        link: &'static str,
        /// Of the remote alone.
        remote: &'static str,
        /// Of ground alone.
        ground: &'static str,
    },
    /// Nothing; the origin sends with this.
    Direct(&'static str),
    /// A program of others.
    Peer(Splitter),
}

const fn quic(name: &'static str, words: &'static str, link: &'static str) -> Route {
    let remote = "carrier = \"quic\"\n";
    Route { name, words, kind: Kind::Farhop { profile: None, link, remote, ground: "" } }
}

const fn tcp(name: &'static str, words: &'static str, remote: &'static str, ground: &'static str) -> Route {
    Route { name, words, kind: Kind::Farhop { profile: None, link: "", remote, ground } }
}

const fn direct(name: &'static str, words: &'static str, controller: &'static str) -> Route {
    Route { name, words, kind: Kind::Direct(controller) }
}

/// All of them.
pub const ROUTES: [Route; 20] = [
    Route {
        name: "farhop",
        words: "Farhop as it comes: told nothing of the link, which it measures",
        kind: Kind::Farhop { profile: Some("auto"), link: "", remote: "", ground: "" },
    },
    Route {
        name: "farhop-rate",
        words: "Farhop told the link's profile: QUIC at the contracted rate",
        kind: Kind::Farhop { profile: None, link: "", remote: "", ground: "" },
    },
    quic("farhop-bbr", "Farhop over QUIC with BBR", "congestion = \"bbr\"\n"),
    quic("farhop-hybla", "Farhop over QUIC with Hybla", "congestion = \"hybla\"\n"),
    quic("farhop-cubic", "Farhop over QUIC with CUBIC", "congestion = \"cubic\"\n"),
    quic("farhop-newreno", "Farhop over QUIC with NewReno", "congestion = \"newreno\"\n"),
    quic("farhop-westwood", "Farhop over QUIC with Westwood", "congestion = \"westwood\"\n"),
    quic("farhop-vegas", "Farhop over QUIC with Vegas", "congestion = \"vegas\"\n"),
    quic("farhop-bic", "Farhop over QUIC with BIC", "congestion = \"bic\"\n"),
    tcp("farhop-tcp-1", "Farhop over one TCP connection, CUBIC", TCP_1, ""),
    tcp("farhop-tcp-2", "Farhop over 2 TCP connections, CUBIC", TCP_2, ""),
    tcp("farhop-tcp-4", "Farhop over 4 TCP connections, CUBIC", TCP_4, ""),
    tcp(
        "farhop-tcp-4+priority",
        "Farhop over 4 TCP connections, one kept for what is urgent, CUBIC",
        TCP_4_PRIORITY,
        "tcp_streams = \"priority\"\n",
    ),
    tcp("farhop-tcp-8", "Farhop over 8 TCP connections, CUBIC", TCP_8, ""),
    tcp("farhop-tcp-4+bbr", "Farhop over 4 TCP connections, BBR", TCP_4, "tcp_congestion = \"bbr\"\n"),
    direct("direct-cubic", "no proxy, the origin sends with CUBIC", "cubic"),
    direct("direct-bbr", "no proxy, the origin sends with BBR", "bbr"),
    direct("direct-reno", "no proxy, the origin sends with Reno", "reno"),
    Route {
        name: "pepsal",
        words: "PEPsal at both ends of the link, CUBIC",
        kind: Kind::Peer(Splitter::Pepsal),
    },
    Route { name: "qpep", words: "QPEP at both ends of the link", kind: Kind::Peer(Splitter::Qpep) },
];

const TCP_1: &str = "carrier = \"tcp\"\ntcp_connections = 1\n";
const TCP_2: &str = "carrier = \"tcp\"\ntcp_connections = 2\n";
const TCP_4: &str = "carrier = \"tcp\"\ntcp_connections = 4\n";
const TCP_4_PRIORITY: &str = "carrier = \"tcp\"\ntcp_connections = 4\ntcp_streams = \"priority\"\n";
const TCP_8: &str = "carrier = \"tcp\"\ntcp_connections = 8\n";

impl Route {
    /// The route of this name.
    pub fn named(name: &str) -> Option<&'static Route> {
        static ALL: [Route; ROUTES.len()] = ROUTES;
        ALL.iter().find(|route| route.name == name)
    }

    /// What its ends are told beside what all are told; none where there are none.
    pub(crate) fn tuning(&self) -> Option<Tuning> {
        let Kind::Farhop { profile, link, remote, ground } = &self.kind else { return None };
        Some(Tuning {
            link: (*link).into(),
            remote: (*remote).into(),
            ground: (*ground).into(),
            profile: profile.map(str::to_owned),
            ..Tuning::default()
        })
    }

    /// The kernel's controller that it needs.
    pub(crate) fn controller(&self) -> Option<&'static str> {
        match self.kind {
            Kind::Direct(controller) => Some(controller),
            Kind::Farhop { ground, .. } if ground.contains("bbr") => Some("bbr"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_route_has_a_name_of_its_own_by_which_it_is_found() {
        for route in &ROUTES {
            assert_eq!(Route::named(route.name).unwrap().words, route.words);
        }
        assert!(Route::named("farhop-reno").is_none());
    }

    #[test]
    fn farhop_as_it_comes_is_told_what_a_user_gets_by_default_and_the_contract_is_a_route_of_its_own() {
        let told = |name| Route::named(name).unwrap().tuning().unwrap();
        let (comes, rate) = (told("farhop"), told("farhop-rate"));
        assert_eq!(comes.profile.as_deref(), Some("auto"), "the default of [link] profile");
        assert_eq!(rate.profile, None, "the link's own");
        for tuning in [comes, rate] {
            assert_eq!((&*tuning.link, &*tuning.remote, &*tuning.ground), ("", "", ""));
        }
    }

    #[test]
    fn what_goes_through_farhop_is_called_so_and_nothing_else_is() {
        for route in &ROUTES {
            assert_eq!(route.tuning().is_some(), route.name.starts_with("farhop"), "{}", route.name);
        }
    }
}
