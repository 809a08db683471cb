// A site for `crates/lab/testkit/corpora/heads/record.mjs` (see README.md here) whose images have every code point in their
// paths and queries that some browser might write otherwise than the page does; by the page and by a style sheet. And a page
// that is loaded again.
const gif = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64');
const points = [...'!"$&\'()*+,-.:;<=>@[\\]^_`{|}~%'].concat(['%41', '%7c', '%7C', '%5e', '%zz', 'ü', '€', '\u{1f600}', ' ', '\u007f', '\u0001', '/./', '/%2e/', '/a/%2E%2e/', '//', ';a=b', '\u00ad']);
const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');
const css = (text) => [...text].map((c) => (/[a-z0-9]/i.test(c) ? `\\${c.codePointAt(0).toString(16)} ` : c < ' ' || c === '\u007f' || c === '"' || c === '\\' ? `\\${c.codePointAt(0).toString(16)} ` : c)).join('');
const url = 'http://points.test/page.html';
const body = `<!doctype html><html lang="en"><meta charset="utf-8"><link rel="icon" href="data:,"><title>points</title>
<style>${points.map((point, n) => `.c${n}{background:url("/css/${n}-${css(point)}x")}`).join('\n')}</style>
${points.map((point, n) => `<img alt="" src="${escaped(`/path/${n}-${point}x`)}"><img alt="" src="${escaped(`/query/${n}?${point}x`)}"><i class="c${n}"></i>`).join('\n')}
</html>`;
const headers = { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store' };

const again = 'http://again.test/';
const page = { ...headers, etag: '"1"' };
const text = '<!doctype html><link rel="icon" href="data:,"><link rel="stylesheet" href="/a.css"><script src="/a.js"></script><img src="/a.gif" alt=""><img src="/stale.gif" alt="">';

export function answer(asked) {
  if (asked.href === again) return { status: 200, headers: { ...page, 'cache-control': 'no-cache' }, body: text };
  const type = { css: 'text/css', js: 'text/javascript' }[asked.pathname.split('.').pop()];
  if (asked.host === 'again.test') return { status: 200, headers: { 'content-type': type ?? 'image/gif', etag: '"1"', 'cache-control': asked.pathname === '/stale.gif' ? 'no-cache' : 'max-age=600' }, body: type ? ' ' : gif };
  if (asked.href === url) return { status: 200, headers, body };
  return { status: 200, headers: { 'content-type': 'image/gif', 'cache-control': 'no-store' }, body: gif };
}

export const sites = [{ name: 'points', scheme: 'http', documents: { [url]: { headers, body } }, steps: [{ label: 'first', go: url }] },
  { name: 'again', scheme: 'http', documents: { [again]: { headers: page, body: text } }, steps: [{ label: 'first', go: again }, { label: 'reload', reload: true }, { label: 'hard reload', reload: 'hard' }] }];
