//! The order of cascade layers (CSS Cascade 5, §6.4.2).

use std::collections::HashMap;

/// Parts of a layer's name that are told apart.
const MAX_PARTS: usize = 16;

/// The rank of styles in no layer, above all that are.
pub(super) const UNLAYERED: u32 = u32::MAX;

/// Ranks layers given by full name (`a.b`) in the order in which the page first names them; higher wins. A layer ranks
/// above the layers within it.
pub(super) fn rank<'a>(names: impl Iterator<Item = &'a str>) -> HashMap<Box<str>, u32> {
    let mut known: HashMap<Box<str>, usize> = HashMap::new();
    // Children in order, by number; 0 is the root.
    let mut children: Vec<Vec<usize>> = vec![Vec::new()];
    let mut full: Vec<Box<str>> = vec!["".into()];
    for name in names {
        let mut parent = 0;
        for (end, _) in name.match_indices('.').chain([(name.len(), "")]).take(MAX_PARTS) {
            let path = &name[..end];
            parent = *known.entry(path.into()).or_insert_with(|| {
                children.push(Vec::new());
                full.push(path.into());
                children[parent].push(full.len() - 1);
                full.len() - 1
            });
        }
    }
    let mut ranks = HashMap::new();
    let mut walk = vec![(0, 0)];
    while let Some((layer, child)) = walk.pop() {
        if let Some(&next) = children[layer].get(child) {
            walk.push((layer, child + 1));
            walk.push((next, 0));
        } else {
            ranks.insert(full[layer].clone(), ranks.len() as u32);
        }
    }
    ranks
}

/// The full name of `inner` within `outer`.
pub(super) fn within(outer: Option<&str>, inner: &str) -> Box<str> {
    match outer {
        Some(outer) => format!("{outer}.{inner}").into(),
        None => inner.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_layers_win_and_a_layer_wins_over_what_it_contains() {
        let ranks = rank(["base", "theme.dark", "base.inner", "theme", "late"].into_iter());
        let mut order: Vec<&str> = ranks.keys().map(|name| &**name).filter(|name| !name.is_empty()).collect();
        order.sort_by_key(|name| ranks[*name]);
        assert_eq!(order, ["base.inner", "base", "theme.dark", "theme", "late"]);
    }
}
