//! One response on its way to the remote: origin → decode → compare what was delivered before → scan and promise →
//! squeeze → spool → hop, in one task, so that promises stand ahead of the bytes that mention them and a slow hop holds
//! the origin back. It decides nothing about caching.

mod coder;
mod media;
mod stream;
mod untouched;
mod whole;

use bytes::BytesMut;
use farhop_htotp::ResponseHead;
use farhop_htotp::frame::{Coding, Failure, Resume};
use farhop_squeeze::Load;
use farhop_transport::hop::{Gone, Sender};
use farhop_units::BitRate;
use http::HeaderMap;
use tokio::sync::SemaphorePermit;

use crate::allowance::Share;
use crate::body::Source;
use crate::dictionaries::Sent;
use crate::failure;
use crate::ground::Shared;
use crate::kin::Kin;
use crate::manifest::describe_unread;
use crate::origins::OriginBody;
use crate::page::Page;
use crate::policies::Outlet;
use crate::prefix::{Mismatch, Prefix};
use crate::returning::Returning;
use crate::spool::Queue;
use crate::streaming::{Film, Paced, Viewing};
use crate::treatment::{Treatment, describe_decoded};
use coder::Coder;
use untouched::Untouched;

/// What is to be delivered.
pub(crate) struct Delivery<'a> {
    /// The end it passes through.
    pub(crate) ground: &'a Shared,
    /// To whom it goes.
    pub(crate) to: Outlet,
    /// What it is to texts that crossed before.
    pub(crate) kin: Option<Kin>,
    /// As it would be without treatment.
    pub(crate) head: ResponseHead,
    /// Fields of the request, as the client sent them.
    pub(crate) request: &'a HeaderMap,
    /// What happens to the body.
    pub(crate) treatment: Treatment,
    /// The body; `None` where the response has none.
    pub(crate) body: Option<OriginBody>,
    /// What the link carries; none where nothing limits it.
    pub(crate) rate: Option<BitRate>,
    /// What was delivered before the carrier was lost.
    pub(crate) resume: Option<Resume>,
    /// Reads along and promises.
    pub(crate) page: Option<Page>,
    /// What may still be sent unasked, for a push.
    pub(crate) share: Option<Share>,
    /// What will come back for it.
    pub(crate) returning: Returning,
    /// Whose player may have asked for it; none for what is sent unasked.
    pub(crate) viewing: Option<Viewing>,
}

/// How it went.
#[derive(Debug)]
pub(crate) struct Delivered {
    /// Body bytes from the origin.
    pub(crate) origin_bytes: u64,
    /// Body bytes to the hop.
    pub(crate) crossed_bytes: u64,
    /// How many more that would have been without what the remote holds.
    pub(crate) spared_bytes: u64,
    /// What is to be learnt from it, where it is whole.
    pub(crate) sent: Option<Sent>,
    /// It was coded with a trained dictionary.
    pub(crate) taught: bool,
    /// Why it is not whole.
    pub(crate) outcome: Result<(), Undelivered>,
}

impl Delivered {
    /// There was no body.
    fn empty(outcome: Result<(), Undelivered>) -> Delivered {
        Delivered { origin_bytes: 0, crossed_bytes: 0, spared_bytes: 0, sent: None, taught: false, outcome }
    }
}

/// Why a response did not arrive whole.
#[derive(Debug)]
pub(crate) enum Undelivered {
    /// Nobody wants it any more.
    Gone,
    /// The remote was told this.
    Failed(Failure),
}

impl From<Gone> for Undelivered {
    fn from(_: Gone) -> Self {
        Undelivered::Gone
    }
}

