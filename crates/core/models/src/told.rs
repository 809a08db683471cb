//! What is known, for people: `farhop models` shows it.

use std::collections::BTreeMap;

use serde::Serialize;
use url::Url;

use crate::foresight::Means;
use crate::models::{Models, Of, Whose};
use crate::needs::{destination_word, mode_word};
use crate::pattern::{plain, template};

/// A model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToldModel {
    /// The user, or `null` for everyone's.
    pub user: Option<String>,
    /// The page, or what the URLs of its pages are like.
    pub page: String,
    /// It is of pages that are alike.
    pub template: bool,
    /// Visits that taught it; of a template: pages.
    pub visits: u32,
    /// Since the last of them.
    pub age_s: u64,
    /// Of what was sent of late before anyone asked: how many percent were used.
    pub used_percent: u8,
    /// Resources that fewer than three users have shown, which serve nobody.
    pub withheld: usize,
    /// What follows.
    pub resources: Vec<ToldResource>,
}

/// A resource of a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToldResource {
    /// Where it is.
    pub url: String,
    /// What it is used as.
    pub destination: &'static str,
    /// CORS mode and credentials.
    pub mode: &'static str,
    /// Of the last visits that showed whether it is asked for.
    pub visits: u32,
    /// Those that asked.
    pub asked: u32,
    /// How long after the page.
    pub delay_ms: u32,
    /// How sure it is.
    pub confidence_percent: u8,
    /// What the next visit does: push, promise, connect, or `null`.
    pub means: Option<&'static str>,
}

impl Models {
    /// The hosts of which pages are known, each with its number of models.
    pub fn hosts(&self) -> BTreeMap<String, usize> {
        let mut hosts = BTreeMap::new();
        for host in self.kept.keys().filter_map(|(_, of)| of.host()) {
            *hosts.entry(host).or_default() += 1;
        }
        hosts
    }

    /// What is known of pages of this host at `now`, in Unix seconds.
    pub fn told(&self, host: &str, now: u64) -> Vec<ToldModel> {
        self.told_where(|of| of.host().as_deref() == Some(host), now)
    }

    /// What is known of this page, and of pages like it, at `now`, in Unix seconds.
    pub fn told_of(&self, page: &Url, now: u64) -> Vec<ToldModel> {
        let (own, like) = (Of::Page(plain(page)), template(page).map(Of::Template));
        self.told_where(|of| *of == own || Some(of) == like.as_ref(), now)
    }

    fn told_where(&self, is_meant: impl Fn(&Of) -> bool, now: u64) -> Vec<ToldModel> {
        let meant = self.kept.iter().filter(|((_, of), _)| is_meant(of));
        let told = meant.map(|((whose, of), kept)| {
            let model = &kept.model;
            let shown = model.resources.iter().filter(|resource| resource.shown_by.is_none());
            let resources: Vec<_> = shown
                .map(|resource| {
                    let (visits, asked) = resource.history.counts();
                    let confidence = resource.confidence(now);
                    ToldResource {
                        url: resource.url.as_str().to_owned(),
                        destination: destination_word(resource.needs.destination),
                        mode: mode_word(resource.needs.mode),
                        visits,
                        asked,
                        delay_ms: resource.delay_ms,
                        confidence_percent: (confidence * 100.0) as u8,
                        means: resource.means(model.trust, now).map(Means::as_str),
                    }
                })
                .collect();
            ToldModel {
                user: match whose {
                    Whose::Own(user) => Some(user.to_string()),
                    Whose::All => None,
                },
                page: of.text().to_owned(),
                template: matches!(of, Of::Template(_)),
                visits: model.visits,
                age_s: now.saturating_sub(model.at),
                used_percent: model.trust,
                withheld: model.resources.len() - resources.len(),
                resources,
            }
        });
        told.collect()
    }
}
