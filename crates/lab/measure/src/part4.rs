//! The rows of part 4, "the transport", in the order of its "Must hold".

use crate::group::Group;
use crate::{carriers, hop, lossy_pages, simulation, split};

/// All of them.
pub(crate) const GROUPS: [Group; 10] = [
    Group { name: "downloads", measure: hop::downloads::rows },
    Group { name: "fresh", measure: hop::fresh::rows },
    Group { name: "loss", measure: hop::loss::rows },
    Group { name: "cut", measure: hop::cut::rows },
    Group { name: "tunnel", measure: hop::tunnel::rows },
    Group { name: "pages", measure: lossy_pages::rows },
    Group { name: "carriers", measure: carriers::rows },
    Group { name: "simulation", measure: simulation::rows },
    Group { name: "split", measure: split::rows },
    Group { name: "endurance", measure: split::sequence },
];
