//! The question whether what a remote holds is still right, asked by ground before a browser does, and its answer as it
//! crosses. Pure: fields in, fields out.

use farhop_htotp::{RequestHead, ResponseHead};
use farhop_origin::strip_hop_by_hop;
use http::StatusCode;
use http::header::{self, HeaderMap};

use crate::mirror::Stale;
use crate::treatment::confirm_decoded;
use crate::variant;

/// The request that asks whether what is held is right for this one.
pub(crate) fn question(request: &RequestHead, stale: &Stale) -> RequestHead {
    let mut question = request.clone();
    stale.validators.make_conditional(&mut question.fields);
    question
}

/// The 304 to such a question, as it crosses: without what the remote knows anyway. It keeps its own `Via`.
pub(crate) fn answer(question: &RequestHead, stale: &Stale, mut fields: HeaderMap) -> ResponseHead {
    strip_hop_by_hop(&mut fields);
    fields.remove(header::VIA);
    let mut head = ResponseHead { status: StatusCode::NOT_MODIFIED, fields };
    confirm_decoded(&question.fields, &mut head);
    variant::confirm(&question.fields, &mut head);
    stale.validators.leave_out_of(&mut head.fields);
    head
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::written::{fields, request};
    use farhop_freshness::Validators;
    use http::HeaderValue;

    fn stale(tag: &'static str) -> Stale {
        let validators = Validators { tag: Some(HeaderValue::from_static(tag)), modified: None };
        Stale { entry: 7, validators }
    }

    #[test]
    fn a_304_crosses_with_nothing_but_what_it_changes() {
        let stale = stale("\"a\"");
        let question = question(&request("accept: */*"), &stale);
        assert_eq!(question.fields[header::IF_NONE_MATCH], "\"a\"");
        let said = fields("etag: \"a\" | connection: close | via: 1.1 other | cache-control: max-age=60");
        assert_eq!(answer(&question, &stale, said).fields, fields("cache-control: max-age=60"));
        let other = answer(&question, &stale, fields("etag: \"b\""));
        assert_eq!(other.fields, fields("etag: \"b\""), "the remote has to see that");
    }

    #[test]
    fn what_was_coded_anew_here_is_confirmed_by_the_origins_own_tag() {
        // Decoded on its way: its tag became weak.
        let stale = stale("W/\"a\"");
        let question = question(&request("accept: */*"), &stale);
        assert!(answer(&question, &stale, fields("etag: \"a\"")).fields.is_empty());
    }
}
