//! The rows of part 2, "bundling made whole", in the order of its "Must hold".

use crate::group::Group;
use crate::{goals, histories, hostile_page, httpep, packages, speed};

/// All of them.
pub(crate) const GROUPS: [Group; 6] = [
    Group { name: "pages", measure: goals::rows },
    Group { name: "httpep", measure: httpep::rows },
    Group { name: "packages", measure: packages::rows },
    Group { name: "histories", measure: histories::rows },
    Group { name: "hostile page", measure: hostile_page::rows },
    Group { name: "speed", measure: speed::rows },
];
