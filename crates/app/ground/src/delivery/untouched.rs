//! What its origin coded as well as can be done here crosses so: mostly Brotli that was made ahead, and gzip where there is no time for
//! better. It is decoded all the same, to be read along, and everything but the bytes on the hop is that of the decoded text.

use bytes::{Bytes, BytesMut};
use farhop_htotp::frame::{Coding, Failure};
use farhop_squeeze::{BROTLI_WINDOW_LOG, Load};
use tokio::sync::SemaphorePermit;

use super::Flow;
use crate::treatment::Treatment;

/// What decoders of gzip hold (RFC 1951 §2).
const GZIP_WINDOW: usize = 32 * 1024;
/// From this zstd level on gzip is no match.
const BEYOND_GZIP: i32 = 4;
/// How much of the beginning of a text is coded here, too, to see who does it better; and what is too short to tell.
const SAMPLE: usize = 32 * 1024;
const LEAST_SAMPLE: usize = 1024;
/// What Brotli says at the beginning of all that follows, its codes, counts for so much: one part in 32.
const BEGINNING: usize = 32;

/// A body as its origin coded it.
pub(super) struct Untouched<'a> {
    coding: Coding,
    /// It is as small as what would be made of it here.
    is_as_good: bool,
    /// What is here of it and has yet to be queued.
    bytes: BytesMut,
    /// It streams so, and this counts what it takes to undo it.
    permit: Option<SemaphorePermit<'a>>,
}

impl Untouched<'_> {
    pub(super) fn new(coding: Coding) -> Self {
        Untouched { coding, is_as_good: false, bytes: BytesMut::new(), permit: None }
    }

    pub(super) fn coding(&self) -> Coding {
        self.coding
    }

    pub(super) fn gathered(&self) -> usize {
        self.bytes.len()
    }
}

impl Flow<'_> {
    /// Whether a look at its first bytes is worth while before it begins to stream: they show how well it is coded, and how much it takes
    /// to undo it.
    pub(super) fn has_to_show(&self) -> bool {
        self.untouched.as_ref().is_some_and(|untouched| match untouched.coding {
            Coding::Gzip => self.level < BEYOND_GZIP && self.load != Load::Spent,
            _ => true,
        })
    }

    /// Keeps the coded bytes of what the source gave of late.
    pub(super) fn gather_untouched(&mut self) {
        if let Some(untouched) = &mut self.untouched
            && let Some(coded) = self.source.take_coded()
        {
            untouched.bytes.extend_from_slice(&coded);
        }
    }

    /// Compares what is here of it as it was coded with what would be made of it here.
    pub(super) fn compare_untouched(&mut self, beginning: &[u8]) {
        let (squeezing, level) = (&self.ground.squeezing, self.level);
        let Some(untouched) = &mut self.untouched else { return };
        let sample = &beginning[..beginning.len().min(SAMPLE)];
        if sample.len() < LEAST_SAMPLE || self.load == Load::Spent {
            untouched.is_as_good = untouched.coding == Coding::Brotli;
            return;
        }
        let Ok(made) = squeezing.counted(|| farhop_squeeze::compress(sample, level)) else { return };
        untouched.is_as_good = is_as_good(
            untouched.coding,
            (untouched.bytes.len(), beginning.len()),
            (made.len(), sample.len()),
        );
    }

    /// Whether it may stream so. Where there is no time, what is coded already costs none.
    pub(super) fn is_as_good_untouched(&self) -> bool {
        self.untouched.as_ref().is_some_and(|untouched| untouched.is_as_good || self.load == Load::Spent)
    }

    /// Lets what is going to stream do so as its origin coded it, if remotes have room for that.
    pub(super) fn stays_untouched(&mut self) -> bool {
        let ground = self.ground;
        let kilobytes = self.undoable_window().map(|window| window.div_ceil(1024) as u32);
        let permit = kilobytes.and_then(|kilobytes| ground.untouched.try_acquire_many(kilobytes).ok());
        if let Some(untouched) = &mut self.untouched {
            untouched.permit = permit;
        }
        self.is_untouched()
    }

    /// Whether it streams as its origin coded it.
    pub(super) fn is_untouched(&self) -> bool {
        self.untouched.as_ref().is_some_and(|untouched| untouched.permit.is_some())
    }

    /// The coding that its origin gave it is undone for good.
    pub(super) fn touch(&mut self) {
        self.untouched = None;
        self.source.forget_coded();
    }

    /// All of it as its origin coded it, where that is what is delivered.
    pub(super) fn whole_untouched(&mut self) -> Option<(Coding, Bytes)> {
        self.gather_untouched();
        let is_undoable = self.undoable_window().is_some();
        let Untouched { coding, bytes, .. } = self.untouched.take()?;
        let is_same = matches!(self.treatment, Treatment::Recode(_));
        (is_undoable && is_same).then(|| (coding, bytes.freeze()))
    }

    /// Queues what is here of a body that streams as its origin coded it.
    pub(super) fn pass_untouched(&mut self) -> Result<(), Failure> {
        self.gather_untouched();
        match &mut self.untouched {
            Some(untouched) if untouched.permit.is_some() && !untouched.bytes.is_empty() => {
                let bytes = untouched.bytes.split().freeze();
                self.enqueue(bytes)
            }
            _ => Ok(()),
        }
    }

    /// Bytes over which it refers back, where that is known and remotes have room for it.
    fn undoable_window(&self) -> Option<usize> {
        match self.untouched.as_ref()?.coding {
            Coding::Gzip => Some(GZIP_WINDOW),
            _ => Some(self.source.window()).filter(|window| (1..=1 << BROTLI_WINDOW_LOG).contains(window)),
        }
    }
}

/// Whether so many coded bytes for so many decoded ones are as few as what was made here of some.
fn is_as_good(coding: Coding, (coded, decoded): (usize, usize), (made, sample): (usize, usize)) -> bool {
    let made = if coding == Coding::Brotli { made + made / BEGINNING } else { made };
    coded * sample <= made * decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_coded_worse_than_here_is_told_by_its_beginning() {
        let made = (10_000, 32_768);
        for (coding, coded, expected) in [
            (Coding::Brotli, 9_000, true),
            (Coding::Brotli, 10_300, true),
            (Coding::Brotli, 10_400, false),
            (Coding::Gzip, 10_000, true),
            (Coding::Gzip, 10_001, false),
        ] {
            assert_eq!(is_as_good(coding, (coded, 32_768), made), expected, "{coding:?} {coded}");
            assert_eq!(is_as_good(coding, (3 * coded, 3 * 32_768), made), expected);
        }
    }
}
