//! The rows of part 3, "HTTPS and the live web", in the order of its "Must hold".

use crate::group::Group;
use crate::{certificates, clients, conformance, handshakes, live, packages, secure_pages};

/// All of them.
pub(crate) const GROUPS: [Group; 7] = [
    Group { name: "pages", measure: secure_pages::rows },
    Group { name: "packages", measure: packages::secure_rows },
    Group { name: "handshakes", measure: handshakes::rows },
    Group { name: "live", measure: live::rows },
    Group { name: "certificates", measure: certificates::rows },
    Group { name: "conformance", measure: conformance::rows },
    Group { name: "clients", measure: clients::rows },
];
