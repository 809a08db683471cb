//! Where bodies are made small: the processor time it may take, the threads that code images, and the memory for them.
//! What is done is `farhop-squeeze`'s.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;
use std::time::Duration;

use bytes::Bytes;
use farhop_htotp::frame::Resume;
use farhop_settings::ground::SqueezeSettings;
use farhop_squeeze::{CpuBudget, Load, MAX_PIXELS, Policy, Recipe, Recoded, pixel_count, recode, text_level};
use farhop_units::BitRate;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

/// Images that are held whole, together; in KB.
const HELD_KB: u32 = 24 * 1024;
/// An image is waited for at least so long, and at most.
const LEAST_WAIT: Duration = Duration::from_millis(300);
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// What an image without a length is taken to have, in KB.
const UNKNOWN_KB: u64 = 512;

/// What may be done to a body at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Means {
    pub(crate) policy: Policy,
    /// zstd level for text; 0 for none.
    pub(crate) level: i32,
    pub(crate) load: Load,
}

/// See the module.
pub(crate) struct Squeezing {
    budget: Mutex<CpuBudget>,
    since: Instant,
    held: Semaphore,
    /// Thousands of pixels that may be decoded at a time.
    pixels: Arc<Semaphore>,
}

impl Squeezing {
    /// With the budget of the settings, full.
    pub(crate) fn new(settings: &SqueezeSettings) -> Self {
        Squeezing {
            budget: Mutex::new(CpuBudget::new(settings.cpu.fraction(), Duration::ZERO)),
            since: Instant::now(),
            held: Semaphore::new(HELD_KB as usize),
            pixels: Arc::new(Semaphore::new(all_pixels() as usize)),
        }
    }

    /// Puts the budget of new settings into force.
    pub(crate) fn set(&self, settings: &SqueezeSettings) {
        let now = self.since.elapsed();
        self.lock().set_share(settings.cpu.fraction(), now);
    }

    /// What may be done towards a link of this rate.
    pub(crate) fn means(&self, settings: &SqueezeSettings, rate: Option<BitRate>) -> Means {
        let now = self.since.elapsed();
        let load = self.lock().load(now);
        let level = settings.zstd_level.map_or_else(|| text_level(rate, load), |level| level as i32);
        Means { policy: settings.policy, level, load }
    }

    /// Does `work` and counts what it takes.
    pub(crate) fn counted<T>(&self, work: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let done = work();
        self.charge(begun.elapsed());
        done
    }

    /// Room for an image of this length, with the time until which it is worth waiting for its bytes: an origin slower
    /// than the hop makes images late, not small. `None`: there is no room, or no time.
    pub(crate) async fn room(
        &self,
        length: Option<u64>,
        rate: Option<BitRate>,
    ) -> Option<(SemaphorePermit<'_>, Instant)> {
        let link_time = length
            .zip(rate)
            .map(|(length, rate)| Duration::from_secs_f64(length as f64 * 8.0 / rate.0.max(1) as f64));
        let wait = link_time.unwrap_or(LEAST_WAIT).clamp(LEAST_WAIT, LONGEST_WAIT);
        let deadline = Instant::now() + wait;
        let kilobytes =
            length.map_or(UNKNOWN_KB, |length| length.div_ceil(1024)).min(u64::from(HELD_KB)) as u32;
        let permit = timeout_at(deadline, self.held.acquire_many(kilobytes)).await.ok()?.ok()?;
        Some((permit, deadline))
    }

    /// Codes an image anew, on a thread for such work. `None`: it stays as it is. With `resume` the result is the one
    /// that begins with what was delivered before, if there is one.
    pub(crate) async fn recode(
        &self,
        image: Bytes,
        recipe: Recipe,
        resume: Option<Resume>,
    ) -> Option<Recoded> {
        let Some(resume) = resume.filter(|resume| resume.offset > 0) else {
            return self.work(image, recipe).await;
        };
        if begins(&image, &resume) {
            return None;
        }
        // How much time there was then is not known now.
        for load in [Load::Light, Load::Heavy] {
            let recoded = self.work(image.clone(), recipe.with_load(load)).await;
            if let Some(recoded) = recoded.filter(|recoded| begins(&recoded.bytes, &resume)) {
                return Some(recoded);
            }
        }
        None
    }

    async fn work(&self, image: Bytes, recipe: Recipe) -> Option<Recoded> {
        let thousands = pixel_count(&image)?.div_ceil(1000) as u32;
        // No more at a time than there are cores, and no more pixels than one of the largest images has.
        let share = thousands.max(all_pixels() / cores()).min(all_pixels());
        let permit = Arc::clone(&self.pixels).acquire_many_owned(share).await.ok()?;
        let working = tokio::task::spawn_blocking(move || {
            // It goes on when nobody waits any more, so what it takes is held here.
            let _permit = permit;
            let begun = Instant::now();
            (recode(&image, recipe), begun.elapsed())
        });
        match working.await {
            Ok((recoded, took)) => {
                self.charge(took);
                recoded.inspect_err(|kept| tracing::debug!("an image stays as it is: {kept}")).ok()
            }
            Err(panic) => {
                // A fault of a decoder must not cost the user the image.
                tracing::warn!("an image could not be coded anew: {panic}");
                None
            }
        }
    }

    fn charge(&self, took: Duration) {
        let now = self.since.elapsed();
        self.lock().charge(took, now);
    }

    fn lock(&self) -> MutexGuard<'_, CpuBudget> {
        self.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn all_pixels() -> u32 {
    (MAX_PIXELS / 1000) as u32
}

fn cores() -> u32 {
    available_parallelism().map_or(1, |cores| cores.get() as u32)
}

fn begins(body: &[u8], resume: &Resume) -> bool {
    let delivered = usize::try_from(resume.offset).ok().and_then(|offset| body.get(..offset));
    delivered.is_some_and(|delivered| blake3::hash(delivered).as_bytes() == &resume.prefix)
}
