//! Streaming media on its way: a manifest is read whole and may be limited, a body whose play rate is known is sent as it plays.

use std::time::Duration;

use farhop_events::Event;
use farhop_streaming::{LARGEST_MANIFEST, limit};
use farhop_transport::hop::Sender;
use tokio::time::Instant;

use super::{End, Flow, Undelivered};
use crate::manifest::{Manifest, Most, describe};
use crate::treatment::Treatment;

/// How long a manifest is waited for; it goes on as it is where it takes longer.
const PATIENCE: Duration = Duration::from_secs(10);

impl Flow<'_> {
    /// Waits for the whole of a manifest, learns from it, and answers with what may be named of it.
    pub(super) async fn limit(&mut self, sender: &mut Sender) -> Result<Option<End>, Undelivered> {
        let Treatment::Manifest(manifest) = self.treatment.clone() else { return Ok(None) };
        self.treatment = match manifest.codings.as_slice() {
            [] => Treatment::Squeeze,
            codings => Treatment::Recode(codings.to_vec()),
        };
        let most = LARGEST_MANIFEST as usize;
        let (whole, ended) =
            self.collect(sender, most, (Instant::now() + PATIENCE, Duration::MAX), false).await?;
        let trailers = match ended {
            Some(Ok(trailers)) => trailers,
            Some(Err(failure)) => return self.deliver_cut(sender, whole, failure).await.map(Some),
            None => return Ok(self.begin_with(sender, whole).await),
        };
        if let Some(viewing) = &self.viewing {
            self.ground.streaming.note_manifest(viewing, manifest.form, &whole);
        }
        let limited = manifest.most.and_then(|most| self.without(&manifest, most, &whole));
        // Trailers speak of the origin's bytes.
        let (whole, trailers) = limited.map_or((whole, trailers), |limited| (limited, None));
        if self.prefix.is_some() {
            return Ok(Some(self.deliver_whole(sender, whole, trailers).await));
        }
        Ok(Some(self.answer_whole(sender, whole, trailers).await))
    }

    /// The manifest without what is beyond `most`, with a head of its own; nothing where it stays.
    fn without(&mut self, manifest: &Manifest, most: Most, whole: &[u8]) -> Option<bytes::Bytes> {
        let viewing = self.viewing.as_ref()?;
        let bus = &self.ground.bus;
        let (exchange, url) = (viewing.exchange, bus.url(viewing.url.as_str()));
        let form = manifest.form.as_str().to_owned();
        let limited = match limit(manifest.form, whole, most.rate) {
            Ok(limited) => limited,
            Err(left) => {
                bus.emit(Event::ManifestKept { exchange, url, form, why: left.to_string() });
                return None;
            }
        };
        let hash = blake3::hash(whole).to_hex();
        describe(&mut self.head, manifest, most, &limited, &hash[..16]);
        self.treatment = Treatment::Squeeze;
        bus.emit(Event::ManifestLimited {
            exchange,
            url,
            form,
            kept: limited.kept as u64,
            left_out: limited.left_out as u64,
            best_bps: limited.best.0,
            most_bps: most.rate.0,
            why: most.by.as_str().into(),
        });
        Some(limited.text.into())
    }

    /// How fast the body plays, where that is known before it comes.
    pub(super) fn find_pace(&mut self) {
        let Some(viewing) = &self.viewing else { return };
        let settings = &self.ground.settings().streaming;
        self.paced = self.ground.streaming.paced(viewing, &self.head.fields, settings);
        if self.paced.is_some() {
            self.film = None;
            self.tell_pace();
        }
    }

    /// Reads along until the body says how long it plays.
    pub(super) fn read_film(&mut self, bytes: &[u8]) {
        let (Some(viewing), true) = (&self.viewing, self.film.is_some()) else { return };
        let settings = &self.ground.settings().streaming;
        self.paced = self.ground.streaming.read(viewing, &mut self.film, bytes, settings);
        if self.paced.is_some() {
            self.tell_pace();
        }
    }

    fn tell_pace(&self) {
        if let (Some(viewing), Some(paced)) = (&self.viewing, &self.paced) {
            let (bus, exchange) = (&self.ground.bus, viewing.exchange);
            let url = bus.url(viewing.url.as_str());
            bus.emit(Event::MediaPaced { exchange, url, play_bps: paced.rate().0 });
        }
    }
}
