// A site for `crates/lab/testkit/corpora/heads/record.mjs` (see README.md here) whose pages show files by other elements than
// `<img>` and `<iframe>`: objects, embedded files, parts of SVG files.
const gif = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64');
const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><defs><g id="a"><rect width="9" height="9"/></g></defs><rect id="b" width="9" height="9"/></svg>';
const headers = { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store', 'set-cookie': 'own=1; Path=/' };
const sites_ = [];

function site(scheme) {
  const www = `${scheme}://www.parts.test`, far = `${scheme}://cdn.away.test`;
  const elements = (host, n) => `
<object data="${host}/object/${n}-typed.svg" type="image/svg+xml"></object><object data="${host}/object/${n}-bare.svg"></object>
<object data="${host}/object/${n}-typed.png" type="image/png"></object><object data="${host}/object/${n}-bare.png"><img src="${host}/object/${n}-instead.png"></object>
<object data="${host}/object/${n}-bare"></object>
<object data="${host}/object/${n}-typed.html" type="text/html"></object><object data="${host}/object/${n}-bare.html"></object>
<embed src="${host}/embed/${n}-typed.svg" type="image/svg+xml"><embed src="${host}/embed/${n}-bare.svg">
<embed src="${host}/embed/${n}-typed.png" type="image/png"><embed src="${host}/embed/${n}-bare.png"><embed src="${host}/embed/${n}-typed.html" type="text/html">
<svg><use href="${host}/use/${n}.svg#a"></use><use xlink:href="${host}/use/${n}-link.svg#b"></use><use href="${host}/use/${n}.svg#b"></use>
<image href="${host}/image/${n}.png" width="9" height="9"></image><image xlink:href="${host}/image/${n}-link.svg" width="9" height="9"></image>
<filter id="f${n}"><feImage href="${host}/image/${n}-filter.png"></feImage></filter><rect width="9" height="9" filter="url(#f${n})"></rect></svg>`;
  const url = `${www}/page.html`;
  const body = `<!doctype html><html lang="en"><link rel="icon" href="data:,"><title>parts</title>${elements('', 'own')}${elements(far, 'far')}
<p style="filter:url(/filter/by-rule.svg#f);clip-path:url(/filter/clip.svg#c);mask:url(/filter/mask.svg#m)">x</p>
<object type="image/svg+xml"></object><object data="/object/pdf.pdf" type="application/pdf"></object><object data="/object/odd.xyz" type="application/x-odd"></object>
</html>`;
  sites_.push({ name: scheme === 'https' ? 'parts-https' : 'parts', scheme, documents: { [url]: { headers, body } }, steps: [{ label: 'first', go: url }], pages: { [url]: body } });
}
site('http');
site('https');

export function answer(asked) {
  for (const { pages } of sites_) if (pages[asked.href]) return { status: 200, headers, body: pages[asked.href] };
  const type = { svg: 'image/svg+xml', html: 'text/html', png: 'image/gif', pdf: 'application/pdf' }[asked.pathname.split('.').pop()] ?? 'image/gif';
  return { status: 200, headers: { 'content-type': type, 'cache-control': 'no-store' }, body: type === 'image/svg+xml' ? svg : type === 'text/html' ? '<!doctype html><p>part' : gif };
}
export const sites = sites_;
