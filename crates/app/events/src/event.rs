//! The events, each declared once with what it counts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::counters::Counters;
use crate::declare::events;
use crate::exchange::ExchangeId;
use crate::words::{AnsweredFrom, Bypass, Crossing, Level, PromiseEnd, Side};

events! {
    /// A user's request was read.
    Debug RequestAccepted "request_accepted" {
        /// The exchange that begins.
        exchange: ExchangeId,
        /// Whose it is: the authenticated name, else the client's address.
        user: String,
        /// The method.
        method: String,
        /// The target, or `host:port` for CONNECT.
        url: String,
    } counts |counters| { counters.requests.add(1) }

    /// A request was sent across the long hop.
    Debug RequestCrossed "request_crossed" {
        /// The exchange.
        exchange: ExchangeId,
        /// The exchange of the document that it is for, as far as its `Referer` tells; its own for a document.
        page: Option<ExchangeId>,
        /// Why it could not be answered without.
        why: Crossing,
        /// The request field that differed, when `why` is `mismatch`.
        field: Option<String>,
    } counts |counters| { counters.requests_crossed.add(1); counters.crossed.add(*why) }

    /// An exchange came to its end and the user has the whole answer: the access log's line.
    Info Answered "answered" {
        /// The exchange that ends.
        exchange: ExchangeId,
        /// Whose it was.
        user: String,
        /// The method.
        method: String,
        /// The target.
        url: String,
        /// The status code.
        status: u16,
        /// Where the answer came from.
        from: AnsweredFrom,
        /// Body bytes given to the user.
        bytes: u64,
        /// Body bytes taken from the user.
        upload_bytes: u64,
        /// From the request head to the first byte of the answer.
        first_byte_ms: u64,
        /// From the request head to the end of the answer.
        total_ms: u64,
    } counts |counters| {
        counters.answered.add(*from);
        counters.bytes_to_users.add(*bytes);
        counters.bytes_from_users.add(*upload_bytes)
    }

    /// An exchange failed. When there was still time, the user got an error page with this status.
    Info Failed "failed" {
        /// The exchange that ends.
        exchange: ExchangeId,
        /// Whose it was.
        user: String,
        /// The method.
        method: String,
        /// The target.
        url: String,
        /// Which part of the way failed.
        side: Side,
        /// What went wrong, in words.
        error: String,
        /// The status of the error page; `null` when the answer had begun.
        status: Option<u16>,
        /// Body bytes that the user had by then.
        bytes: u64,
    } counts |counters| { counters.failed.add(*side); counters.bytes_to_users.add(*bytes) }

    /// Ground promised a response that was not asked for.
    Debug Promised "promised" {
        /// The promise, by its number on this carrier.
        promise: u64,
        /// The exchange of the document that needs it.
        page: ExchangeId,
        /// What is promised.
        url: String,
    } counts |counters| { counters.promised.add(1) }

    /// A promise came to its end.
    Debug PromiseEnded "promise_ended" {
        /// The promise.
        promise: u64,
        /// What was promised.
        url: String,
        /// How it ended.
        end: PromiseEnd,
        /// Body bytes that had arrived by then.
        bytes: u64,
        /// Those of them that nobody will use.
        wasted_bytes: u64,
    } counts |counters| {
        if *end == PromiseEnd::Used {
            counters.used.add(1);
        }
        counters.promise_ends.add(*end);
        counters.wasted_bytes.add(*wasted_bytes)
    }

    /// What was promised to a page is settled, and the page was left or nothing happened on it for ten seconds. What
    /// happens on an open page after that is told by another.
    Debug PageSettled "page_settled" {
        /// The exchange of the document.
        page: ExchangeId,
        /// Whose page it is.
        user: String,
        /// The document.
        url: String,
        /// Promises made to it.
        promised: u64,
        /// Those promises, by how they ended.
        ends: BTreeMap<String, u64>,
        /// Body bytes of promises that answered a request.
        used_bytes: u64,
        /// Body bytes of promises that nobody used.
        wasted_bytes: u64,
        /// Requests that crossed all the same, by the reason; `mismatch in FIELD` where a request field differed.
        crossed: BTreeMap<String, u64>,
    } counts |counters| { counters.pages_settled.add(1) }

    /// Less is fetched unasked for a page than it may need: to compare, or since more has made its site slower.
    Debug Restrained "restrained" {
        /// The exchange of the document.
        page: ExchangeId,
        /// The document.
        url: String,
        /// What is fetched all the same: `nothing`, or what is `named`.
        unasked: String,
    } counts |counters| { counters.restrained.add(1) }

    /// Loads of a site's pages were slower in the way that they were done than in another, in which they are done from now on.
    Info SiteJudged "site_judged" {
        /// Scheme and registrable domain.
        site: String,
        /// What was fetched unasked for its pages: `nothing`, what is `named`, or `all`.
        before: String,
        /// What is from now on.
        unasked: String,
        /// How much longer its pages took before.
        slower_percent: u64,
        /// Loads done as before that were compared.
        loads: u64,
        /// Loads done in the other way.
        others: u64,
    } counts |counters| { counters.sites_judged.add(1) }

    /// Under load, or since it is over, images for users of a remote go by another policy than before.
    Info PolicyMoved "policy_moved" {
        /// The remote, by its name in ground's settings.
        remote: String,
        /// The user, by the number that the remote gave; all of them where there is none.
        user: Option<u64>,
        /// The rule that moved them, by its place in ground's settings, from 0 on; where those have changed, in the ones before.
        rule: u64,
        /// Of what: `all`, what is `asked` for, or what is sent `unasked`.
        service: String,
        /// The policy before.
        before: String,
        /// The policy from now on.
        policy: String,
        /// Which load, and for how long.
        why: String,
    } counts |counters| { counters.policies_moved.add(1) }

    /// A manifest of streaming media crossed without the renditions that are too much.
    Info ManifestLimited "manifest_limited" {
        /// The exchange.
        exchange: ExchangeId,
        /// The manifest.
        url: String,
        /// HLS or DASH.
        form: String,
        /// Renditions that it names still.
        kept: u64,
        /// Renditions that it does not name any more.
        left_out: u64,
        /// The bit rate of the best that it names still.
        best_bps: u64,
        /// The most that a rendition may have, where it is not the least of its kind.
        most_bps: u64,
        /// Who says so.
        why: String,
    } counts |counters| { counters.manifests_limited.add(1) }

    /// A manifest of streaming media was left as it is, although there is a limit.
    Debug ManifestKept "manifest_kept" {
        /// The exchange.
        exchange: ExchangeId,
        /// The manifest.
        url: String,
        /// HLS or DASH.
        form: String,
        /// Why.
        why: String,
    } counts |counters| { counters.manifests_kept.add(1) }

    /// A body is sent as it plays from now on.
    Debug MediaPaced "media_paced" {
        /// The exchange.
        exchange: ExchangeId,
        /// The body.
        url: String,
        /// What it plays in a second.
        play_bps: u64,
    } counts |counters| { counters.media_paced.add(1) }

    /// Ground found a hint and did not follow it.
    Debug HintSkipped "hint_skipped" {
        /// The exchange of the document.
        page: ExchangeId,
        /// The resource.
        url: String,
        /// Why.
        why: String,
    } counts |counters| { counters.hints_skipped.add(1) }

    /// Ground began with what earlier visits say that a page needs, before the page's origin had answered.
    Debug PageForeseen "page_foreseen" {
        /// The exchange of the document.
        page: ExchangeId,
        /// The document.
        url: String,
        /// Resources that were promised and fetched.
        pushed: u64,
        /// Resources that were promised, and are fetched when they are asked for.
        promised: u64,
        /// Hosts to which connections were made.
        connected: u64,
    } counts |counters| {
        counters.pages_foreseen.add(1);
        counters.foreseen.add(*pushed + *promised)
    }

    /// A visit of a page is over, and what it asked for was learned.
    Debug VisitLearned "visit_learned" {
        /// Whose it was.
        user: String,
        /// The document.
        url: String,
        /// Resources that it asked for.
        asked: u64,
        /// Resources that were sent since earlier visits had asked for them.
        sent: u64,
        /// How many of these were used.
        used: u64,
    } counts |counters| {
        counters.visits_learned.add(1);
        counters.foreseen_sent.add(*sent);
        counters.foreseen_used.add(*used)
    }

    /// Ground has read a page to its end, frames, stylesheets and modules included.
    Debug PageRead "page_read" {
        /// The exchange of the document.
        page: ExchangeId,
        /// The document.
        url: String,
        /// Hints, by the mark-up that gave them.
        hints: BTreeMap<String, u64>,
        /// How many of them were promised.
        promised: u64,
        /// How many were not, by the reason.
        skipped: BTreeMap<String, u64>,
    } counts |counters| { counters.pages_read.add(1) }

    /// Ground asked an origin, before any browser did, whether what the remote holds is still right.
    Debug Validated "validated" {
        /// The exchange of the document.
        page: ExchangeId,
        /// The resource.
        url: String,
        /// Whether it is; else the new one is pushed.
        confirmed: bool,
    } counts |counters| { if *confirmed { counters.confirmed.add(1) } else { counters.outdated.add(1) } }

    /// Ground has a whole response from an origin.
    Debug Fetched "fetched" {
        /// The exchange it was fetched for; for a promise, that of its page.
        exchange: ExchangeId,
        /// Whether nobody had asked for it yet.
        unasked: bool,
        /// What was fetched.
        url: String,
        /// The status code.
        status: u16,
        /// Body bytes as the origin sent them.
        origin_bytes: u64,
        /// Body bytes as they crossed.
        crossed_bytes: u64,
        /// How many more it would have been had the body not been sent as what differs from one that the remote holds, or with a
        /// dictionary that it holds.
        spared_bytes: u64,
        /// Whether that was a dictionary.
        taught: bool,
        /// From the request to the end of the response.
        total_ms: u64,
    } counts |counters| {
        counters.fetches.add(1);
        if *taught {
            counters.bodies_taught.add(1);
            counters.bytes_spared_by_dictionaries.add(*spared_bytes);
        } else {
            counters.deltas.add(u64::from(*spared_bytes > 0));
            counters.bytes_spared_by_deltas.add(*spared_bytes);
        }
        counters.bytes_from_origins.add(*origin_bytes);
        counters.bytes_squeezed.add(origin_bytes.saturating_sub(*crossed_bytes));
        counters.bytes_grown.add(crossed_bytes.saturating_sub(*origin_bytes))
    }

    /// Ground has trained a dictionary on what an origin sends to anyone.
    Debug DictionaryTrained "dictionary_trained" {
        /// The origin.
        origin: String,
        /// Bodies that it was trained on.
        samples: u64,
        /// Its bytes.
        bytes: u64,
        /// Its bytes as it crosses.
        coded_bytes: u64,
    } counts |counters| { counters.dictionaries_trained.add(1) }

    /// A remote has asked for a dictionary that would have paid there by now.
    Debug DictionarySent "dictionary_sent" {
        /// The remote.
        peer: String,
        /// Bytes that crossed.
        bytes: u64,
    } counts |counters| { counters.dictionaries_sent.add(1) }

    /// Ground refused to connect to a destination.
    Info DestinationRefused "destination_refused" {
        /// The exchange.
        exchange: ExchangeId,
        /// The host as it was asked for.
        host: String,
        /// The address it stands for.
        address: String,
        /// Which rule refused it.
        why: String,
    } counts |counters| { counters.destinations_refused.add(1) }

    /// A tunnel was opened.
    Debug TunnelOpened "tunnel_opened" {
        /// The exchange.
        exchange: ExchangeId,
        /// The host as it was asked for.
        host: String,
        /// The port.
        port: u16,
    } counts |counters| { counters.tunnels.add(1) }

    /// Origin and client have agreed on a WebSocket.
    Debug WebsocketOpened "websocket_opened" {
        /// The exchange.
        exchange: ExchangeId,
        /// Whether it is a stream of a client's HTTP/2 connection (RFC 8441), and no connection of its own.
        within_http2: bool,
    } counts |counters| {
        counters.websockets.add(1);
        counters.websockets_within_http2.add(u64::from(*within_http2))
    }

    /// Ground connected to a host that usually follows the one that a client went to.
    Debug ConnectedAhead "connected_ahead" {
        /// The host.
        host: String,
        /// The port.
        port: u16,
    } counts |counters| { counters.connected_ahead.add(1) }

    /// A connection made ahead came to its end as such.
    Debug AheadEnded "ahead_ended" {
        /// The host.
        host: String,
        /// The port.
        port: u16,
        /// Whether a tunnel took it; else it was in vain.
        used: bool,
    } counts |counters| {
        if *used {
            counters.ahead_used.add(1);
        } else {
            counters.ahead_unused.add(1);
        }
    }

    /// A carrier is up: the ends know each other and exchanges can cross.
    Info CarrierUp "carrier_up" {
        /// The other end, by the name that the settings give it.
        peer: String,
        /// Its address.
        address: String,
        /// What it rides on: quic or tcp.
        over: String,
        /// Round trip of the handshake.
        round_trip_ms: u64,
        /// At the remote: requests could cross before ground had answered.
        early: bool,
    } counts |counters| { counters.carriers_up.add(1) }

    /// A carrier was lost.
    Warn CarrierDown "carrier_down" {
        /// The other end.
        peer: String,
        /// What was noticed.
        why: String,
        /// Exchanges that were under way.
        exchanges: u64,
    } counts |counters| { counters.carriers_down.add(1) }

    /// The other end gives no sign of life, though asked. What is under way waits, and goes on if it comes back.
    Warn CarrierSilent "carrier_silent" {
        /// The other end.
        peer: String,
    } counts |counters| { counters.carriers_silent.add(1) }

    /// A carrier that was silent is alive again, with all that was under way.
    Info CarrierBack "carrier_back" {
        /// The other end.
        peer: String,
        /// How long it was known to be silent.
        silent_ms: u64,
    } counts |_counters| {}

    /// An exchange went on after a lost carrier of which ground had kept nothing: it was asked for again.
    Info Resumed "resumed" {
        /// The exchange.
        exchange: ExchangeId,
        /// Bytes that the user already had, fetched again, compared and skipped.
        skipped_bytes: u64,
    } counts |counters| { counters.resumed.add(1) }

    /// An exchange or tunnel of a lost carrier goes on on another where it stopped, both ends having kept it.
    Info Rejoined "rejoined" {
        /// The exchange, or the tunnel.
        exchange: ExchangeId,
    } counts |counters| { counters.rejoined.add(1) }

    /// An exchange could not go on after a lost carrier, and its client was cut off.
    Warn Aborted "aborted" {
        /// The exchange.
        exchange: ExchangeId,
        /// Why going on would have risked a wrong byte.
        why: String,
    } counts |counters| { counters.aborted.add(1) }

    /// A peer was refused since its key is not in the settings.
    Warn StrangerRefused "stranger_refused" {
        /// Where it came from.
        address: String,
        /// Its public key, as the settings would name it.
        key: String,
    } counts |counters| { counters.strangers_refused.add(1) }

    /// A client was refused since its address is not in the settings.
    Info ClientRefused "client_refused" {
        /// Where it came from.
        address: String,
    } counts |counters| { counters.clients_refused.add(1) }

    /// A client gave a name or password that is not right.
    Warn LoginRefused "login_refused" {
        /// Where it came from.
        address: String,
        /// The name, where a user has it: else it may be a password in the wrong place.
        user: Option<String>,
        /// How many different ones it has tried without success.
        failures: u32,
    } counts |counters| { counters.logins_refused.add(1) }

    /// A TLS connection is looked into: the client took the remote's certificate.
    Debug Intercepted "intercepted" {
        /// The exchange of its CONNECT.
        exchange: ExchangeId,
        /// The host.
        host: String,
        /// The port.
        port: u16,
    } counts |counters| { counters.intercepted.add(1) }

    /// A connection goes through untouched although it might have been intercepted.
    Debug Bypassed "bypassed" {
        /// The exchange of its CONNECT.
        exchange: ExchangeId,
        /// The host.
        host: String,
        /// The port.
        port: u16,
        /// Why.
        why: Bypass,
        /// The built-in list that names it, or what was learned.
        detail: Option<String>,
    } counts |counters| { counters.bypassed.add(*why) }

    /// A host proved to be none for interception, and goes through untouched for a while.
    Info BypassLearned "bypass_learned" {
        /// The client that it is true for; `null` for all.
        client: Option<String>,
        /// The host.
        host: String,
        /// The port.
        port: u16,
        /// What was learned.
        lesson: String,
        /// How often it had to be.
        times: u32,
        /// How long it counts, in seconds.
        lasts_s: u64,
    } counts |counters| { counters.bypasses_learned.add(1) }

    /// A response, or a part of one, was put into the repository.
    Debug Stored "stored" {
        /// What is held.
        url: String,
        /// Its body's size.
        bytes: u64,
    } counts |counters| { counters.stored.add(1) }

    /// Ground answered from its own store in place of the origin.
    Debug FromStore "from_store" {
        /// The exchange, or that of the document for what is fetched unasked.
        exchange: ExchangeId,
        /// What was asked for.
        url: String,
        /// The origin was asked whether it is still right.
        validated: bool,
    } counts |counters| { counters.from_store.add(1) }

    /// A response was dropped from the repository.
    Debug Evicted "evicted" {
        /// What is no longer held.
        url: String,
        /// Its body's size.
        bytes: u64,
    } counts |counters| { counters.evicted.add(1) }

    /// A call was admitted, and a rate set aside for it.
    Info NewVoiceCall "new_voice_call" {
        /// The call's name.
        call: String,
        /// Its codec, where it is said.
        codec: Option<String>,
        /// What it holds in each direction, in bits/s.
        rate_bps: u64,
        /// What all calls hold with it.
        held_bps: u64,
        /// What there is for calls.
        share_bps: u64,
    } counts |counters| { counters.calls_admitted.add(1) }

    /// A call is over, and its rate is free again.
    Info VoiceCallRelease "voice_call_release" {
        /// The call's name.
        call: String,
        /// What it held in each direction, in bits/s.
        rate_bps: u64,
        /// Whether nobody has spoken for it in time; else it was released.
        lapsed: bool,
        /// What the others hold.
        held_bps: u64,
        /// What there is for calls.
        share_bps: u64,
    } counts |counters| {
        if *lapsed {
            counters.calls_lapsed.add(1);
        }
        counters.calls_released.add(1)
    }

    /// There was no room for a call.
    Info VoiceCallRefused "voice_call_refused" {
        /// The call's name.
        call: String,
        /// What it would have taken in each direction, in bits/s.
        rate_bps: u64,
        /// Why.
        reason: String,
    } counts |counters| { counters.calls_refused.add(1) }

    /// The rate of a link that changes was followed.
    Debug LinkRate "link_rate" {
        /// The device.
        interface: String,
        /// What is sent at from now on, in bits/s.
        shaped_bps: u64,
        /// Who says so: measured, granted, or the settings again.
        source: String,
    } counts |counters| { counters.link_rates.add(1) }

    /// What passed the ports of SIP was no message of a call that could be read.
    Debug SipIgnored "sip_ignored" {
        /// Datagrams since the last time that this was told.
        datagrams: u64,
    } counts |counters| { counters.sip_ignored.add(*datagrams) }

    /// A call talks that has no place among voice: both sides say where by the name of a host, which is not resolved.
    Info SipUnplaced "sip_unplaced" {
        /// Its `Call-ID`.
        call: String,
    } counts |counters| { counters.sip_unplaced.add(1) }

    /// The classes are in force at a device.
    Info LinkInForce "link_in_force" {
        /// The device.
        interface: String,
        /// What is sent at, in bits/s.
        shaped_bps: u64,
        /// What queues are made of: `fq_codel`, `sfq` or `bfifo`, whichever the kernel has.
        leaf: String,
    } counts |counters| { counters.links_in_force.add(1) }

    /// The classes are not in force at a device, or were changed by somebody and put back.
    Warn LinkLost "link_lost" {
        /// The device.
        interface: String,
        /// Why.
        reason: String,
    } counts |counters| { counters.links_lost.add(1) }

    /// The DNS component has answered a client.
    Debug NameAnswered "name_answered" {
        /// Whose question it was: the client's address.
        user: String,
        /// The name that was asked for.
        name: String,
        /// The type of record, by its number (RFC 1035 §3.2.2): 1 is A, 28 AAAA, 65 HTTPS.
        kind: u16,
        /// The response code (RFC 1035 §4.1.1): 0 no error, 2 nobody has answered, 3 no such name.
        code: u16,
        /// It was held, so that nothing crossed for it.
        held: bool,
        /// From the question to the answer.
        total_ms: u64,
    } counts |counters| {
        if *held {
            counters.names_held.add(1);
        }
        counters.names_answered.add(1)
    }

    /// A question of the DNS component was sent across the long hop.
    Debug NameCrossed "name_crossed" {
        /// Names it at both ends.
        exchange: ExchangeId,
        /// The name that is asked for.
        name: String,
        /// The type of record, by its number.
        kind: u16,
        /// Nobody waits for it: what is held is popular and about to run out.
        ahead: bool,
    } counts |counters| {
        if *ahead {
            counters.names_ahead.add(1);
        }
        counters.names_crossed.add(1)
    }

    /// Ground has found no name server that answers.
    Debug NameFailed "name_failed" {
        /// Names it at both ends.
        exchange: ExchangeId,
        /// The name that was asked for.
        name: String,
        /// The type of record, by its number.
        kind: u16,
        /// What went wrong, in words.
        error: String,
    } counts |counters| { counters.names_failed.add(1) }

    /// A flow of datagrams begins.
    Debug FlowOpened "flow_opened" {
        /// Names it at both ends.
        exchange: ExchangeId,
        /// Where it leads.
        to: String,
    } counts |counters| { counters.flows.add(1) }

    /// Of a flow's datagrams ICMP has said that they do not arrive.
    Debug FlowTrouble "flow_trouble" {
        /// Names it at both ends.
        exchange: ExchangeId,
        /// Where it leads.
        to: String,
        /// What was said.
        why: String,
    } counts |counters| { counters.flow_troubles.add(1) }

    /// A flow of datagrams has ended, since it carried nothing for long or cannot go on.
    Debug FlowEnded "flow_ended" {
        /// Names it at both ends.
        exchange: ExchangeId,
        /// Whose it was: the client's address.
        user: String,
        /// Where it led.
        to: String,
        /// Datagrams from the user.
        up: u64,
        /// Datagrams to the user.
        down: u64,
    } counts |counters| { counters.flows_ended.add(1) }
}
