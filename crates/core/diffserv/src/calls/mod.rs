//! Calls: what one takes of the link with everything around its speech, and whether there is room for it.

mod admission;
mod codec;
mod rate;

pub use admission::{Admitted, Call, CallId, Calls, Gone, Kept, MOST_CALLS, Media, Offer, Refusal};
pub use codec::{Codec, UnknownCodec};
pub use rate::{Hop, Ip, NotWhole, packet, rate};
