//! What codes a text that streams: by itself, or against a text that the remote holds for as long as that takes fewer bytes.

use bytes::Bytes;
use farhop_htotp::frame::Coding;
use farhop_htotp::mirror::BodyHash;
use farhop_squeeze::{DeltaEncoder, Encoder, Load, SqueezeError};
use farhop_transport::hop::Sender;

use super::whole::LONG;
use super::{End, Flow};
use crate::bases::Base;
use crate::ground::ENCODERS;
use crate::imaging::Squeezing;
use crate::kin::Kin;
use crate::treatment::{Treatment, describe_decoded};

/// Encoders that one counts for which remembers a base, and for each megabyte of that.
const FOR_ONE: usize = 3;
const FOR_A_MEGABYTE: usize = 2;

/// See the module.
pub(super) enum Coder {
    Alone(Encoder),
    Against(BodyHash, Box<DeltaEncoder>),
}

impl Coder {
    pub(super) fn coding(&self) -> Coding {
        match self {
            Coder::Alone(_) => Coding::Zstd,
            Coder::Against(base, _) => Coding::Delta(*base),
        }
    }

    /// Whether it takes no more than an encoder that knows no base.
    pub(super) fn is_alone(&self) -> bool {
        match self {
            Coder::Alone(_) => true,
            Coder::Against(_, encoder) => encoder.is_alone(),
        }
    }

    /// What decodes to all that was put in so far.
    pub(super) fn chunk(&mut self, chunk: &[u8]) -> Result<Bytes, SqueezeError> {
        match self {
            Coder::Alone(encoder) => encoder.chunk(chunk),
            Coder::Against(_, encoder) => encoder.chunk(chunk),
        }
    }

    /// The end, and how many bytes fewer than by itself it has taken.
    pub(super) fn finish(self, rest: &[u8]) -> Result<(Bytes, usize), SqueezeError> {
        match self {
            Coder::Alone(encoder) => Ok((encoder.finish(rest)?, 0)),
            Coder::Against(_, encoder) => encoder.finish(rest),
        }
    }
}

impl Flow<'_> {
    /// Begins a text that will be streamed against what the remote holds, where what is here of it says that this saves enough;
    /// `None` where it does not, and nothing is answered yet.
    pub(super) async fn begin_against(&mut self, sender: &Sender, beginning: &Bytes) -> Option<Option<End>> {
        let is_text = matches!(self.treatment, Treatment::Squeeze | Treatment::Recode(_));
        let base = self.kin.as_ref().and_then(|kin| Kin::against(kin).base.clone())?;
        if !is_text
            || beginning.is_empty()
            || self.prefix.is_some()
            || self.load == Load::Spent
            || !sender.takes_chained_deltas()
        {
            return None;
        }
        // There is another way: nobody waits for room, and half of it stays for texts that have none.
        let permits = FOR_ONE + FOR_A_MEGABYTE * (base.body.len() >> 20);
        if self.ground.encoders.available_permits() < permits + ENCODERS / 2 {
            return None;
        }
        let permit = self.ground.encoders.try_acquire_many(permits as u32).ok()?;
        let hash = base.hash;
        // The head goes once this is coded; the rest of what is here follows as it is coded.
        let first = beginning.slice(..beginning.len().min(LONG));
        let rest = beginning.slice(first.len()..);
        let (encoder, coded) = delta_encoder(&self.ground.squeezing, base, first.clone(), self.level).await?;
        // What its origin coded so well is left for what is better by far: nothing tells what would be made of its rest.
        let untouched = self.untouched.as_ref().filter(|_| self.is_as_good_untouched());
        let share = |all: usize| all * first.len() / beginning.len();
        if untouched.is_some_and(|it| 2 * (coded.len() + BodyHash::LENGTH) > share(it.gathered())) {
            return None;
        }
        self.touch();
        if let Treatment::Recode(_) = self.treatment {
            describe_decoded(&mut self.head, None);
        }
        self.encoder = Some((Coder::Against(hash, Box::new(encoder)), permit));
        sender.answer(&self.head, Coding::Delta(hash), None);
        self.coded_ahead = first.len();
        // What it names is promised ahead of it.
        let mut taken = self.take_all(sender, first).await.and_then(|()| self.enqueue(coded));
        if taken.is_ok() {
            taken = self.take_all(sender, rest).await;
        }
        Some(taken.err().map(Err))
    }
}

async fn delta_encoder(
    squeezing: &Squeezing,
    base: Base,
    beginning: Bytes,
    level: i32,
) -> Option<(DeltaEncoder, Bytes)> {
    let is_long = base.body.len() + beginning.len() > LONG;
    let work = move || DeltaEncoder::begin(&base.body, &beginning, level, BodyHash::LENGTH);
    let begun = if is_long {
        let timed = move || {
            let begun = std::time::Instant::now();
            (work(), begun.elapsed())
        };
        let (begun, took) = tokio::task::spawn_blocking(timed).await.ok()?;
        squeezing.charge(took);
        begun
    } else {
        squeezing.counted(work)
    };
    begun.ok().flatten()
}
