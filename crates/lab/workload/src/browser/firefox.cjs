// One page load in a fresh Firefox, measured, by WebDriver BiDi (W3C). Run as: node --experimental-websocket firefox.cjs
// ORDER.json (see `Order` in browser/mod.rs), as driver.cjs is for Chromium and with a result of the same form. Decides nothing:
// judging is Rust's part.
'use strict';

const { spawn } = require('node:child_process');
const { createHash } = require('node:crypto');
const fs = require('node:fs');

const order = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const firstLine = (error) => String((error && error.message) || error).split('\n')[0];
const deadline = Date.now() + order.timeout_ms;

/** A promise's value, or `otherwise` when it fails or takes longer than `ms`: a stuck page must not hang the run. */
function within(ms, promise, otherwise) {
  const guarded = Promise.resolve(promise).catch(() => otherwise);
  let timer;
  const late = new Promise((done) => { timer = setTimeout(done, ms, otherwise); });
  return Promise.race([guarded, late]).finally(() => clearTimeout(timer));
}

/**
 * Connections over TCP that were begun in this network so far and not refused (RFC 4022, tcpActiveOpens and tcpAttemptFails): those
 * to its maker's hosts, which are nowhere, are none of the page.
 */
function opened() {
  try {
    const [names, values] = fs.readFileSync('/proc/self/net/snmp', 'utf8').split('\n').filter((line) => line.startsWith('Tcp:'));
    const number = (name) => Number(values.split(' ')[names.split(' ').indexOf(name)]);
    return number('ActiveOpens') - number('AttemptFails');
  } catch {
    return null;
  }
}

/** Waits until whoever measures the link has its record: what crosses it from here on is none of the load. */
async function pause() {
  fs.writeFileSync(order.loaded, '');
  const until = Date.now() + order.pause_most_ms;
  while (!fs.existsSync(order.look) && Date.now() < until) await sleep(10);
}

/** The browser with its profile, and where it listens for its driver. */
async function start() {
  const line = ['--headless', '--no-remote', '--profile', order.profile, '--remote-debugging-port', '0', '--width', '1280', '--height', '720', 'about:blank'];
  const child = spawn(order.executable, line, { stdio: 'ignore' });
  process.on('SIGTERM', () => { child.kill(); process.exit(1); });
  let over = null;
  child.on('error', (error) => { over = firstLine(error); });
  child.on('exit', (code) => { over = over || `Firefox ended with ${code}`; });
  for (const until = Date.now() + 60000; Date.now() < until && !over; await sleep(50)) {
    try {
      const { ws_host, ws_port } = JSON.parse(fs.readFileSync(`${order.profile}/WebDriverBiDiServer.json`, 'utf8'));
      return { child, endpoint: `ws://${ws_host.includes(':') ? `[${ws_host}]` : ws_host}:${ws_port}/session` };
    } catch { /* not there yet, or half of it */ }
  }
  child.kill();
  throw new Error(over || 'Firefox does not listen');
}

/** Commands to the browser, and what it tells by itself. */
async function connect(endpoint) {
  const socket = new WebSocket(endpoint);
  await new Promise((done, fail) => {
    socket.addEventListener('open', done);
    socket.addEventListener('error', () => fail(new Error('Firefox does not answer')));
  });
  const waiting = new Map();
  const listeners = new Map();
  let last = 0;
  socket.addEventListener('message', ({ data }) => {
    const message = JSON.parse(data);
    if (message.type === 'event') (listeners.get(message.method) || (() => {}))(message.params);
    const answered = waiting.get(message.id);
    if (answered) answered(message);
    waiting.delete(message.id);
  });
  const call = (method, params = {}) => new Promise((done, fail) => {
    const id = ++last;
    waiting.set(id, (message) => (message.type === 'error' ? fail(new Error(message.message || message.error)) : done(message.result)));
    socket.send(JSON.stringify({ id, method, params }));
  });
  return { call, on: (method, heard) => listeners.set(method, heard) };
}

