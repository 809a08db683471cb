//! A client that needs a response sooner, or later, than it said when it asked.

use crate::h2::Order;
use http::HeaderValue;

/// What a client says of the priority of a response under way, in HTTP/2 (RFC 9218 §7.1). Over HTTP/1 there is no way to.
#[derive(Debug)]
pub struct Priorities(Option<Order>);

impl Priorities {
    pub(crate) fn new(order: Option<Order>) -> Self {
        Priorities(order)
    }

    /// The next Priority that it gives, the latest if it gave several; never resolves when none comes. Dropping the future
    /// loses nothing.
    pub async fn next(&mut self) -> HeaderValue {
        while let Some(order) = &mut self.0 {
            if order.changed().await.is_err() {
                self.0 = None;
            } else if let Some(priority) = order.borrow_and_update().clone() {
                return priority;
            }
        }
        std::future::pending().await
    }
}
