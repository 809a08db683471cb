//! One load of a page through one variant, everything cold, measured at the browser, on the link, at the origins and in
//! Farhop's remote.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use farhop_report::{Accounts, Waterfall};
use farhop_testbed::{Fitness, Place, fit};
use farhop_workload::browser::{Order, PageLoad, THROWN_AWAY};
use farhop_workload::pages::Page;

use crate::bench::Bench;
use crate::books::Books;
use crate::browsing::browse;
use crate::check::{Checked, check};
use crate::ends::{Counters, Ends};
use crate::falls::waterfall;
use crate::origins::{self, looked_up_as};
use crate::peers::squid::SquidPair;
use crate::settle::{Seen, new_lines, quiet_link};
use crate::{CompareError, Variant};

/// What one load gave. Times in seconds.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) plt_s: Option<f64>,
    pub(crate) fcp_s: Option<f64>,
    pub(crate) ttfb_s: Option<f64>,
    pub(crate) last_s: Option<f64>,
    pub(crate) connections: u64,
    /// Bytes and packets, forward and return.
    pub(crate) bytes: [u64; 2],
    pub(crate) packets: [u64; 2],
    pub(crate) counters: Counters,
    /// What Farhop's ends told of it; none for direct loads.
    pub(crate) accounts: Option<Accounts>,
    pub(crate) waterfall: Waterfall,
    pub(crate) checked: Checked,
    pub(crate) seen: Seen,
    pub(crate) fitness: Fitness,
    /// How late packets left at the 99th percentile; none when the link itself broke.
    pub(crate) lateness: Option<Duration>,
    pub(crate) browser: Option<String>,
    pub(crate) errors: Vec<String>,
}

/// How loads are made.
pub(crate) struct Loader<'a> {
    pub(crate) bench: &'a Bench,
    pub(crate) timeout: Duration,
    /// Whether each load ends with a picture of the page.
    pub(crate) pictures: bool,
    log_read: u64,
    /// The last load, resource by resource.
    pub(crate) last: Option<Last>,
}

/// A load, resource by resource.
pub(crate) struct Last {
    pub(crate) load: PageLoad,
    /// As [`Books::unasked`].
    pub(crate) unasked: HashMap<String, Vec<bool>>,
    pub(crate) picture: Option<PathBuf>,
}

impl<'a> Loader<'a> {
    pub(crate) fn new(bench: &'a Bench, timeout: Duration) -> Loader<'a> {
        Loader { bench, timeout, pictures: false, log_read: 0, last: None }
    }

    /// Loads a page once.
    ///
    /// # Errors
    /// The browser or one of Farhop's ends could not be run, or the user wants to stop. A page that does not load is a
    /// result.
    pub(crate) fn load(&mut self, page: &Page, variant: Variant) -> Result<Measured, CompareError> {
        let mut way = Way::open(self.bench, variant)?;
        let measured = self.load_by(page, variant, &mut way, Place::Client)?;
        if let Way::Farhop(ends) = way {
            ends.stop();
        }
        Ok(measured)
    }

    /// Loads a page once by a way that is open, from `place`. What Farhop's ends count and tell is of this load alone.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub(crate) fn load_by(
        &mut self,
        page: &Page,
        variant: Variant,
        way: &mut Way,
        place: Place,
    ) -> Result<Measured, CompareError> {
        let before = match way {
            Way::Farhop(ends) => Some((ends.settled_counters(self.bench.stage())?, ends.told())),
            Way::Direct | Way::Squid(_) => None,
        };
        let hosts = origins::names(&self.bench.spec);
        let (_, log_read) = new_lines(self.bench.log(), self.log_read, &hosts)?; // what came in between
        let host = page.sites.first().map(|site| site.host.as_str()).unwrap_or_default();
        let picture = self.pictures.then(|| self.bench.folder.path().join("picture.png"));
        if let Some(picture) = &picture {
            let _ = std::fs::remove_file(picture); // that of the load before, if there was one
        }
        let order = Order {
            screenshot: picture.clone(),
            initiators: self.pictures,
            proxy: way.proxy().map(|proxy| proxy.to_string()),
            http2: variant.http2(),
            http3: if variant == Variant::DirectH3 { hosts_of(page) } else { Vec::new() },
            looked_up_as: looked_up_as(&self.bench.spec, variant),
            pauses: true,
            spki: Some(self.bench.ready.spki.clone()),
            authority: self.bench.trusted_for(variant),
            timeout: self.timeout,
            idle: Duration::from_millis(800) + self.bench.testbed.link().profile().rtt(),
            ..Order::new(format!("{}://{host}{}", variant.scheme(self.bench.tls), page.entry))
        };
        if way.proxy().is_some() {
            // A carrier that has just come up still finds out what packets its path takes; it is up for days, and that
            // is no part of a page.
            quiet_link(self.bench)?;
        }
        let prepared = self.bench.browser.prepare(&order)?;
        self.bench.testbed.link().take_record();
        let visited = browse(self.bench, prepared, place, self.timeout)?;
        let (mut load, record) = (visited.load, visited.record);
        if let Some(failure) = load.document_failure() {
            load.load_ms = None; // an error page is no page, however quickly it loads
            load.errors.insert(0, failure);
        }
        let (seen, log_read) = new_lines(self.bench.log(), log_read, &hosts)?;
        self.log_read = log_read;
        let stage = self.bench.stage();
        let (counters, books) = match way {
            Way::Farhop(ends) => {
                let (counted, told) = before.unwrap_or_default();
                let counters = ends.settled_counters(stage)?.since(counted);
                (counters, Some(ends.books(stage, &counters, told)?))
            }
            Way::Direct | Way::Squid(_) => {
                (Counters { requests_crossed: seen.requests, ..Counters::default() }, None)
            }
        };
        let (accounts, unasked) = match books {
            Some(Books { accounts, unasked }) => (Some(accounts), unasked),
            None => (None, HashMap::new()),
        };
        let seconds = |ms: Option<f64>| ms.map(|ms| (ms * 10.0).round() / 1e4); // a tenth of a millisecond is plenty
        let both = [record.forward.counters.sent, record.return_.counters.sent];
        let checked = check(&self.bench.sites, &load, variant.may_recode());
        if checked.unseen > 0 {
            load.errors.push(format!("{} resources not compared: {THROWN_AWAY}", checked.unseen));
        }
        let measured = Measured {
            plt_s: seconds(load.load_ms),
            fcp_s: seconds(load.first_paint_ms),
            ttfb_s: seconds(load.first_byte_ms),
            last_s: seconds(load.last_resource_ms()),
            connections: record.tcp_flows + record.udp_flows,
            bytes: both.map(|tally| tally.bytes.0),
            packets: both.map(|tally| tally.packets),
            counters,
            accounts,
            waterfall: waterfall(&load, &unasked),
            checked,
            seen,
            fitness: fit(&record),
            lateness: record.failure.is_none().then(|| record.p99_lateness()),
            browser: load.browser.clone(),
            errors: load.errors.clone(),
        };
        self.last = Some(Last { load, unasked, picture: picture.filter(|picture| picture.exists()) });
        Ok(measured)
    }

