//! What the models foresee, begun as soon as a document is asked for: each resource through the same gates as a hint of
//! the page, and by how sure it is pushed, promised, or connected to.

use std::collections::BTreeSet;
use std::sync::Arc;

use farhop_bundle::{Decision, Eagerness, Noted, opens_page};
use farhop_events::Event;
use farhop_htotp::ResponseHead;
use farhop_models::{Foreseen, Means, Policies, User};
use farhop_page::{Destination, Hint, Initiator, Source};
use farhop_transport::hop::Sender;
use http::StatusCode;
use http::header::{self, HeaderMap, HeaderValue};
use tokio::time::Instant;
use url::Url;

use crate::bundle::is_held;
use crate::exchange::{Exchange, Opened};
use crate::owner::Known;
use crate::reading::{Decided, nonce};

/// Hosts to which connections are made for one page.
const MOST_CONNECTIONS: usize = 6;

/// What the models say of a page.
pub(crate) struct Foresight {
    page: Url,
    policies: Policies,
    foreseen: Vec<Foreseen>,
}

impl Exchange {
    /// If this asks for a page: begins with what earlier visits say that it needs, promised on `sender`, and notes that a
    /// visit begins. Gives the page as far as it is known by that.
    pub(crate) fn foresee(&self, known: &Arc<Known>, noted: &Noted, sender: &Sender) -> Option<Opened> {
        let foresight = self.visit()?;
        self.prepare(foresight, known, noted, sender)
    }

    /// If this asks for a page: notes that a visit begins, and gives what earlier ones say that it needs.
    pub(crate) fn visit(&self) -> Option<Foresight> {
        let ground = &self.carrier.ground;
        let settings = ground.settings();
        let is_page = opens_page(&self.request.method, &self.request.fields)
            && self.resume.is_none()
            && !self.request.is_of_its_connection()
            && !self.request.fields.contains_key(header::AUTHORIZATION);
        if !settings.models.enabled || !settings.bundle.enabled || !is_page {
            return None;
        }
        let page = self.request.resource()?;
        // Numbers mean nothing before the remote has said in which of its lives it gave them.
        let (epoch, number) = self.carrier.visitor(self.owner.user)?;
        let user = User { remote: Arc::clone(&self.carrier.remote), epoch, number };
        let now = Instant::now();
        let (policies, foreseen) = ground.models.begin(&self.owner, user, self.id, &page, now);
        Some(Foresight { page, policies, foreseen })
    }

    /// Begins with what is foreseen. Gives the page as far as it is known by that.
    pub(crate) fn prepare(
        &self,
        foresight: Foresight,
        known: &Arc<Known>,
        noted: &Noted,
        sender: &Sender,
    ) -> Option<Opened> {
        let Foresight { page, policies, foreseen } = foresight;
        if foreseen.is_empty() || self.eagerness != Eagerness::All {
            return None;
        }
        let ground = &self.carrier.ground;
        let head = ResponseHead { status: StatusCode::OK, fields: fields(&policies) };
        let nonce = nonce(&head.fields);
        let opened = self.open(&head, known, noted)?;
        let sheets: BTreeSet<&Url> = foreseen
            .iter()
            .filter(|one| one.needs.destination == Destination::Style)
            .map(|one| &one.url)
            .collect();
        let (mut decided, mut hosts) = (Vec::new(), BTreeSet::new());
        for one in &foreseen {
            let hint = hint(one, &sheets, nonce.clone());
            let Some(asks) = opened.reading.would_ask(&hint) else { continue };
            if opened.bundle.is_asked(&asks) {
                continue;
            }
            if is_held(&self.carrier, &self.owner, &asks) {
                ground.models.unseen(&self.owner, self.id, &one.url);
                let held = self.carrier.held_as(&self.owner, &asks);
                ground.models.held(&self.carrier.remote, held, one);
                continue;
            }
            let means = match one.means {
                // Whoever reads a sheet along begins with its first bytes: it is pushed, or left to the page.
                Some(Means::Promise) if one.needs.destination == Destination::Style => Some(Means::Connect),
                means => means,
            };
            match means {
                Some(Means::Push) => decided.push(opened.reading.foresee(hint, one, false)),
                Some(Means::Promise) => decided.push(opened.reading.foresee(hint, one, true)),
                Some(Means::Connect) if known.shows(&one.url) && !ground.origins.refuses(&one.url) => {}
                _ => continue,
            }
            if let (Some(host), Some(port)) = (one.url.host_str(), one.url.port_or_known_default()) {
                hosts.insert((one.url.scheme().to_owned(), host.to_owned(), port));
            }
        }
        let own = (page.scheme(), page.host_str(), page.port_or_known_default());
        hosts.retain(|(scheme, host, port)| own != (scheme.as_str(), Some(host.as_str()), Some(*port)));
        let fetched = |held_back: bool| {
            let of =
                |one: &&Decided| one.until_asked == held_back && matches!(one.decision, Decision::Fetch(..));
            decided.iter().filter(of).count() as u64
        };
        let (pushed, promised) = (fetched(false), fetched(true));
        let connected = hosts.len().min(MOST_CONNECTIONS) as u64;
        if pushed + promised + connected > 0 {
            let url = ground.bus.url(page.as_str());
            ground.bus.emit(Event::PageForeseen { page: self.id, url, pushed, promised, connected });
        }
        for (scheme, host, port) in hosts.into_iter().take(MOST_CONNECTIONS) {
            let (ground, owner) = (Arc::clone(ground), self.owner.clone());
            self.carrier.spawn(async move { ground.origins.prepare(&owner, &scheme, &host, port).await });
        }
        opened.bundle.add(&opened.reading, decided, sender);
        Some(opened)
    }
}

/// What the page's response said when it was last seen, as its fields.
fn fields(policies: &Policies) -> HeaderMap {
    let mut fields = HeaderMap::new();
    let all = [
        (header::REFERRER_POLICY, policies.referrer.as_slice()),
        (header::CONTENT_SECURITY_POLICY, policies.content.as_slice()),
    ];
    for (name, values) in all {
        for value in values.iter().filter_map(|value| HeaderValue::from_str(value).ok()) {
            fields.append(name.clone(), value);
        }
    }
    fields
}

/// What is foreseen, in the words of pages.
fn hint(one: &Foreseen, sheets: &BTreeSet<&Url>, nonce: Option<Box<str>>) -> Hint {
    let source = if one.own { Source::OwnVisits } else { Source::OthersVisits };
    let initiator = match &one.needs.initiator {
        None => Initiator::Document,
        Some(url) if sheets.contains(url) || url.path().ends_with(".css") => Initiator::Sheet(url.clone()),
        Some(url) => Initiator::Module(url.clone()),
    };
    let referrer_policy = one.needs.referrer_policy;
    let (needs, url) = (&one.needs, one.url.clone());
    Hint { initiator, nonce, referrer_policy, ..Hint::new(url, needs.destination, needs.mode, source) }
}
