//! How HTML becomes a tree, told in HTML: each element as its name within its parents.

use super::{Builder, Kind, Start, Token, Tokenizer, raw_text};
use crate::tree::{NodeId, Tree};

/// The tree of a document, as `name(children)`.
fn tree(html: &str) -> String {
    let mut tokenizer = Tokenizer::new(1000);
    tokenizer.feed(html);
    tokenizer.end();
    let mut builder = Builder::new(false);
    let mut tree = Tree::new(1000, 100_000);
    while let Some(token) = tokenizer.next() {
        let mut raw = None;
        match token {
            Token::Start(tag) => {
                let start = Start {
                    name: tag.name,
                    kind: Kind::of(tag.name),
                    self_closing: tag.self_closing,
                    shadow_root: false,
                    hidden: false,
                    below_fold: false,
                    attributes: tag.attributes(),
                };
                if builder
                    .start(&mut tree, start)
                    .is_some_and(|placed| placed.namespace == super::Namespace::Html)
                {
                    raw = raw_text(tag.name, Kind::of(tag.name));
                }
            }
            Token::End(name, _) => {
                builder.end(name, Kind::of(name));
            }
            Token::Text(text) if !text.trim().is_empty() => builder.text(&mut tree),
            _ => {}
        }
        tokenizer.foreign = builder.is_foreign();
        if let Some(raw) = raw {
            tokenizer.raw_text(raw);
        }
    }
    let mut children: Vec<Vec<NodeId>> = vec![Vec::new(); tree.len()];
    let mut roots = Vec::new();
    for at in 0..tree.len() as u32 {
        match tree.get(NodeId(at)).parent() {
            Some(parent) => {
                let siblings = &mut children[parent.0 as usize];
                assert_eq!(tree.get(NodeId(at)).previous(), siblings.last().copied(), "{html}");
                siblings.push(NodeId(at));
            }
            None => roots.push(NodeId(at)),
        }
    }
    roots.iter().map(|root| told(&tree, &children, *root)).collect::<Vec<_>>().join(" ")
}

fn told(tree: &Tree, children: &[Vec<NodeId>], node: NodeId) -> String {
    let name = tree.get(node).name();
    let inner: Vec<String> =
        children[node.0 as usize].iter().map(|child| told(tree, children, *child)).collect();
    if inner.is_empty() { name.to_owned() } else { format!("{name}({})", inner.join(" ")) }
}

#[test]
fn elements_hang_where_browsers_hang_them() {
    let cases = [
        ("<!doctype html><html><head><title>x</title></head><body><p>x</body></html>", "head(title) body(p)"),
        ("<title>x</title><p>x", "head(title) body(p)"),
        ("text", "body"),
        ("<link><meta><div></div><link>", "head(link meta) body(div link)"),
        ("<p>a<p>b<div>c</div>", "body(p p div)"),
        ("<p><b>a</b><i>b</i></p>", "body(p(b i))"),
        ("<ul><li>a<li>b<ul><li>c</ul><li>d</ul><p>", "body(ul(li li(ul(li)) li) p)"),
        ("<dl><dt>a<dd>b<dt>c</dl>", "body(dl(dt dd dt))"),
        ("<table><tr><td>a<td>b<tr><td>c</table><p>", "body(table(tbody(tr(td td) tr(td))) p)"),
        ("<table><td>a<th>b</table>", "body(table(tbody(tr(td th))))"),
        ("<table><thead><td>a<tfoot><tr><td>b", "body(table(thead(tr(td)) tfoot(tr(td))))"),
        ("<table><caption>a<tr><td><table><td>b", "body(table(caption tbody(tr(td(table(tbody(tr(td))))))))"),
        ("<table><colgroup><col><td>a", "body(table(colgroup(col) tbody(tr(td))))"),
        ("<table><form><tr><td>a<tr><td>b", "body(table(form tbody(tr(td) tr(td))))"),
        ("<p><tr><td>a<svg><td>", "body(p(tr(td(svg(td)))))"),
        ("<table><thead><tr><th>a<tbody><tr><td><p>b</table>", "body(table(thead(tr(th)) tbody(tr(td(p)))))"),
        (
            "<select><option>a<option>b<optgroup><option>c</select><p>",
            "body(select(option option optgroup(option)) p)",
        ),
        ("<div><span>a</div><p>b", "body(div(span) p)"),
        ("<div></span></b></p><p>x</div>", "body(div(p))"),
        ("<a>x<a>y</a>", "body(a a)"),
        ("<h1>a<h2>b</h2>", "body(h1 h2)"),
        ("<img><br><input><hr><p>", "body(img br input hr p)"),
        ("<div/><p>", "body(div(p))"),
        ("<svg><circle/><g><path/></g><title>x</title></svg><p>", "body(svg(circle g(path) title) p)"),
        ("<svg><foreignObject><div><img></div></foreignObject></svg>", "body(svg(foreignobject(div(img))))"),
        ("<svg><g><p>x", "body(svg(g) p)"),
        ("<template><div><p></div></template><p>", "head(template) body(p)"),
        ("<p><template><td></template><b>", "body(p(template b))"),
        ("<body><body class=x><p>", "body(p)"),
        ("<script><div></script><style><p></style><div>", "head(script style) body(div)"),
        ("<script><!--<script></script>--></script><div>", "head(script) body(div)"),
        ("<script><!-- </script><div>", "head(script) body(div)"),
        ("<!--><p><!---><i></i><!-- <b> --!><u></u><!-- x -- > -->", "body(p(i u))"),
        ("<?php <b> ?><p></3><i>", "body(p(i))"),
        ("a < b <p>", "body(p)"),
        ("<p title='>' a=\"</p>\" b=c>x</p >y<div>", "body(p div)"),
    ];
    for (html, expected) in cases {
        let whole = tree(html);
        let whole = whole.strip_prefix("html").unwrap_or(&whole);
        let inner = whole.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')).unwrap_or(whole);
        assert_eq!(inner, expected, "{html}");
    }
}
