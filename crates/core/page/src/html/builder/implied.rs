//! What an element closes that its author left open, and opens that its author left out (HTML, §13.2.6.3, §13.2.6.4.7 and
//! §13.2.6.4.9 to 14).

use super::super::names::{Kind, Name, name};
use super::{Builder, TEMPLATE};
use crate::tree::Tree;

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
            TD | TH => self.close_within(&[TD, TH, CAPTION, COLGROUP], name("table")),
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

    /// Opens the parts of a table that an HTML start tag implies: `<tbody>` around a row, a row around a cell.
    pub(super) fn begin_implied(&mut self, tree: &mut Tree, kind: Kind) {
        const TABLE: Name = name("table");
        const TR: Name = name("tr");
        const TD: Name = name("td");
        const TH: Name = name("th");
        const SECTIONS: [Name; 3] = [name("tbody"), name("thead"), name("tfoot")];
        const OTHERS: [Name; 3] = [TD, TH, name("caption")];
        let is_cell = matches!(kind.name, TD | TH);
        if !(is_cell || kind.name == TR) || self.is_inert() {
            return;
        }
        let around = self.stack.iter().rposition(|open| {
            let of = |names: &[Name]| names.contains(&open.kind.name);
            open.kind == TEMPLATE || of(&[TABLE, TR]) || of(&SECTIONS) || of(&OTHERS)
        });
        let Some(around) = around else { return };
        let inner = self.stack[around].kind.name;
        let (in_table, in_section) = (inner == TABLE, SECTIONS.contains(&inner));
        if in_table || in_section || (is_cell && inner == TR) {
            // Such as a form that stands among the rows ("clear the stack back to a table context").
            self.pop_to(around + 1);
        }
        if in_table {
            self.open_implied(tree, "tbody");
        }
        if is_cell && (in_table || in_section) {
            self.open_implied(tree, "tr");
        }
    }

    fn close_item(&mut self, items: &[Name]) {
        if !items.iter().any(|&item| self.may_be_open(item)) {
            return;
        }
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
        if !items.iter().any(|&item| self.may_be_open(item)) {
            return;
        }
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
        if self.may_be_open(which)
            && let Some(depth) = self.in_scope(|open| open.name == which, true)
        {
            self.pop_to(depth);
        }
    }

    pub(super) fn end_formatting(&mut self, which: Name) {
        if !self.may_be_open(which) {
            return;
        }
        let Some(depth) = self.in_scope(|open| open.name == which, false) else { return };
        // A block within it stays open (what the adoption agency does, but for the copies it makes).
        let holds_block = self.stack[depth + 1..].iter().any(|open| open.kind.groups.ends_paragraph());
        if holds_block {
            self.remove(depth);
        } else {
            self.pop_to(depth);
        }
    }
}
