// The made-up sites that record.mjs serves: pages, resources, cookies and what the user does on them.
// Names end in .test (RFC 6761), so nothing here belongs to anyone.

// Reproducible noise for hashes, ids and cookies.
let seed = 20260314;
const random = () => ((seed = (Math.imul(seed, 1103515245) + 12345) >>> 0) >>> 8) / 2 ** 24;
const pick = (alphabet, length) => Array.from({ length }, () => alphabet[Math.floor(random() * alphabet.length)]).join('');
const hex = (length) => pick('0123456789abcdef', length);
const base64 = (length) => pick('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-', length);
const digits = (length) => pick('123456789', 1) + pick('0123456789', length - 1);
const range = (count) => Array.from({ length: count }, (_, i) => i);

const analytics = (domain) => [
  { name: '_ga', value: `GA1.1.${digits(9)}.${digits(10)}`, domain, path: '/' },
  { name: `_ga_${hex(10).toUpperCase()}`, value: `GS2.1.s${digits(10)}$o7$g1$t${digits(10)}$j42$l0$h0`, domain, path: '/' },
  { name: '_fbp', value: `fb.1.${digits(13)}.${digits(18)}`, domain, path: '/' },
];
const consent = (domain) => [{ name: 'euconsent-v2', value: `CP${base64(320)}`, domain, path: '/' }];

const css = `@font-face{font-family:Body;src:url(../fonts/body-400.${hex(8)}.woff2) format("woff2")}
body{font-family:Body,serif;background:url(../img/paper.png)}.hero{background:url("../img/hero-bg.jpg?v=${digits(4)}");height:80px}`;

const bodies = {
  css: ['text/css', css], js: ['text/javascript', 'window.loaded=(window.loaded||0)+1;'],
  mjs: ['text/javascript', 'export const ready = true;'], json: ['application/json', '{"items":[1,2,3]}'],
  webmanifest: ['application/manifest+json', '{"name":"App","icons":[]}'], woff2: ['font/woff2', 'not a font'],
  svg: ['image/svg+xml', '<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"><rect width="8" height="8" fill="#246"/></svg>'],
  vtt: ['text/vtt', 'WEBVTT\n'], html: ['text/html', '<!doctype html><title>frame</title>'],
};
const gif = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64');

const documents = {};

export function answer(url, request) {
  const document = documents[url.href];
  if (document) return { status: 200, headers: document.headers, body: document.body };
  const extension = /\.([a-z0-9]+)$/.exec(url.pathname)?.[1] ?? '';
  const cors = request.headers.origin ? { 'access-control-allow-origin': request.headers.origin, vary: 'origin' } : {};
  const [type, body] = url.pathname.endsWith('/app/main.mjs')
    ? ['text/javascript', 'import {ready} from "./router.mjs"; fetch("/api/v2/session?include=profile,teams"); fetch("/api/v2/events",{method:"POST",headers:{"content-type":"application/json"},body:"{}"});']
    : url.pathname.endsWith('/load.php') ? (url.searchParams.get('only') === 'styles' ? ['text/css', 'body{margin:0}'] : ['text/javascript', '0'])
      : bodies[extension] ?? ['image/gif', gif];
  const tag = `"${[...url.href].reduce((sum, c) => (Math.imul(sum, 31) + c.charCodeAt(0)) >>> 0, 7).toString(16)}"`;
  const headers = { 'content-type': type, 'cache-control': 'max-age=600', etag: tag, 'last-modified': 'Sat, 14 Mar 2026 08:00:00 GMT', ...cors };
  if (request.headers['if-none-match'] === tag) return { status: 304, headers: { etag: tag, 'cache-control': 'max-age=600', ...cors }, body: '' };
  return { status: 200, headers, body };
}