/** What the page's own clocks say; all in milliseconds since its navigation began. As text: BiDi's values are a language of their own. */
const PAGE_TIMINGS = `(() => {
  const navigation = performance.getEntriesByType('navigation')[0];
  const paint = performance.getEntriesByName('first-contentful-paint')[0];
  const observer = new PerformanceObserver(() => {});
  observer.observe({ type: 'largest-contentful-paint', buffered: true });
  const largest = observer.takeRecords().pop();
  observer.disconnect();
  return JSON.stringify({
    load: navigation && navigation.loadEventEnd > 0 ? navigation.loadEventEnd : null,
    first_byte: navigation && navigation.responseStart > 0 ? navigation.responseStart : null,
    first_paint: paint ? paint.startTime : null,
    largest_paint: largest ? largest.startTime : null,
    origin: performance.timeOrigin,
    url: document.URL,
  });
})()`;

/** Width and height of an image as this browser decodes it. */
const DECODED = `async (base64, type) => {
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const bitmap = await createImageBitmap(new Blob([bytes], { type }));
  return JSON.stringify([bitmap.width, bitmap.height]);
}`;

async function describe({ request, response, failure, start, end, next }, browser, context, origin) {
  const { call } = browser;
  // In milliseconds since 1970, with fractions; nought is what did not happen.
  const clock = (response && response.timings) || {};
  const at = (time) => (time > 0 ? time - origin : null);
  const seen = response && response.response;
  const resource = {
    url: request.url,
    // By the words that Chromium's driver has.
    destination: { style: 'stylesheet', iframe: 'document' }[request.destination] || request.destination || 'other',
    status: seen ? seen.status : null,
    protocol: seen ? seen.protocol : null,
    media_type: seen ? (seen.mimeType || '').split(';')[0].trim().toLowerCase() || null : null,
    sha256: null,
    bytes: null,
    decoded: null,
    // That it began is heard later than it did.
    start_ms: (clock.fetchStart || Math.min(start, clock.requestStart || start)) - origin,
    sent_ms: at(clock.requestStart),
    first_byte_ms: at(clock.responseStart),
    end_ms: end === null ? null : (clock.responseEnd || end) - origin,
    redirected_to: next,
    initiator: null,
    failure: failure || (end === null ? 'still loading when the time was up' : null),
  };
  if (!seen || resource.failure || next || [204, 304].includes(resource.status)) return resource;
  const held = await within(10000, call('network.getData', { dataType: 'response', request: request.request, collector: browser.collector }), null);
  if (held === null) {
    // What it cannot decode or has given away it holds no more.
    resource.failure = order.thrown_away;
    return resource;
  }
  const body = Buffer.from(held.bytes.value, held.bytes.type === 'base64' ? 'base64' : 'utf8');
  resource.bytes = body.length;
  resource.sha256 = createHash('sha256').update(body).digest('hex');
  const type = resource.media_type || '';
  if (resource.status === 200 && /^image\/(?!svg)/.test(type) && body.length <= order.decode_most_bytes) {
    const asked = [body.toString('base64'), type].map((value) => ({ type: 'string', value }));
    const size = call('script.callFunction', { functionDeclaration: DECODED, arguments: asked, awaitPromise: true, target: { context, sandbox: 'farhop' } });
    const told = await within(5000, size, null);
    resource.decoded = told && told.type === 'success' ? JSON.parse(told.result.value) : null;
  }
  return resource;
}