    /// Loads a page over link `none` with direct HTTP/2, for the limit, and puts the link back.
    pub(crate) fn load_over_none(&mut self, page: &Page) -> Result<Measured, CompareError> {
        let link = self.bench.testbed.link();
        let profile = link.profile();
        let none = farhop_orbit::Profile::named("none")
            .map_err(|error| CompareError::Arguments(error.to_string()))?;
        link.switch(&none);
        let measured = self.load(page, Variant::DirectH2);
        link.switch(&profile);
        measured
    }
}

/// What stands between browser and origins during a load.
pub(crate) enum Way {
    Direct,
    Farhop(Box<Ends>),
    Squid(SquidPair),
}

impl Way {
    pub(crate) fn open(bench: &Bench, variant: Variant) -> Result<Way, CompareError> {
        Ok(match variant {
            Variant::Squid => Way::Squid(SquidPair::start(bench.stage())?),
            variant if variant.is_farhop() => Way::Farhop(Ends::start(bench.stage(), variant)?.into()),
            _ => Way::Direct,
        })
    }

    /// Where the browser finds its proxy.
    fn proxy(&self) -> Option<SocketAddr> {
        match self {
            Way::Direct => None,
            Way::Farhop(ends) => Some(ends.proxy),
            Way::Squid(pair) => Some(pair.proxy),
        }
    }
}

fn hosts_of(page: &Page) -> Vec<String> {
    page.sites.iter().map(|site| site.host.clone()).collect()
}

#[cfg(test)]
impl Measured {
    /// A load with made-up numbers.
    pub(crate) fn sample(plt_s: f64, ok: u64, bad: usize) -> Measured {
        Measured {
            plt_s: Some(plt_s),
            fcp_s: None,
            ttfb_s: Some(0.7),
            last_s: Some(plt_s + 0.1),
            connections: 6,
            bytes: [(plt_s * 1000.0) as u64, 10],
            packets: [3, 2],
            counters: Counters { requests_crossed: 1, promised: 30, used: 29, ..Counters::default() },
            accounts: None,
            waterfall: Waterfall { load_s: Some(plt_s), ..Waterfall::default() },
            checked: Checked { ok, bad: vec!["wrong".into(); bad], ..Checked::default() },
            seen: Seen::default(),
            fitness: Fitness::Fit,
            lateness: Some(Duration::ZERO),
            browser: None,
            errors: Vec::new(),
        }
    }
}
