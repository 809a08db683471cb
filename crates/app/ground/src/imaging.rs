//! Where bodies are made small: the processor time it may take, the threads that code images, and the memory for them.
//! What is done is `farhop-squeeze`'s.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;
use std::time::Duration;

use bytes::Bytes;
use farhop_htotp::frame::Resume;
use farhop_netdev::cpu_time;
use farhop_settings::ground::SqueezeSettings;
use farhop_squeeze::{
    CpuBudget, Format, Load, MAX_PIXELS, PixelPace, Policy, Recipe, Recoded, is_worth_waiting, pixel_count,
    recode, text_level,
};
use farhop_units::{BitRate, Bytes as Length};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

use crate::manifest::Most;

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
    /// The best rendition that manifests may name; none where they stay as they are.
    pub(crate) most: Option<Most>,
}

/// See the module.
pub(crate) struct Squeezing {
    work: Arc<Mutex<Work>>,
    since: Instant,
    held: Semaphore,
    /// Thousands of pixels that may be decoded at a time.
    pixels: Arc<Semaphore>,
}

/// Processor time: what was used, and what was promised.
struct Work {
    budget: CpuBudget,
    pace: PixelPace,
    /// What images that were let in are expected to take, in all.
    reserved: Duration,
}

/// An image that was let in. What it will take is reserved as long as this lives.
pub(crate) struct Turn {
    work: Arc<Mutex<Work>>,
    reserved: Duration,
    rate: Option<BitRate>,
    /// Its bytes are worth waiting for until then: an origin slower than the hop makes images late, not small.
    pub(crate) collected_by: Instant,
    coded_by: Instant,
}

impl Turn {
    fn reserve(&mut self, expected: Duration) {
        let mut work = lock(&self.work);
        work.reserved = work.reserved.saturating_sub(self.reserved) + expected;
        self.reserved = expected;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.reserve(Duration::ZERO);
    }
}

impl Squeezing {
    /// With the budget of the settings, full.
    pub(crate) fn new(settings: &SqueezeSettings) -> Self {
        Squeezing {
            work: Arc::new(Mutex::new(Work {
                budget: CpuBudget::new(settings.cpu.fraction(), Duration::ZERO),
                pace: PixelPace::default(),
                reserved: Duration::ZERO,
            })),
            since: Instant::now(),
            held: Semaphore::new(HELD_KB as usize),
            pixels: Arc::new(Semaphore::new(all_pixels() as usize)),
        }
    }

    /// Puts the budget of new settings into force.
    pub(crate) fn set(&self, settings: &SqueezeSettings) {
        let now = self.since.elapsed();
        lock(&self.work).budget.set_share(settings.cpu.fraction(), now);
    }

    /// What may be done towards a link of this rate.
    pub(crate) fn means(&self, settings: &SqueezeSettings, rate: Option<BitRate>) -> Means {
        let now = self.since.elapsed();
        let mut work = lock(&self.work);
        let reserved = work.reserved;
        let load = work.budget.load_after(reserved, now);
        let level = settings.zstd_level.map_or_else(|| text_level(rate, load), |level| level as i32);
        Means { policy: settings.policy, level, load, most: None }
    }

    /// How much of the processor time that was saved up is used up: 1 is all of it.
    pub(crate) fn used(&self) -> f64 {
        lock(&self.work).budget.used(self.since.elapsed())
    }

    /// Does `work` and counts what it takes.
    pub(crate) fn counted<T>(&self, work: impl FnOnce() -> T) -> T {
        let begun = cpu_time();
        let done = work();
        self.charge(cpu_time() - begun);
        done
    }

    /// Work that was done elsewhere has taken so long.
    pub(crate) fn charge(&self, took: Duration) {
        lock(&self.work).budget.charge(took, self.since.elapsed());
    }

    /// Room and a turn for an image of this kind and length. `None`: there is no room, or it is not worth waiting for. An image
    /// whose beginning was delivered before (`begun`) is always worth it.
    pub(crate) async fn room(
        &self,
        from: Format,
        length: Option<u64>,
        rate: Option<BitRate>,
        begun: bool,
    ) -> Option<(SemaphorePermit<'_>, Turn)> {
        let now = Instant::now();
        let link_time = length.zip(rate).map(|(length, rate)| rate.time_for(Length(length)));
        let patience = link_time.map(|time| time.clamp(LEAST_WAIT, LONGEST_WAIT));
        let mut turn = Turn {
            work: Arc::clone(&self.work),
            reserved: Duration::ZERO,
            rate,
            collected_by: now + patience.unwrap_or(LEAST_WAIT),
            coded_by: now + patience.unwrap_or(LONGEST_WAIT),
        };
        if let Some(length) = length {
            let (expected, ahead) = {
                let work = lock(&self.work);
                (work.pace.time_for_file(from, length, self.since.elapsed()), work.reserved / cores())
            };
            if !begun && !is_worth_waiting(length, rate, ahead + expected) {
                return None;
            }
            turn.reserve(expected);
        }
        let kilobytes =
            length.map_or(UNKNOWN_KB, |length| length.div_ceil(1024)).min(u64::from(HELD_KB)) as u32;
        let permit = timeout_at(turn.collected_by, self.held.acquire_many(kilobytes)).await.ok()?.ok()?;
        Some((permit, turn))
    }

