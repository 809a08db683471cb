//! Texts that go ahead of what they name. What a document names is fetched as soon as it is promised, and from an origin nearby or ground's
//! own store it may be here before the document is coded: in a carrier whose window is small as yet it would take the place of the
//! document's head, which then comes a round trip late. While a text is gathered, which may take long, it goes: the link has nothing
//! else to carry.

use std::sync::Arc;

use tokio::sync::watch;

/// How often a document is about to be answered.
#[derive(Debug, Clone)]
pub(super) struct Texts(Arc<watch::Sender<usize>>);

impl Default for Texts {
    fn default() -> Self {
        Texts(Arc::new(watch::Sender::new(0)))
    }
}

/// While it is held nothing is pushed that the document names.
#[derive(Debug)]
#[must_use]
pub(crate) struct Preceding(Texts);

impl Texts {
    /// It is about to be answered, until what this gives is dropped.
    pub(super) fn precede(&self) -> Preceding {
        self.0.send_modify(|texts| *texts += 1);
        Preceding(self.clone())
    }

    /// Completes when it is not.
    pub(super) async fn answered(&self) {
        // It cannot fail: the sender lives as long as this.
        let _ = self.0.subscribe().wait_for(|texts| *texts == 0).await;
    }
}

impl Drop for Preceding {
    fn drop(&mut self) {
        self.0.0.send_modify(|texts| *texts -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn what_a_document_names_is_pushed_when_it_is_answered_or_given_up() {
        let texts = Texts::default();
        assert!(texts.answered().now_or_never().is_some(), "it is not about to be");
        let (first, second) = (texts.precede(), texts.precede());
        let pushed = texts.answered();
        let mut pushed = std::pin::pin!(pushed);
        assert!(pushed.as_mut().now_or_never().is_none());
        drop(first);
        assert!(pushed.as_mut().now_or_never().is_none(), "the second is not");
        drop(second);
        assert!(pushed.as_mut().now_or_never().is_some());
    }
}
