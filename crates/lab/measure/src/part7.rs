//! The rows of part 7, "the link manager", as far as they are measured here.

use crate::calls;
use crate::group::Group;

/// All of them.
pub(crate) const GROUPS: [Group; 2] =
    [Group { name: "calls", measure: calls::rows }, Group { name: "admission", measure: calls::admission }];
