// A site for `crates/lab/testkit/corpora/heads/record.mjs` (see README.md here) whose documents are reached by redirects:
// within an origin, a site, across sites and back, from plain HTTP, after a form, with cookies and policies on the way.
// Names end in .test (RFC 6761), so nothing here belongs to anyone.

const www = 'https://www.moved.test', sub = 'https://sub.moved.test', far = 'https://cdn.afar.test', plain = 'http://www.moved.test';
const answers = new Map();

const leads = (from, status, location, headers = {}) => answers.set(from, { status, headers: { location, ...headers } });
const links = { own: '/old?x=1#part', sub: `${sub}/a`, back: `${far}/out`, away: '/leave', quiet: '/leave-quietly', loud: '/leave-loudly', chain: '/one', downgrade: '/down' };
const body = `<!doctype html><link rel="icon" href="data:,"><title>moved</title>
${Object.entries(links).map(([id, href]) => `<a id="${id}" href="${href}">${id}</a>`).join('\n')}
<a id="home" href="${www}/in">home</a>
<form method="post" action="/login"><input name="q" value="1"><button id="send">send</button></form>
<form method="post" action="/found"><button id="found">found</button></form>`;

leads('https://moved.test/', 301, `${www}/`);
leads(`${www}/`, 302, '/en/', { 'set-cookie': ['lang=en; Path=/', 'strict=1; Path=/; SameSite=Strict; Secure', 'deep=1; Path=/en', 'wide=1; Domain=moved.test; Path=/; HttpOnly'] });
leads(`${www}/old?x=1`, 301, '/new?y=2');
leads(`${sub}/a`, 302, `${www}/from-sub`);
leads(`${far}/out`, 302, `${www}/from-afar`);
leads(`${www}/leave`, 302, `${far}/landing`, { 'set-cookie': ['left=1; Path=/'] });
leads(`${www}/leave-quietly`, 302, `${far}/landing`, { 'referrer-policy': 'no-referrer' });
leads(`${www}/leave-loudly`, 302, `${far}/landing`, { 'referrer-policy': 'unsafe-url' });
leads(`${www}/in`, 302, '/inside');
leads(`${www}/one`, 302, '/two', { 'set-cookie': ['step=1; Path=/two'] });
leads(`${www}/two`, 307, '/three', { 'set-cookie': ['step=2; Path=/', 'lang=; Path=/; Max-Age=0'] });
leads(`${www}/three`, 308, '/four');
leads(`${www}/login`, 303, '/account', { 'set-cookie': ['session=1; Path=/; HttpOnly; Secure'] });
leads(`${www}/found`, 302, '/account');
leads(`${www}/down`, 302, `${plain}/below`);
leads(`${plain}/typed`, 301, `${www}/typed`);

export function answer(url) {
  const known = answers.get(url.href.split('#')[0]);
  if (known) return { ...known, headers: { 'cache-control': 'no-store', ...known.headers }, body: '' };
  return { status: 200, headers: { 'content-type': 'text/html', 'cache-control': 'no-store' }, body };
}

const table = [...answers].map(([url, { status, headers }]) => `${status} ${url}\n${Object.entries(headers).flatMap(([name, value]) => [value].flat().map((one) => `${name}: ${one}\n`)).join('')}`).join('\n');

export const sites = [{
  name: 'redirects', scheme: 'https', documents: { answers: { headers: {}, body: table } },
  steps: [
    { label: 'typed', go: 'https://moved.test/' },
    { label: 'own', click: '#own' }, { label: 'sub', click: '#sub' }, { label: 'back', click: '#back' }, { label: 'chain', click: '#chain' },
    { label: 'login', click: '#send' }, { label: 'found', click: '#found' }, { label: 'reloaded', reload: true },
    { label: 'away', click: '#away' }, { label: 'home', click: '#home' },
    { label: 'quiet', click: '#quiet' }, { label: 'home again', click: '#home' }, { label: 'loud', click: '#loud' },
    { label: 'http', go: `${plain}/typed` }, { label: 'downgrade', click: '#downgrade' },
  ],
}];
