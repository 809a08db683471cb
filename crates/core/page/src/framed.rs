//! Documents in the page's own text (`<iframe srcdoc>`): each is read by itself, and what it needs is the page's. Its style
//! sheets and scripts in files are hinted; what those name in turn is left to the browser.

use crate::context::Context;
use crate::document::Document;
use crate::hint::{Hint, PolicyKind};
use crate::markup::attributes::Attributes;
use crate::markup::{Mention, allows};
use crate::options::Options;

/// Documents within each other that are read.
const DEEPEST: u8 = 4;

/// Reads the document in the `srcdoc` of this element. Its URL is `about:srcdoc`, so that what it asks for is asked in the
/// page's name (HTML, "iframe srcdoc document"; Referrer Policy, "determine request's referrer").
pub(crate) fn read<A: Attributes + ?Sized>(mention: &Mention<'_, A>, context: &mut Context) {
    let text = mention.attributes.value("srcdoc").filter(|_| context.depth < DEEPEST);
    let Some(text) = text else { return };
    let scripting = context.options.scripting && allows(mention.attributes, "allow-scripts");
    let options = Options { default_icon: false, xml: false, scripting, ..context.options.clone() };
    let mut document = Document::new(&context.document, Some("utf-8"), options).within(context);
    let mut hints = document.html(text.as_bytes());
    hints.extend(document.html_end());
    // What a policy of its own forbids is not the page's to know.
    if document.policies().iter().any(|policy| policy.kind == PolicyKind::Content) {
        return;
    }
    context.sandboxes.take(document.sandboxes());
    for hint in document.take_held() {
        context.held.hold(Hint { offset: mention.offset, below_fold: true, ..hint });
    }
    for mut hint in hints {
        hint.offset = mention.offset;
        hint.below_fold |= mention.below_fold;
        context.add(hint);
    }
}
