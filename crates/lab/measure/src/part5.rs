//! The rows of part 5, "never send it twice", in the order of its "Must hold".

use crate::group::Group;
use crate::{behaviours, cached, evidence, histories, kills, scripted, start, visits};

/// All of them.
pub(crate) const GROUPS: [Group; 9] = [
    Group { name: "visits", measure: visits::rows },
    Group { name: "packages", measure: visits::package_rows },
    Group { name: "scripts", measure: scripted::rows },
    Group { name: "cached", measure: cached::rows },
    Group { name: "start", measure: start::rows },
    Group { name: "evidence", measure: evidence::rows },
    Group { name: "behaviours", measure: behaviours::rows },
    Group { name: "histories", measure: histories::rows },
    Group { name: "kills", measure: kills::rows },
];
