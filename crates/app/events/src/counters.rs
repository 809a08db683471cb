//! The counters that events add to. Nothing else may: a number here can be explained by the event stream.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::declare::counters;
use crate::words::{AnsweredFrom, Bypass, Crossing, PromiseEnd, Side, Word};

counters! {
    totals {
        /// Requests read from users.
        requests,
        /// Requests that crossed the long hop, tunnels included.
        requests_crossed,
        /// Body bytes given to users.
        bytes_to_users,
        /// Body bytes taken from users.
        bytes_from_users,
        /// Promises made by ground, or heard by the remote.
        promised,
        /// Promises that answered a request.
        used,
        /// Body bytes that crossed unasked and that nobody used, as they stood after decoding.
        wasted_bytes,
        /// Hints that were not followed, for whatever reason.
        hints_skipped,
        /// Pages for which less was fetched unasked than they may need.
        restrained,
        /// Times that another amount of it proved to make a site quicker.
        sites_judged,
        /// Times that images went by another policy under load, or by the old one again.
        policies_moved,
        /// Manifests of streaming media that crossed without the renditions that are too much.
        manifests_limited,
        /// Manifests that were left as they are although there is a limit.
        manifests_kept,
        /// Bodies that were sent as they play.
        media_paced,
        /// Pages read to their end.
        pages_read,
        /// Responses held at the remote that origins confirmed before a browser asked.
        confirmed,
        /// Responses held at the remote that origins did not confirm when ground asked.
        outdated,
        /// Times that what was promised to a page was settled.
        pages_settled,
        /// Requests made to origins.
        fetches,
        /// Body bytes taken from origins, as they stood on the wire.
        bytes_from_origins,
        /// Body bytes that the long hop was spared by coding them anew.
        bytes_squeezed,
        /// Body bytes that the long hop carried beyond those of origins, where a body grew by being coded anew.
        bytes_grown,
        /// Bodies that were sent as what differs from one that the remote holds.
        deltas,
        /// Body bytes that the long hop was spared by that, beside what coding each by itself spares.
        bytes_spared_by_deltas,
        /// Dictionaries that were trained on what an origin sends to anyone.
        dictionaries_trained,
        /// Times that a remote was sent one.
        dictionaries_sent,
        /// Bodies that were coded with one.
        bodies_taught,
        /// Body bytes that the long hop was spared by that, beside what coding each by itself spares.
        bytes_spared_by_dictionaries,
        /// Times that a carrier came up.
        carriers_up,
        /// Times that a carrier was lost.
        carriers_down,
        /// Times that a carrier fell silent.
        carriers_silent,
        /// Exchanges that went on after a lost carrier, fetched again and compared.
        resumed,
        /// Exchanges and tunnels that went on on another carrier where they had stopped.
        rejoined,
        /// Exchanges whose client was cut off, since going on would have risked a wrong byte.
        aborted,
        /// Destinations that ground refused to connect to.
        destinations_refused,
        /// Peers that were refused since their key is not known.
        strangers_refused,
        /// Clients that were refused since their address is not allowed.
        clients_refused,
        /// Names and passwords that were not right.
        logins_refused,
        /// TLS connections that were looked into.
        intercepted,
        /// Times that a host proved to be none for interception.
        bypasses_learned,
        /// Responses put into the repository.
        stored,
        /// Answers that ground gave from its own store.
        from_store,
        /// Responses dropped from the repository.
        evicted,
        /// Pages of which something was begun before their origin had answered.
        pages_foreseen,
        /// Promises made for that.
        foreseen,
        /// Visits that taught page models.
        visits_learned,
        /// Of what was foreseen in them, what was sent.
        foreseen_sent,
        /// Of that, what was used.
        foreseen_used,
        /// Tunnels opened.
        tunnels,
        /// WebSockets opened.
        websockets,
        /// Those of them that are streams of clients' HTTP/2 connections.
        websockets_within_http2,
        /// Connections made ahead, to hosts that usually follow another.
        connected_ahead,
        /// Connections made ahead that a tunnel took.
        ahead_used,
        /// Connections made ahead in vain.
        ahead_unused,
        /// Calls admitted.
        calls_admitted,
        /// Calls for which there was no room.
        calls_refused,
        /// Calls that are over.
        calls_released,
        /// Those of them that nobody had spoken for in time.
        calls_lapsed,
        /// Times that the rate of a link was found to be another.
        link_rates,
        /// Datagrams at the ports of SIP that were no messages of calls that could be read.
        sip_ignored,
        /// Calls whose speech goes to hosts by name, which are not resolved.
        sip_unplaced,
        /// Times that the classes of a device were put into force.
        links_in_force,
        /// Times that they were not in force any more.
        links_lost,
        /// Questions for names that were answered.
        names_answered,
        /// Those of them whose answer was held.
        names_held,
        /// Questions for names that crossed.
        names_crossed,
        /// Those of them that nobody waited for.
        names_ahead,
        /// Names for which no name server has answered.
        names_failed,
        /// Flows of datagrams that have begun.
        flows,
        /// Those of them that have ended.
        flows_ended,
        /// Times that ICMP has said of them that something does not arrive.
        flow_troubles,
    }
    tallies {
        /// Requests that crossed, by reason.
        crossed: Crossing,
        /// Requests answered, by where the answer came from.
        answered: AnsweredFrom,
        /// TLS connections that went through untouched although they might have been intercepted, by reason.
        bypassed: Bypass,
        /// Promises, by how they ended.
        promise_ends: PromiseEnd,
        /// Exchanges that failed, by the side that failed.
        failed: Side,
    }
}

/// One number.
#[derive(Debug, Default)]
pub(crate) struct Total(AtomicU64);

impl Total {
    // Counters order nothing between threads, so the cheapest ordering does.
    pub(crate) fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Relaxed);
    }

    fn value(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// One number for each word of a list.
#[derive(Debug)]
pub struct Tally<W: Word> {
    numbers: Box<[AtomicU64]>,
    words: PhantomData<W>,
}

impl<W: Word> Default for Tally<W> {
    fn default() -> Self {
        Tally { numbers: W::ALL.iter().map(|_| AtomicU64::new(0)).collect(), words: PhantomData }
    }
}

impl<W: Word> Tally<W> {
    pub(crate) fn add(&self, word: W) {
        self.numbers[word.index()].fetch_add(1, Relaxed);
    }

    fn value(&self, word: W) -> u64 {
        self.numbers[word.index()].load(Relaxed)
    }

    fn snapshot(&self) -> serde_json::Value {
        W::ALL.iter().map(|word| (word.as_str(), self.value(*word))).collect()
    }
}
