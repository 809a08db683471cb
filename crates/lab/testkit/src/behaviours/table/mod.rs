//! The behaviours: what an origin answers, one answer to each request that reaches it, the last to all that follow; what a client
//! asks, and what it has to get. By subject in the files beside.

mod freshness;
mod ranges;
mod requests;
mod storing;
mod targeted;
mod validation;

/// What reaches the origin at a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// Nothing: what is held answers.
    Idle,
    /// A request.
    Asked,
    /// A request with this line among its fields, lower case.
    AskedWith(&'static str),
    /// Now or later, perhaps.
    Any,
}

/// One request, and its answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub(super) method: &'static str,
    /// Who asks: the last number of the client's own address.
    pub(super) who: u8,
    pub(super) fields: &'static [(&'static str, &'static str)],
    pub(super) status: u16,
    pub(super) body: &'static str,
    pub(super) origin: Origin,
    /// A field that the answer has to have, and what has to stand in it; with an empty text, one that it must not have.
    pub(super) has: Option<(&'static str, &'static str)>,
}

/// What holds, and where that is said.
#[derive(Debug, Clone, Copy)]
pub(super) struct Behaviour {
    pub(super) section: &'static str,
    pub(super) name: &'static str,
    /// Status line's rest and fields, and body.
    pub(super) answers: &'static [(&'static str, &'static str)],
    pub(super) course: &'static [Step],
}

const fn get(status: u16, body: &'static str, origin: Origin) -> Step {
    Step { method: "GET", who: 1, fields: &[], status, body, origin, has: None }
}

impl Step {
    const fn with(self, fields: &'static [(&'static str, &'static str)]) -> Step {
        Step { fields, ..self }
    }

    const fn has(self, name: &'static str, text: &'static str) -> Step {
        Step { has: Some((name, text)), ..self }
    }

    const fn by(self, method: &'static str) -> Step {
        Step { method, ..self }
    }

    /// By another user.
    const fn other(self) -> Step {
        Step { who: 2, ..self }
    }
}

const fn it(
    section: &'static str,
    name: &'static str,
    answers: &'static [(&'static str, &'static str)],
    course: &'static [Step],
) -> Behaviour {
    Behaviour { section, name, answers, course }
}

/// All of them, by what they are about.
pub(super) fn all() -> impl Iterator<Item = &'static Behaviour> {
    let subjects = [freshness::ALL, requests::ALL, storing::ALL, validation::ALL, ranges::ALL, targeted::ALL];
    subjects.into_iter().flatten()
}