async function main() {
  const { child, endpoint } = await start();
  const browser = await connect(endpoint);
  const { call, on } = browser;
  const { capabilities } = await call('session.new', { capabilities: { alwaysMatch: { acceptInsecureCerts: order.insecure } } });
  const { contexts: [{ context }] } = await call('browsingContext.getTree');
  await call('browsingContext.setViewport', { context, viewport: { width: 1280, height: 720 } });
  await call('session.subscribe', { events: ['network.beforeRequestSent', 'network.responseCompleted', 'network.fetchError', 'log.entryAdded'] });
  ({ collector: browser.collector } = await call('network.addDataCollector', { dataTypes: ['response'], maxEncodedDataSize: order.hold_most_bytes }));

  const result = { browser: `Firefox ${capabilities.browserVersion}`, errors: [], resources: [] };
  const entries = [];
  let lastChange = Date.now();
  let inFlight = 0;
  const latest = (id) => entries.findLast(({ request }) => request.request === id);
  on('network.beforeRequestSent', ({ request, redirectCount }) => {
    if (!/^https?:/.test(request.url)) return;
    const before = redirectCount > 0 ? latest(request.request) : null;
    if (before) before.next = request.url;
    entries.push({ request, response: null, failure: null, start: Date.now(), end: null, next: null });
    inFlight += 1;
    lastChange = Date.now();
  });
  const ended = (id, url, change) => {
    const entry = entries.find(({ request, end }) => request.request === id && request.url === url && end === null);
    if (!entry) return;
    Object.assign(entry, change, { end: Date.now() });
    inFlight -= 1;
    lastChange = Date.now();
  };
  on('network.responseCompleted', ({ request, response }) => ended(request.request, request.url, { response: { response, timings: request.timings } }));
  on('network.fetchError', ({ request, errorText }) => ended(request.request, request.url, { failure: errorText || 'failed' }));
  on('log.entryAdded', ({ type, level, text }) => {
    if (type === 'javascript' && level === 'error') result.errors.push(`script: ${firstLine(text)}`);
  });

  const before = opened();
  let loaded = true;
  const navigated = call('browsingContext.navigate', { context, url: order.url, wait: 'complete' });
  const late = sleep(Math.max(1, deadline - Date.now())).then(() => { throw new Error(`not loaded within ${order.timeout_ms} ms`); });
  await Promise.race([navigated, late]).catch((error) => {
    loaded = false;
    result.errors.push(firstLine(error));
  });
  const quietBy = Math.min(deadline, Date.now() + order.idle_most_ms);
  while (loaded && Date.now() < quietBy && (inFlight > 0 || Date.now() - lastChange < order.idle_ms)) await sleep(20);
  const after = opened();
  result.connections = before === null || after === null ? null : after - before;

  const evaluated = call('script.evaluate', { expression: PAGE_TIMINGS, awaitPromise: false, target: { context, sandbox: 'farhop' } });
  const told = await within(5000, evaluated, null);
  const timings = told && told.type === 'success' ? JSON.parse(told.result.value) : null;
  // The browser's own error page loads too, and quickly.
  const pageCame = timings !== null && /^https?:/.test(timings.url);
  result.load_ms = pageCame ? timings.load : null;
  result.first_byte_ms = pageCame ? timings.first_byte : null;
  result.first_paint_ms = pageCame ? timings.first_paint : null;
  result.largest_paint_ms = pageCame ? timings.largest_paint : null;
  result.url = timings ? timings.url : order.url;
  const asked = [...entries];
  if (order.loaded) await pause();
  // A document that never came has no clock of its own; the first request's start serves.
  const origin = pageCame ? timings.origin : (asked[0] || { start: Date.now() }).start;
  result.began_ms = pageCame ? timings.origin : null;
  for (const entry of asked) result.resources.push(await describe(entry, browser, context, origin));

  fs.writeFileSync(`${order.result}.half`, JSON.stringify(result));
  fs.renameSync(`${order.result}.half`, order.result);
  const gone = new Promise((done) => child.on('exit', done));
  await within(5000, call('browser.close'), null);
  await within(5000, gone, null);
  child.kill('SIGKILL');
}

main().then(() => process.exit(0), (error) => {
  process.stderr.write(`${firstLine(error)}\n`);
  process.exit(1);
});
