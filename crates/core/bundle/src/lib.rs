//! Turns hints into unasked requests, and decides which promise answers which request.