function site(name, scheme, { pages, steps, ...rest }) {
  const own = {};
  for (const page of pages) {
    const headers = { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-cache', ...page.headers };
    own[page.url] = documents[page.url] = { headers, body: `<!doctype html>\n<html lang="en">\n${page.html}\n</html>\n`, suffix: page.suffix };
  }
  return { name, scheme, documents: own, steps, ...rest };
}

const reloads = [{ label: 'reload', reload: 'soft' }, { label: 'hard reload', reload: 'hard' }];

function news(name, scheme, top) {
  const www = `${scheme}://www.${top}`, static_ = `${scheme}://static.${top}`, cdn = `${scheme}://img.imagecdn-${name}.test`;
  const front = `${www}/?edition=international&utm_source=newsletter&utm_medium=email&utm_campaign=morning-briefing-2026-03-14`;
  const article = `${www}/2026/03/14/science/satellite-constellation-launch-delayed-after-weather-front-moves-in-${hex(8)}.html`;
  const picture = () => `${cdn}/media/${hex(32)}/${digits(4)}.jpg?width=640&quality=75&auto=webp&s=${hex(40)}`;
  const head = `<link rel="stylesheet" href="${static_}/build/main.${hex(20)}.css"><link rel="stylesheet" href="/assets/css/print.css" media="print">
<link rel="preload" as="font" type="font/woff2" crossorigin href="${static_}/fonts/headline-700.${hex(10)}.woff2">
<link rel="icon" href="/favicon-32x32.png" sizes="32x32" type="image/png"><link rel="manifest" href="/site.webmanifest">
<script src="${static_}/build/vendor.${hex(20)}.js" defer></script><script async src="${scheme}://metrics.beacon-${name}.test/tag.js?id=G-${hex(10).toUpperCase()}&l=dataLayer"></script>`;
  return site(name, scheme, {
    cookies: [...analytics(`.${top}`), ...consent(`.${top}`),
      { name: 'session_id', value: base64(86), domain: `www.${top}`, path: '/', httpOnly: true },
      { name: 'ab_bucket', value: 'frontpage-v3%3Dtreatment%26paywall%3Dcontrol', domain: `www.${top}`, path: '/' }],
    pages: [
      { url: front, html: `<head><title>News</title>${head}</head><body><h1 class="hero">News</h1>
<a id="next" href="${article}">Satellite</a>${range(12).map(() => `<img src="${picture().replaceAll('&', '&amp;')}" alt="" width="320" height="180">`).join('\n')}
<img src="/assets/logo.svg" alt=""><script src="/assets/js/front.js"></script></body>` },
      { url: article, suffix: '-article', html: `<head><title>Article</title>${head}</head><body><h1 class="hero">Article</h1>
<picture><source type="image/avif" srcset="${picture().replaceAll('&', '&amp;')} 1x"><img src="${picture().replaceAll('&', '&amp;')}" alt=""></picture>
${range(4).map(() => `<img loading="lazy" src="${picture().replaceAll('&', '&amp;')}" alt="">`).join('\n')}</body>` },
    ],
    steps: [{ label: 'first', go: front }, { label: 'next page', click: '#next' }, ...reloads],
  });
}

function shop(name, scheme, top) {
  const www = `${scheme}://${top}`;
  const list = `${www}/collections/outdoor/tents?filter.v.availability=1&filter.p.m.custom.season=4&sort_by=price-ascending&page=2`;
  return site(name, scheme, {
    flags: ['--accept-lang=de-DE,de,en'],
    cookies: [...analytics(`.${top}`),
      { name: 'cart', value: `${base64(64)}%3Fkey%3D${hex(32)}`, domain: top, path: '/' },
      { name: '_shop_session', value: `eyJhbGciOiJIUzI1NiJ9.${base64(180)}.${base64(43)}`, domain: top, path: '/', httpOnly: true },
      { name: 'localization', value: 'DE', domain: top, path: '/' }],
    pages: [{ url: list, headers: { 'referrer-policy': 'same-origin' }, html: `<head><title>Tents</title>
<link rel="stylesheet" href="/cdn/assets/base.css?v=${digits(20)}"><link rel="stylesheet" href="/cdn/assets/component-card.css?v=${digits(20)}">
<script type="module" src="/cdn/assets/theme.mjs?v=${digits(20)}"></script><script src="/cdn/assets/facets.js?v=${digits(20)}" defer></script></head>
<body><h1 class="hero">Tents</h1>${range(18).map((i) => `<img srcset="/cdn/files/tent-${i}.jpg?v=${digits(10)}&amp;width=165 165w, /cdn/files/tent-${i}.jpg?v=${digits(10)}&amp;width=360 360w, /cdn/files/tent-${i}.jpg?v=${digits(10)}&amp;width=533 533w" sizes="(min-width: 990px) 330px, 50vw" src="/cdn/files/tent-${i}.jpg" alt="" width="330" height="330">`).join('\n')}
<input type="image" src="/cdn/assets/search.png" alt="search"></body>` }],
    steps: [{ label: 'first', go: list }, ...reloads],
  });
}

function wiki(name, scheme, top) {
  const www = `${scheme}://${top}`, upload = `${scheme}://upload.${top}`;
  const first = `${www}/wiki/Geostationary_orbit`;
  const second = `${www}/wiki/Molniya_orbit`;
  const head = `<link rel="stylesheet" href="/w/load.php?lang=en&amp;modules=ext.cite.styles%7Cext.math.styles%7Cext.uls.interlanguage%7Cskins.classic.icons%7Cskins.classic.search.styles%7Csite.styles&amp;only=styles&amp;skin=classic">
<script async src="/w/load.php?lang=en&amp;modules=startup&amp;only=scripts&amp;raw=1&amp;skin=classic"></script>`;
  const thumb = (name_, size) => `<img src="//upload.${top}/thumb/${hex(1)}/${hex(2)}/${name_}/${size}px-${name_}.png" srcset="//upload.${top}/thumb/${hex(1)}/${hex(2)}/${name_}/${size * 2}px-${name_}.png 2x" alt="" width="${size}" height="${size}">`;
  const names = ['Geostationary_orbit_scheme.svg', 'Comparison_satellite_navigation_orbits.svg', 'Ambox_important.svg', 'Wiki_letter_w.svg', 'Clarke_belt.jpg', 'Syncom_2.jpg', 'Earth_from_orbit_(cropped).jpg', 'Loudspeaker.svg'];
  return site(name, scheme, {
    cookies: [{ name: 'WMF-DP', value: hex(3), domain: top, path: '/' }, { name: 'GeoIP', value: 'IE:C:Cork:51.90:-8.47:v4', domain: `.${top}`, path: '/' }],
    pages: [
      { url: first, html: `<head><title>Geostationary orbit</title>${head}</head><body><a id="next" href="/wiki/Molniya_orbit">Molniya orbit</a>${names.map((n) => thumb(n, 120)).join('\n')}</body>` },
      { url: second, suffix: '-second', html: `<head><title>Molniya orbit</title>${head}</head><body>${names.slice(2).map((n) => thumb(n, 220)).join('\n')}</body>` },
    ],
    steps: [{ label: 'first', go: first }, { label: 'next page', click: '#next' }, ...reloads],
  });
}

function app(name, scheme, top) {
  const www = `${scheme}://${top}`, assets = `${scheme}://assets.cloudfiles-${name}.test`;
  const page = `${www}/dashboard?team=42`;
  return site(name, scheme, {
    cookies: [{ name: '__session', value: `eyJraWQiOiJ${base64(720)}.${base64(342)}`, domain: top, path: '/', httpOnly: true },
      { name: 'csrf', value: hex(40), domain: top, path: '/' }, { name: 'theme', value: 'dark', domain: top, path: '/' }],
    pages: [{ url: page, headers: { 'referrer-policy': 'no-referrer-when-downgrade' }, html: `<head><title>App</title><base href="${www}/v/3.14.1/">
<link rel="preconnect" href="${assets}"><link rel="preload" as="style" href="css/app.css"><link rel="stylesheet" href="css/app.css">
<link rel="modulepreload" href="app/router.mjs"><link rel="modulepreload" href="app/main.mjs"><link rel="preload" as="image" href="${assets}/img/empty-state.png">
<link rel="preload" as="script" href="app/legacy.js"><link rel="preload" as="fetch" crossorigin href="/api/v2/flags.json">
<link rel="manifest" href="/app.webmanifest" crossorigin="use-credentials"><link rel="apple-touch-icon" href="/touch.png">
<script type="module" src="app/main.mjs"></script><script nomodule src="app/legacy.js"></script><script type="module" crossorigin="use-credentials" src="${assets}/widgets/chart.mjs"></script>
<script crossorigin src="${assets}/widgets/sentry.js"></script><script type="text/template" src="app/none.js"></script></head>
<body><h1 class="hero">App</h1><img src="img/avatar.png?size=64" referrerpolicy="no-referrer" alt=""><img crossorigin src="${assets}/img/cover.jpg" alt="">
<video poster="${assets}/img/poster.jpg" width="320" height="180"></video><noscript><img src="img/noscript.png"></noscript><template><img src="img/template.png"></template></body>` }],
    steps: [{ label: 'first', go: page }, ...reloads],
  });
}

function gallery(name, scheme, top) {
  const page = `${scheme}://${top}/`;
  return site(name, scheme, {
    flags: ['--user-agent=Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36'],
    pages: [{ url: page, html: `<head><title>Gallery</title><link rel="stylesheet" href="style.css"></head><body>${range(30).map((i) => `<img src="flags/4x3/${'ad ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj bl bm bn bo bq'.split(' ')[i]}.svg" alt="">`).join('\n')}</body>` }],
    steps: [{ label: 'first', go: page }, ...reloads],
  });
}

export const sites = [
  news('news', 'http', 'daily-courier.test'), shop('shop', 'http', 'hillside-outfitters.test'), wiki('wiki', 'http', 'openlore.test'),
  app('app', 'http', 'console.teamdesk.test'), gallery('gallery', 'http', 'flags.test'),
  news('news-https', 'https', 'evening-ledger.test'), app('app-https', 'https', 'workbench.test'), shop('shop-https', 'https', 'lakeside-bikes.test'),
];
