//! What an element closes that its author left open (HTML, §13.2.6.3 and §13.2.6.4.7).

use super::super::names::{self, Name, name};
use super::{Builder, TEMPLATE};

impl Builder {
    /// Closes what an HTML start tag closes.
    pub(super) fn end_implied(&mut self, which: Name) {
        const LI: Name = name("li");
        const DD: Name = name("dd");
        const DT: Name = name("dt");
        const OPTION: Name = name("option");
        const OPTGROUP: Name = name("optgroup");
        const TR: Name = name("tr");
        const TD: Name = name("td");
        const TH: Name = name("th");
        const TBODY: Name = name("tbody");
        const THEAD: Name = name("thead");
        const TFOOT: Name = name("tfoot");
        const CAPTION: Name = name("caption");
        const COLGROUP: Name = name("colgroup");
        const BUTTON: Name = name("button");
        const A: Name = name("a");
        const RT: Name = name("rt");
        const RP: Name = name("rp");
        match which {
            LI => self.close_item(&[LI]),
            DD | DT => self.close_item(&[DD, DT]),
            OPTION => self.close_current(&[OPTION]),
            OPTGROUP => self.close_current(&[OPTION, OPTGROUP]),
            TD | TH => self.close_within(&[TD, TH], name("table")),
            TR => self.close_within(&[TR, CAPTION, COLGROUP], name("table")),
            TBODY | THEAD | TFOOT | CAPTION | COLGROUP => {
                self.close_within(&[TBODY, THEAD, TFOOT, CAPTION, COLGROUP], name("table"));
                self.close_within(&[TR], name("table"));
            }
            BUTTON => self.close_in_scope(BUTTON),
            A => self.end_formatting(A),
            RT | RP => self.close_current(&[RT, RP]),
            _ => {}
        }
        if names::ends_paragraph(which) {
            self.close_in_scope(name("p"));
            if names::is_heading(which) && self.stack.last().is_some_and(|open| names::is_heading(open.name))
            {
                self.pop();
            }
        }
    }

    fn close_item(&mut self, items: &[Name]) {
        let open = self.stack.iter().rposition(|open| {
            items.contains(&open.name) || names::bounds_list_item(open.name) || open.name == TEMPLATE
        });
        if let Some(depth) = open.filter(|&depth| items.contains(&self.stack[depth].name)) {
            self.pop_to(depth);
        }
    }

    fn close_current(&mut self, items: &[Name]) {
        while self.stack.last().is_some_and(|open| items.contains(&open.name)) {
            self.pop();
        }
    }

    /// Closes the innermost of `items`, unless a `bound` or a template stands within it.
    fn close_within(&mut self, items: &[Name], bound: Name) {
        let open = self
            .stack
            .iter()
            .rposition(|open| items.contains(&open.name) || open.name == bound || open.name == TEMPLATE);
        if let Some(depth) = open.filter(|&depth| items.contains(&self.stack[depth].name)) {
            self.pop_to(depth);
        }
    }

    pub(super) fn in_scope(&self, matches: impl Fn(Name) -> bool, button: bool) -> Option<usize> {
        let bounds =
            |which| names::bounds_scope(which) || which == TEMPLATE || (button && which == name("button"));
        let depth = self.stack.iter().rposition(|open| matches(open.name) || bounds(open.name))?;
        matches(self.stack[depth].name).then_some(depth)
    }

    pub(super) fn close_in_scope(&mut self, which: Name) {
        if let Some(depth) = self.in_scope(|open| open == which, true) {
            self.pop_to(depth);
        }
    }

    pub(super) fn end_formatting(&mut self, which: Name) {
        let Some(depth) = self.in_scope(|open| open == which, false) else { return };
        // A block within it stays open (what the adoption agency does, but for the copies it makes).
        let holds_block = self.stack[depth + 1..].iter().any(|open| names::ends_paragraph(open.name));
        if holds_block {
            self.stack.remove(depth);
        } else {
            self.pop_to(depth);
        }
    }
}
