//! The rows of part 7, "the link manager", as far as they are measured here.

use crate::group::Group;
use crate::{calls, classes, fairness, refusals};

/// All of them.
pub(crate) const GROUPS: [Group; 8] = [
    Group { name: "calls", measure: calls::rows },
    Group { name: "on-demand calls", measure: calls::on_demand },
    Group { name: "slow-link calls", measure: calls::slower },
    Group { name: "carried calls", measure: calls::carried },
    Group { name: "admission", measure: calls::admission },
    Group { name: "fairness", measure: fairness::rows },
    Group { name: "refusals", measure: refusals::rows },
    Group { name: "classes", measure: classes::rows },
];
