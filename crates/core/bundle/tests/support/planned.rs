//! A plan as the page of one site makes it.

use farhop_bundle::{Budget, Cookies, Decision, Load, NeverUnasked, Plan, Skip, Unasked};
use farhop_page::Hint;
use http::header::{self, HeaderValue};
use url::Url;

use super::{at, fields, url};

pub fn page() -> Url {
    url("http://site.test/page")
}

/// A plan with what is known of the browser's cookies.
pub struct Planned {
    pub plan: Plan,
    pub cookies: Cookies,
}

impl Planned {
    pub fn decide(&mut self, hint: &Hint, never: &NeverUnasked) -> Decision {
        self.plan.decide(hint, never, &self.cookies, at(1))
    }

    pub fn only(&mut self, hint: &Hint) -> Result<Unasked, Skip> {
        match self.decide(hint, &NeverUnasked::new(1)) {
            Decision::Fetch(request, _) => Ok(request),
            Decision::Skip(why) => Err(why),
        }
    }
}

pub fn plan_of(
    url: &Url,
    agent: &str,
    request: &[(&str, &str)],
    response: &[(&str, &str)],
    budget: Budget,
) -> Planned {
    let mut request = fields(request);
    request.insert(header::USER_AGENT, HeaderValue::from_str(agent).unwrap());
    request.entry(header::ACCEPT).or_insert(HeaderValue::from_static("text/html,*/*;q=0.8"));
    request.insert(header::UPGRADE_INSECURE_REQUESTS, HeaderValue::from_static("1"));
    let response = fields(response);
    let mut cookies = Cookies::default();
    let noted = cookies.note_request(url, &request, at(0));
    cookies.note_response(&noted, url, &response, at(0));
    Planned { plan: Plan::new(Load::new(url.clone(), request, &response, &noted), budget), cookies }
}

pub fn plan(agent: &str, request: &[(&str, &str)], response: &[(&str, &str)], budget: Budget) -> Planned {
    plan_of(&page(), agent, request, response, budget)
}