impl Delivery<'_> {
    /// Sends head and body, and ends `sender` as the body ended.
    pub(crate) async fn run(self, mut sender: Sender) -> Delivered {
        let Some(body) = self.body else {
            if self.resume.is_some_and(|resume| resume.offset > 0) {
                let failure = failure::mismatch(&Mismatch);
                sender.fail(failure.clone());
                let outcome = Err(Undelivered::Failed(failure));
                return Delivered::empty(outcome);
            }
            let mut head = self.head;
            match self.treatment {
                Treatment::Recode(_) => describe_decoded(&mut head, None),
                Treatment::Manifest(_) => describe_unread(&mut head.fields),
                Treatment::Pass | Treatment::Squeeze | Treatment::Image(_) => {}
            }
            sender.answer(&head, Coding::Identity, None);
            sender.finish(None);
            return Delivered::empty(Ok(()));
        };
        let mut source = match &self.treatment {
            Treatment::Recode(codings) => Source::new(body, codings),
            Treatment::Manifest(manifest) => Source::new(body, &manifest.codings),
            Treatment::Pass | Treatment::Squeeze | Treatment::Image(_) => Source::new(body, &[]),
        };
        // What resumes begins in the middle of what the origin coded.
        let untouched = self.treatment.of_origin().filter(|_| self.resume.is_none());
        let untouched = untouched.filter(|_| sender.takes_origins_codings()).map(Untouched::new);
        if untouched.is_some() {
            source.keep_coded();
        }
        let means = self.ground.means(self.rate);
        let mut flow = Flow {
            small: whole::small(self.rate),
            rate: self.rate,
            level: means.level.max(1),
            load: means.load,
            ground: self.ground,
            to: self.to,
            kin: self.kin,
            request: self.request,
            source,
            queue: self.ground.spool.queue(),
            treatment: self.treatment,
            resume: self.resume,
            prefix: self.resume.map(Prefix::new),
            page: self.page,
            share: self.share,
            returning: self.returning,
            film: self.viewing.as_ref().and_then(|_| Film::of(&self.head.fields)),
            paced: None,
            viewing: self.viewing,
            head: self.head,
            encoder: None,
            coded_ahead: 0,
            untouched,
            read_along: 0,
            gathered: BytesMut::new(),
            crossed: 0,
            spared: 0,
            sent: None,
            taught: false,
        };
        let outcome = flow.run(&mut sender).await;
        let (origin_bytes, crossed_bytes, spared_bytes) = (flow.source.received(), flow.crossed, flow.spared);
        let outcome = match outcome {
            Ok(trailers) => {
                sender.finish(trailers.as_ref());
                Ok(())
            }
            Err(Undelivered::Failed(failure)) => {
                sender.fail(failure.clone());
                Err(Undelivered::Failed(failure))
            }
            Err(Undelivered::Gone) => Err(Undelivered::Gone),
        };
        let (sent, taught) = (flow.sent.take().filter(|_| outcome.is_ok()), flow.taught);
        Delivered { origin_bytes, crossed_bytes, spared_bytes, sent, taught, outcome }
    }
}

/// How a body ended: with its trailers, or not whole.
type End = Result<Option<HeaderMap>, Failure>;

/// A body under way.
struct Flow<'a> {
    /// Bytes of a text that crosses in one go.
    small: u64,
    rate: Option<BitRate>,
    level: i32,
    load: Load,
    ground: &'a Shared,
    to: Outlet,
    kin: Option<Kin>,
    request: &'a HeaderMap,
    source: Source,
    queue: Queue,
    head: ResponseHead,
    treatment: Treatment,
    resume: Option<Resume>,
    prefix: Option<Prefix>,
    page: Option<Page>,
    share: Option<Share>,
    returning: Returning,
    viewing: Option<Viewing>,
    /// Read until it says how long it plays.
    film: Option<Film>,
    /// Sent as it plays.
    paced: Option<Paced>,
    encoder: Option<(Coder, SemaphorePermit<'a>)>,
    /// Bytes of its beginning that are coded already.
    coded_ahead: usize,
    /// What it may cross as, as its origin coded it.
    untouched: Option<Untouched<'a>>,
    /// Bytes that were read along before they are delivered.
    read_along: usize,
    /// Bytes for the encoder: together they become smaller. They wait only while more follow without a pause.
    gathered: BytesMut,
    crossed: u64,
    spared: u64,
    sent: Option<Sent>,
    taught: bool,
}

impl Flow<'_> {
    async fn run(&mut self, sender: &mut Sender) -> Result<Option<HeaderMap>, Undelivered> {
        if let Some(page) = &self.page {
            page.read_links(&self.head, sender);
        }
        self.find_pace();
        let end = match self.treatment {
            Treatment::Image(recipe) => self.remake(sender, recipe).await?,
            Treatment::Manifest(_) => self.limit(sender).await?,
            _ => match self.gathers() {
                Some(gathering) => self.gather(sender, gathering).await?,
                None => self.begin(sender).await,
            },
        };
        self.stream(sender, end).await
    }
}
