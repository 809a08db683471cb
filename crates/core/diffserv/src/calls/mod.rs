//! Calls: what one takes of the link with everything around its speech, whether there is room for it, and what of it goes first.

mod admission;
mod codec;
mod meter;
mod rate;

pub use admission::{Admitted, Call, CallId, Calls, Gone, Kept, MOST_CALLS, Media, Offer, Refusal};
pub use codec::{Codec, UnknownCodec};
pub use meter::{Meter, Metered, metered};
pub use rate::{Hop, Ip, NotWhole, packet, rate};
