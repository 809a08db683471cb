//! What browsers make nothing of, though it was fetched: what is said to be something else, and documents that say where they
//! may be shown.

use farhop_page::{Destination, Hint, Mode, is_script_type};
use http::{HeaderMap, header};

use crate::treatment::media_type;

/// Whether a response says where it may be framed or is sandboxed by itself. Whether this page may is left to the
/// browser.
pub(super) fn is_confined(fields: &HeaderMap) -> bool {
    let policies = fields.get_all(header::CONTENT_SECURITY_POLICY).into_iter();
    fields.contains_key(header::X_FRAME_OPTIONS)
        || policies.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split([',', ';'])).any(
            |directive| {
                let name = directive.split_ascii_whitespace().next().unwrap_or_default();
                ["frame-ancestors", "sandbox"].iter().any(|own| name.eq_ignore_ascii_case(own))
            },
        )
}

/// Whether browsers make nothing of what `hint` named, since it is said to be something else; `any_sheet` where the type of a
/// style sheet does not matter to the document.
pub(super) fn is_refused(hint: &Hint, fields: &HeaderMap, any_sheet: bool) -> bool {
    let kind = media_type(fields);
    let sniffed = fields.get(header::X_CONTENT_TYPE_OPTIONS).and_then(|value| value.to_str().ok());
    let nosniff = sniffed.is_some_and(|value| {
        value.split(',').next().is_some_and(|word| word.trim().eq_ignore_ascii_case("nosniff"))
    });
    match hint.destination {
        // HTML, "fetch a single module script"; Fetch, "should response to request be blocked due to nosniff".
        Destination::Script if hint.mode != Mode::NoCors || nosniff => !is_script_type(&kind),
        // Chromium takes a sheet without any type for one (recorded).
        Destination::Style => kind != "text/css" && (nosniff || !(any_sheet || kind.is_empty())),
        _ => false,
    }
}
