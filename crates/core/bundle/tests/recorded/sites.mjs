// Sites for `crates/lab/testkit/corpora/heads/record.mjs` (see README.md here) that show what the other ones do not:
// resources of stylesheets, modules and frames, each on the page's host, on a sibling and on a stranger, and cookies of
// every kind. Names end in .test (RFC 6761), so nothing here belongs to anyone.

const gif = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64');
const sites_ = [];
const answers = new Map();

function site(scheme) {
  const www = `${scheme}://www.nested.test`, sub = `${scheme}://sub.nested.test`, far = `${scheme}://cdn.far.test`;
  const secure = scheme === 'https' ? '; Secure; SameSite=None' : '';
  const put = (url, type, body, headers = {}) => answers.set(url, { status: 200, headers: { 'content-type': type, 'cache-control': 'max-age=600', 'access-control-allow-credentials': 'true', ...headers }, body });
  // Each sheet names an image, an import and a font on each of the three hosts.
  const sheet = (name, headers) => {
    const rules = [['own', www], ['sub', sub], ['far', far]].map(([host, base]) =>
      `.${name}-${host}{background:url(${base}/i/${name}-${host}.png)}@font-face{font-family:${name}-${host};src:url(${base}/f/${name}-${host}.woff2) format("woff2")}.${name}-${host}{font-family:${name}-${host}}`);
    const imports = [['own', www], ['sub', sub], ['far', far]].map(([host, base]) => {
      put(`${base}/c/${name}-${host}.css`, 'text/css', `.${name}-i-${host}{background:url(${base}/i/${name}-i-${host}.png)}`);
      return `@import url(${base}/c/${name}-${host}.css);`;
    });
    return [`${imports.join('\n')}\n${rules.join('\n')}\n`, headers];
  };
  const divs = (name) => ['own', 'sub', 'far'].map((host) => `<p class="${name}-${host}">x</p><p class="${name}-i-${host}">x</p>`).join('\n');
  const frame = (url, headers = {}) => put(url, 'text/html', `<!doctype html><link rel="stylesheet" href="${www}/frame/look.css"><img src="${www}/frame/own.png"><img src="${sub}/frame/sub.png"><img src="${far}/frame/far.png">`, headers);

  const plain = sheet('plain'), told = sheet('told', { 'referrer-policy': 'unsafe-url' }), strange = sheet('strange'), inline = sheet('inline');
  put(`${www}/css/plain.css`, 'text/css', ...plain);
  put(`${www}/css/told.css`, 'text/css', ...told);
  put(`${far}/css/strange.css`, 'text/css', ...strange);
  put(`${www}/frame/look.css`, 'text/css', 'body{margin:0}');
  put(`${www}/m/main.mjs`, 'text/javascript', `import "./dep.mjs"; import "${sub}/m/sub.mjs"; import "${far}/m/far.mjs"; import("./late.mjs");`);
  put(`${www}/m/dep.mjs`, 'text/javascript', 'import "./deeper.mjs";');
  put(`${www}/m/told.mjs`, 'text/javascript', 'import "./told-dep.mjs";', { 'referrer-policy': 'origin' });
  put(`${far}/m/with.mjs`, 'text/javascript', 'import "./with-dep.mjs"; import "' + www + '/m/with-own.mjs";');
  frame(`${www}/frame/own.html`);
  frame(`${sub}/frame/sub.html`, { 'set-cookie': ['framed=1; Path=/' + secure] });
  frame(`${far}/frame/far.html`, { 'set-cookie': ['framed=1; Path=/' + secure] });
  put(`${far}/i/sets.png`, 'image/gif', gif, { 'set-cookie': [`far=1${secure}`, 'lax=1; SameSite=Lax', `chips=1; Path=/${secure}${secure && '; Partitioned'}`] });
  put(`${sub}/i/sets.png`, 'image/gif', gif, { 'set-cookie': ['sub=1', `none=1${secure}`, 'strict=1; SameSite=Strict; Path=/'] });
  const page = (name, next, headers, html = '') => put(`${www}/page/${name}.html?q=1`, 'text/html; charset=utf-8', `<!doctype html>
<html lang="en"><head><title>${name}</title>
<link rel="stylesheet" href="/css/plain.css"><link rel="stylesheet" href="/css/told.css"><link rel="stylesheet" href="${far}/css/strange.css">
<style>${inline[0]}</style>
<script type="module" src="/m/main.mjs"></script><script type="module" src="/m/told.mjs"></script><script type="module" crossorigin="use-credentials" src="${far}/m/with.mjs"></script></head>
<body><a id="next" href="${next}">next</a>
<img src="${far}/i/sets.png" alt=""><img src="${sub}/i/sets.png" alt=""><img src="${far}/i/anonymous.png" crossorigin alt="">
${['plain', 'told', 'strange', 'inline'].map(divs).join('\n')}
<iframe src="/frame/own.html"></iframe><iframe src="${sub}/frame/sub.html"></iframe><iframe src="${far}/frame/far.html"></iframe>
<iframe src="/frame/quiet.html" referrerpolicy="no-referrer"></iframe>${html}
</body></html>`, headers);
  const cookies = ['host=1', 'wide=1; Domain=nested.test; Path=/', 'deep=1; Path=/page/', 'css=1; Path=/css', 'strict=1; Path=/; SameSite=Strict', 'lax=1; Path=/; SameSite=Lax; HttpOnly',
    `none=1; Path=/${secure}`, 'gone=1; Path=/; Max-Age=0', 'locked=1; Path=/; Secure', 'a=1; Path=/', 'b=1; Path=/', 'c=1; Path=/', '__Host-x=1; Path=/; Secure', '__Host-y=1; Path=/page; Secure', '__Secure-z=1; Secure; Path=/', 'suffix=1; Domain=test', 'other=1; Domain=far.test'];
  page('first', `${www}/page/second.html?q=1`, { 'set-cookie': cookies, 'cache-control': 'no-store' });
  page('second', `${www}/page/third.html?q=1`, { 'set-cookie': ['a=2; Path=/', 'b=1; Path=/'], 'cache-control': 'no-store', 'referrer-policy': 'unsafe-url' }, '<script>document.cookie="script=1; path=/; domain=nested.test"; new Image().src="/i/after-script.png"</script>');
  page('third', `${www}/page/fourth.html?q=1`, { 'cache-control': 'no-store', 'referrer-policy': 'origin' }, '<p style="background:url(/i/attribute.png)">x</p>');
  page('fourth', '/', { 'cache-control': 'no-store' }, '<meta name="referrer" content="origin"><p style="background:url(/i/attribute.png)">x</p><style>.late{background:url(/i/late.png)}</style><p class="late">x</p>');
  const url = (name) => `${www}/page/${name}.html?q=1`;
  const documents = {};
  for (const name of ['first', 'second', 'third', 'fourth']) {
    const { headers, body } = answers.get(url(name));
    documents[url(name)] = { headers, body, suffix: `-${name}` };
  }
  sites_.push({ name: scheme === 'https' ? 'nested-https' : 'nested', scheme, documents, steps: [
    { label: 'first', go: url('first') }, { label: 'second', click: '#next' }, { label: 'third', click: '#next' }, { label: 'fourth', click: '#next' }] });
}

export function answer(url, request) {
  const known = answers.get(url.href);
  const cors = request.headers.origin ? { 'access-control-allow-origin': request.headers.origin, vary: 'origin' } : {};
  if (known) return { ...known, headers: { ...known.headers, ...cors } };
  const type = { css: 'text/css', mjs: 'text/javascript', html: 'text/html', woff2: 'font/woff2' }[/\.([a-z0-9]+)$/.exec(url.pathname)?.[1]] ?? 'image/gif';
  // Not to be reused, so that each page asks for it again.
  return { status: 200, headers: { 'content-type': type, 'cache-control': 'no-store', 'access-control-allow-credentials': 'true', ...cors }, body: type === 'image/gif' ? gif : '' };
}

site('http');
site('https');
for (const known of answers.values()) known.headers['cache-control'] = 'no-store';
export const sites = sites_;
