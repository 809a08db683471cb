//! The satellite path in virtual time: delay, rate, loss, queue.
