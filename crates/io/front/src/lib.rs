//! HTTP/1 towards browsers: strict framing over httparse.
