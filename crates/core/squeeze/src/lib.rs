//! Content codings: streaming decoders and encoders.
