//! However a page's bytes are cut on their way, it hints the same.

use crate::loading::load_in_pieces;
use proptest::prelude::*;
use std::collections::HashMap;

fn piece() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "<link rel=stylesheet href=a.css>",
        "<link rel=stylesheet href=b.css media=print>",
        "<style>.x{background:url(x.png)} p>b{background:url(pb.png)}</style>",
        "<style>@import 'c.css'; @font-face{font-family:F;src:url(f.woff2)} p{font-family:F}</style>",
        "<div class='x y' style='background:url(i.png)'>",
        "<p>text &mdash; m&amp;ore <b>bold</b> 5 < 6 & 7",
        "</div>",
        "<table><tr><td><img src=t.png><td class=x>c</table>",
        "<svg viewBox='0 0 1 1'><style>.x{fill:url(#a)}</style><use href=s.svg#u /><![CDATA[ <img src=no.png> ]]></svg>",
        "<script>var a = \"<img src=no.png>\", b = 'lit/eral.png'; /* import('no.js') */ import(`./d.js`)</script>",
        "<script><!-- <script>no</script> --></script>",
        "<script type=module>import x from './m.js'; export {y} from \"./n.js\" with {type: 'json'}; a / b / c</script>",
        "<script type=importmap>{\"imports\":{\"k\":\"./k.js\"}}</script>",
        "<!-- <img src=no.png> --!>",
        "<!DOCTYPE html>",
        "<template><img src=no.png></template>",
        "<textarea><img src=no.png></textarea>",
        "<img src='é.png' alt=\"a>b\" loading=lazy>",
        "<picture><source srcset='w.webp 1x' type=image/webp><img src=p.png></picture>",
    ])
}

proptest! {
    #[test]
    fn any_cut_of_a_page_gives_the_same_hints(pieces in prop::collection::vec(piece(), 0..12), size in 1usize..40) {
        let html = pieces.concat();
        let files = HashMap::from([
            ("dir/a.css", "@charset \"utf-8\"; @import 'c.css'; .y{background:url(y.png)} /* é */ .z{background:url(z.png)}"),
            ("dir/c.css", "b{background:url('b.png')} p::before{content:url(before.png)}"),
            ("dir/m.js", "import 'k'; const r = /[/'\"]import(\"no.js\")/g, t = `a${b(`./c.js`)}`; import('./t.js')"),
        ]);
        prop_assert_eq!(load_in_pieces(&html, &files, usize::MAX), load_in_pieces(&html, &files, size));
    }
}
