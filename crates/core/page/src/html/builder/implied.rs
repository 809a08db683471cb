//! What an element closes that its author left open (HTML, §13.2.6.3 and §13.2.6.4.7).

use super::super::names::{Kind, Name, name};
use super::{Builder, TEMPLATE};

impl Builder {
    /// Closes what an HTML start tag closes.
    pub(super) fn end_implied(&mut self, kind: Kind) {
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
        match kind.name {
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
        if kind.groups.ends_paragraph() {
            self.close_in_scope(name("p"));
            let heads = |kind: Kind| kind.groups.is_heading();
            if heads(kind) && self.stack.last().is_some_and(|open| heads(open.kind)) {
                self.pop();
            }
        }
    }

    fn close_item(&mut self, items: &[Name]) {
        let open = self.stack.iter().rposition(|open| {
            let open = open.kind;
            items.contains(&open.name) || open.groups.bounds_list_item() || open == TEMPLATE
        });
        if let Some(depth) = open.filter(|&depth| items.contains(&self.stack[depth].kind.name)) {
            self.pop_to(depth);
        }
    }

    fn close_current(&mut self, items: &[Name]) {
        while self.stack.last().is_some_and(|open| items.contains(&open.kind.name)) {
            self.pop();
        }
    }

    /// Closes the innermost of `items`, unless a `bound` or a template stands within it.
    fn close_within(&mut self, items: &[Name], bound: Name) {
        let open = self
            .stack
            .iter()
            .map(|open| open.kind)
            .rposition(|open| items.contains(&open.name) || open.name == bound || open == TEMPLATE);
        if let Some(depth) = open.filter(|&depth| items.contains(&self.stack[depth].kind.name)) {
            self.pop_to(depth);
        }
    }

    pub(super) fn in_scope(&self, matches: impl Fn(Kind) -> bool, button: bool) -> Option<usize> {
        let bounds = |open: Kind| {
            open.groups.bounds_scope() || open == TEMPLATE || (button && open.name == name("button"))
        };
        let depth = self.stack.iter().rposition(|open| matches(open.kind) || bounds(open.kind))?;
        matches(self.stack[depth].kind).then_some(depth)
    }

    pub(super) fn close_in_scope(&mut self, which: Name) {
        if let Some(depth) = self.in_scope(|open| open.name == which, true) {
            self.pop_to(depth);
        }
    }

    pub(super) fn end_formatting(&mut self, which: Name) {
        let Some(depth) = self.in_scope(|open| open.name == which, false) else { return };
        // A block within it stays open (what the adoption agency does, but for the copies it makes).
        let holds_block = self.stack[depth + 1..].iter().any(|open| open.kind.groups.ends_paragraph());
        if holds_block {
            self.stack.remove(depth);
        } else {
            self.pop_to(depth);
        }
    }
}
