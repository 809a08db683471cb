//! Whether what is fetched unasked helps: what `farhop_bundle`'s evidence says of each site, told of loads as they go, and what
//! follows from it for a document's request.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use farhop_bundle::{Eagerness, Evidence, Finding};
use farhop_events::{Bus, Event, ExchangeId};
use farhop_settings::remote::EvidenceSettings;
use serde_json::json;
use url::Url;

use crate::users::User;

/// Sites of which status tells.
const TOLD: usize = 50;

/// See the module.
pub(crate) struct Holdouts {
    evidence: Mutex<Evidence>,
    bus: Bus,
}

impl Holdouts {
    /// Nothing known yet; which loads are held out follows from `seed`.
    pub(crate) fn new(bus: Bus, seed: u64) -> Holdouts {
        Holdouts { evidence: Mutex::new(Evidence::new(seed)), bus }
    }

    fn lock(&self) -> MutexGuard<'_, Evidence> {
        self.evidence.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A load begins whose document is `page`. Gives how much ground is to fetch for it.
    pub(crate) fn begin(
        &self,
        settings: &EvidenceSettings,
        user: &User,
        page: ExchangeId,
        url: &Url,
        now: Duration,
    ) -> Eagerness {
        if !settings.enabled {
            return Eagerness::All;
        }
        let every = 100 / u64::from(settings.holdouts.0.max(1));
        let way = self.lock().begin(&user.name, page.0, url, every, now);
        if way != Eagerness::All {
            let (url, unasked) = (self.bus.url(url.as_str()), way.as_str().to_owned());
            self.bus.emit(Event::Restrained { page, url, unasked });
        }
        way
    }

    /// The load of `before`, whose document a redirect has led on, goes on as that of `page`. Gives how much ground is to fetch for
    /// it, as before; `None` where nothing is known of it.
    pub(crate) fn goes_on(&self, before: ExchangeId, page: ExchangeId) -> Option<Eagerness> {
        self.lock().goes_on(before.0, page.0)
    }

    /// How much ground is to fetch for `page`.
    pub(crate) fn way(&self, page: ExchangeId) -> Eagerness {
        self.lock().way(page.0).unwrap_or_default()
    }

    /// `exchange` begins, a request of the page whose document is `page`.
    pub(crate) fn asks(&self, exchange: ExchangeId, page: ExchangeId, now: Duration) {
        self.lock().asks(exchange.0, page.0, now);
    }

    /// It crosses.
    pub(crate) fn crosses(&self, exchange: ExchangeId) {
        self.lock().crosses(exchange.0);
    }

    /// It is for a page, which is answered from what is held, and ground does its part all the same.
    pub(crate) fn held(&self, exchange: ExchangeId) {
        self.lock().held(exchange.0);
    }

    /// It was not answered as it should have been.
    pub(crate) fn spoil(&self, exchange: ExchangeId) {
        self.lock().spoil(exchange.0);
    }

    /// It has ended.
    pub(crate) fn settled(&self, exchange: ExchangeId, now: Duration) {
        self.lock().settled(exchange.0, now);
    }

    /// Takes in what loads show that are over, and tells what changes by it.
    pub(crate) fn close(&self, now: Duration) {
        let findings = self.lock().close(now);
        for Finding { site, before, now, ratio, loads } in findings {
            self.bus.emit(Event::SiteJudged {
                site: site.to_string(),
                before: before.as_str().to_owned(),
                unasked: now.as_str().to_owned(),
                slower_percent: ((ratio - 1.0) * 100.0).round() as u64,
                loads: loads.0 as u64,
                others: loads.1 as u64,
            });
        }
    }

    /// What is known of the sites used last.
    pub(crate) fn status(&self) -> serde_json::Value {
        let known = self.lock().known(TOLD);
        let told = known.into_iter().map(|site| {
            let [nothing, named, all] = site.loads;
            json!({
                "site": &*site.site,
                "unasked": site.now.as_str(),
                "loads": { "nothing": nothing, "named": named, "all": all },
            })
        });
        told.collect()
    }
}