    /// Codes an image anew, on a thread for such work. `None`: it stays as it is, and is known to within the time that
    /// it is worth. With `resume` the result is the one that begins with what was delivered before, if there is one,
    /// however long it takes.
    pub(crate) async fn recode(
        &self,
        image: Bytes,
        recipe: Recipe,
        resume: Option<Resume>,
        mut turn: Turn,
    ) -> Option<Recoded> {
        let (from, pixels) = (Format::of(&image)?, pixel_count(&image)?);
        let expected = lock(&self.work).pace.time_for(from, pixels, self.since.elapsed());
        turn.reserve(expected);
        let Some(resume) = resume.filter(|resume| resume.offset > 0) else {
            let deadline = turn.coded_by;
            let in_time = is_worth_waiting(image.len() as u64, turn.rate, expected);
            let working = self.work(image, (from, pixels), recipe, Some(turn));
            return if in_time { timeout_at(deadline, working).await.ok()? } else { None };
        };
        if begins(&image, &resume) {
            return None;
        }
        // How much time there was then is not known now.
        for load in [Load::Light, Load::Heavy] {
            let recoded = self.work(image.clone(), (from, pixels), recipe.with_load(load), None).await;
            if let Some(recoded) = recoded.filter(|recoded| begins(&recoded.bytes, &resume)) {
                return Some(recoded);
            }
        }
        None
    }

    /// Codes it, however long it takes; `turn` ends with the work.
    async fn work(
        &self,
        image: Bytes,
        (from, pixels): (Format, u64),
        recipe: Recipe,
        turn: Option<Turn>,
    ) -> Option<Recoded> {
        // No more at a time than there are cores, and no more pixels than one of the largest images has.
        let share = (pixels.div_ceil(1000) as u32).max(all_pixels() / cores()).min(all_pixels());
        let permit = Arc::clone(&self.pixels).acquire_many_owned(share).await.ok()?;
        let (work, since) = (Arc::clone(&self.work), self.since);
        let working = tokio::task::spawn_blocking(move || {
            // It goes on when nobody waits any more, so what it takes is held and counted here.
            let _held = (permit, turn);
            let (begun, cpu) = (Instant::now(), cpu_time());
            let recoded = recode(&image, recipe);
            let (took, used) = (begun.elapsed(), cpu_time() - cpu);
            let (mut work, now) = (lock(&work), since.elapsed());
            // Others may have had the processor meanwhile: users have waited for that, too, but it was not used here.
            work.budget.charge(used, now);
            work.pace.learn(from, pixels, took, now);
            drop(work);
            recoded
        });
        match working.await {
            Ok(recoded) => {
                recoded.inspect_err(|kept| tracing::debug!("an image stays as it is: {kept}")).ok()
            }
            Err(panic) => {
                // A fault of a decoder must not cost the user the image.
                tracing::warn!("an image could not be coded anew: {panic}");
                None
            }
        }
    }
}

fn lock(work: &Mutex<Work>) -> MutexGuard<'_, Work> {
    work.lock().unwrap_or_else(PoisonError::into_inner)
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

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_settings::LocalSettings;

    #[tokio::test]
    async fn images_are_let_in_only_while_those_ahead_leave_time() {
        let settings: LocalSettings = farhop_settings::load(None, &[]).unwrap();
        let squeezing = Squeezing::new(&settings.ground.squeeze);
        let (length, rate) = (Some(200_000), Some(BitRate::mbit(20)));
        let mut turns = Vec::new();
        while let Some((_, turn)) = squeezing.room(Format::Jpeg, length, rate, false).await {
            turns.push(turn);
            assert!(turns.len() < 64 * cores() as usize, "all are let in");
        }
        assert!(!turns.is_empty());
        assert!(squeezing.room(Format::Jpeg, length, rate, true).await.is_some(), "what was begun goes on");
        turns.clear();
        assert!(
            squeezing.room(Format::Jpeg, length, rate, false).await.is_some(),
            "what was reserved is given back"
        );
        assert!(
            squeezing.room(Format::Jpeg, Some(1_850_000), rate, false).await.is_none(),
            "it would come later than as it is"
        );
    }
}
