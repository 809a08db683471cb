// One page load in a fresh Chromium, measured. Run as: node driver.cjs ORDER.json (see `Order` in browser/mod.rs).
// Writes the result file that the order names; whatever fails about the page is in the result, and only a browser that
// cannot be started ends with one line on stderr and exit code 1. Decides nothing: judging is Rust's part.
'use strict';

const { createHash } = require('node:crypto');
const fs = require('node:fs');

const order = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const firstLine = (error) => String((error && error.message) || error).split('\n')[0];
const deadline = Date.now() + order.timeout_ms;

/** A promise's value, or `otherwise` when it fails or takes longer than `ms`: a stuck renderer must not hang the run. */
function within(ms, promise, otherwise) {
  const guarded = Promise.resolve(promise).catch(() => otherwise);
  let timer;
  const late = new Promise((done) => { timer = setTimeout(done, ms, otherwise); });
  return Promise.race([guarded, late]).finally(() => clearTimeout(timer));
}

/**
 * Has Playwright fetch nothing anew that the browser holds no more: looking at bodies must put nothing on the link. It speaks
 * to the browser over a pipe, message by message; what is no method of the browser's is refused at once.
 */
function fetchNothingAnew() {
  const children = require('node:child_process');
  const { spawn } = children;
  children.spawn = (...how) => {
    const child = spawn(...how);
    const pipe = child.stdio[3];
    if (!pipe || !pipe.write) return child;
    const write = pipe.write.bind(pipe);
    const harmless = (message) => message.replace('"method":"Network.loadNetworkResource"', '"method":"Network.notHeld"');
    pipe.write = (data, ...rest) => write(typeof data === 'string' ? harmless(data) : data, ...rest);
    return child;
  };
}

/** Waits until whoever measures the link has its record: what crosses it from here on is none of the load. */
async function pause() {
  fs.writeFileSync(order.loaded, '');
  const until = Date.now() + order.pause_most_ms;
  while (!fs.existsSync(order.look) && Date.now() < until) await sleep(10);
}

/** What the page's own clocks say; all in milliseconds since its navigation began. */
function pageTimings() {
  const navigation = performance.getEntriesByType('navigation')[0];
  const paint = performance.getEntriesByName('first-contentful-paint')[0];
  // What was painted before the observer came is there at once.
  const observer = new PerformanceObserver(() => {});
  observer.observe({ type: 'largest-contentful-paint', buffered: true });
  const largest = observer.takeRecords().pop();
  observer.disconnect();
  return {
    load: navigation && navigation.loadEventEnd > 0 ? navigation.loadEventEnd : null,
    first_byte: navigation && navigation.responseStart > 0 ? navigation.responseStart : null,
    first_paint: paint ? paint.startTime : null,
    largest_paint: largest ? largest.startTime : null,
    origin: performance.timeOrigin,
    url: document.URL,
  };
}

/** When a frame's document and its resources were asked for and there, by its own clock: milliseconds since 1970. */
function resourceTimes() {
  const entries = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
  return entries.map(({ name, startTime, responseEnd }) => ({
    url: name,
    start: performance.timeOrigin + startTime,
    end: responseEnd > 0 ? performance.timeOrigin + responseEnd : null,
  }));
}

/** Width and height of an image as this browser decodes it. */
async function decodedSize({ base64, type }) {
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const bitmap = await createImageBitmap(new Blob([bytes], { type }));
  return [bitmap.width, bitmap.height];
}

/** Who makes this page ask, by URL in the order of asking: the DevTools protocol alone tells. */
async function watchInitiators(context, page) {
  const initiators = new Map();
  const session = await context.newCDPSession(page);
  session.on('Network.requestWillBeSent', ({ request, initiator, redirectResponse }) => {
    if (redirectResponse) return;
    const url = request.url;
    initiators.set(url, [...(initiators.get(url) || []), { kind: initiator.type, url: initiator.url || null }]);
  });
  await session.send('Network.enable');
  return initiators;
}

/** The page from its top, down to a height that any page's picture can be held in; what moves stands still. */
async function picture(page, file, most) {
  const [width, height] = await page.evaluate(() => [innerWidth, document.documentElement.scrollHeight]);
  const clip = { x: 0, y: 0, width, height: Math.max(1, Math.min(height, most)) };
  await page.screenshot({ path: file, fullPage: true, clip, animations: 'disabled', caret: 'hide' });
}

/** Hides frames whose documents nobody could bring: a browser and a proxy each have a page of their own to say so. */
async function hideLostFrames(page, entries) {
  for (const { request, response, failure } of entries) {
    if (request.resourceType() !== 'document' || !(failure || (response && [502, 504].includes(response.status())))) continue;
    let frame = null;
    try { frame = request.frame(); } catch { /* of a frame that is gone */ }
    if (frame === null || frame === page.mainFrame()) continue;
    const element = await within(1000, frame.frameElement(), null);
    if (element) await within(1000, element.evaluate((shown) => { shown.style.visibility = 'hidden'; }), null);
  }
}

/** The page as it looked each time it changed, as small pictures named by milliseconds since 1970. */
async function film(context, page, folder) {
  const session = await context.newCDPSession(page);
  session.on('Page.screencastFrame', ({ data, metadata, sessionId }) => {
    const at = Math.round(metadata.timestamp * 1000);
    fs.writeFileSync(`${folder}/${at}.jpg`, Buffer.from(data, 'base64'));
    session.send('Page.screencastFrameAck', { sessionId }).catch(() => {});
  });
  await session.send('Page.startScreencast', { format: 'jpeg', quality: 70, maxWidth: 320, maxHeight: 180, everyNthFrame: 1 });
  return () => session.send('Page.stopScreencast');
}

async function describe(entry, page, origin, times, initiators) {
  const { request, response, failure } = entry;
  // The page's clock where it saw this request; else when the driver heard of it, which is a little later.
  const seen = (times.get(request.url()) || []).shift() || { start: entry.start, end: entry.end };
  const { startTime, requestStart, responseStart } = request.timing();
  const resource = {
    url: request.url(),
    destination: request.resourceType(),
    status: response ? response.status() : null,
    protocol: response ? await within(1000, response.httpVersion(), null) : null,
    media_type: null,
    sha256: null,
    bytes: null,
    decoded: null,
    start_ms: seen.start - origin,
    sent_ms: requestStart >= 0 ? startTime + requestStart - origin : null,
    first_byte_ms: responseStart >= 0 ? startTime + responseStart - origin : null,
    end_ms: entry.end !== null ? (seen.end || entry.end) - origin : null,
    redirected_to: request.redirectedTo() ? request.redirectedTo().url() : null,
    initiator: (initiators.get(request.url()) || []).shift() || null,
    failure: failure || (entry.end === null ? 'still loading when the time was up' : null),
  };
  if (!response) return resource;
  resource.media_type = ((response.headers()['content-type'] || '').split(';')[0] || '').trim().toLowerCase() || null;
  if (resource.failure || resource.redirected_to || [204, 304].includes(resource.status)) return resource;
  let lost = 'the browser no longer held the body';
  const read = response.body().catch((error) => {
    if (/Network\.notHeld/.test(error.message)) lost = order.thrown_away;
    throw error;
  });
  const body = await within(10000, read, null);
  if (body === null) {
    resource.failure = lost;
    return resource;
  }
  resource.bytes = body.length;
  resource.sha256 = createHash('sha256').update(body).digest('hex');
  const type = resource.media_type || '';
  if (resource.status === 200 && /^image\/(?!svg)/.test(type) && body.length <= order.decode_most_bytes) {
    const size = page.evaluate(decodedSize, { base64: body.toString('base64'), type });
    resource.decoded = await within(5000, size, null);
  }
  return resource;
}

async function main() {
  if (order.loaded) fetchNothingAnew();
  const { chromium } = require('playwright-core');
  const context = await chromium.launchPersistentContext(order.profile, {
    executablePath: order.executable,
    ignoreDefaultArgs: true,
    args: [...order.arguments, `--user-data-dir=${order.profile}`, '--remote-debugging-pipe', 'about:blank'],
    // The window of a small notebook: what pages and their media queries see must not be left to the browser's version.
    viewport: { width: 1280, height: 720 },
    // Over plain HTTP there are none: the variants must load the same page. What they fetch shows no body here, either.
    serviceWorkers: 'block',
    ...(order.har ? { recordHar: { path: order.har, content: 'embed' } } : {}),
    timeout: 60000,
  });
  // A page may have more resources than the 250 that its clock keeps by default.
  await context.addInitScript(() => performance.setResourceTimingBufferSize(100000));
  const page = await context.newPage();
  const initiators = order.initiators ? await within(5000, watchInitiators(context, page), new Map()) : new Map();
  const cut = order.film ? await within(5000, film(context, page, order.film), null) : null;
  const entries = new Map();
  let lastChange = Date.now();
  let inFlight = 0;
  context.on('request', (request) => {
    if (!/^https?:/.test(request.url())) return;
    entries.set(request, { request, response: null, failure: null, start: Date.now(), end: null });
    inFlight += 1;
    lastChange = Date.now();
  });
  context.on('response', (response) => {
    const entry = entries.get(response.request());
    if (entry) entry.response = response;
  });
  const ended = (request, failure) => {
    const entry = entries.get(request);
    if (!entry || entry.end !== null) return;
    entry.end = Date.now();
    entry.failure = failure;
    inFlight -= 1;
    lastChange = Date.now();
  };
  context.on('requestfinished', (request) => ended(request, null));
  context.on('requestfailed', (request) => ended(request, (request.failure() || {}).errorText || 'failed'));

  const result = { browser: context.browser() ? context.browser().version() : null, errors: [], resources: [] };
  page.on('crash', () => result.errors.push('the page crashed'));
  page.on('pageerror', (error) => result.errors.push(`script: ${firstLine(error)}`));

  let loaded = true;
  await page.goto(order.url, { waitUntil: 'load', timeout: Math.max(1, deadline - Date.now()) }).catch((error) => {
    loaded = false;
    result.errors.push(firstLine(error));
  });
  // Some pages load most of their files after the load event; a page that never goes idle is cut off.
  const quietBy = Math.min(deadline, Date.now() + order.idle_most_ms);
  while (loaded && Date.now() < quietBy && (inFlight > 0 || Date.now() - lastChange < order.idle_ms)) await sleep(20);

  if (cut) await within(2000, cut(), null);
  const timings = await within(5000, page.evaluate(pageTimings), null);
  // The browser's own error page loads too, and quickly.
  const pageCame = timings !== null && /^https?:/.test(timings.url);
  result.load_ms = pageCame ? timings.load : null;
  result.first_byte_ms = pageCame ? timings.first_byte : null;
  result.first_paint_ms = pageCame ? timings.first_paint : null;
  result.largest_paint_ms = pageCame ? timings.largest_paint : null;
  result.url = timings ? timings.url : page.url();
  const times = new Map();
  for (const frame of page.frames()) {
    for (const { url, ...seen } of await within(2000, frame.evaluate(resourceTimes), [])) {
      times.set(url, [...(times.get(url) || []), seen]);
    }
  }
  // Taking the picture may make the page ask for more, which is no part of the load.
  const asked = [...entries.values()];
  if (order.loaded) await pause();
  if (order.screenshot) await within(5000, hideLostFrames(page, asked), null);
  if (order.screenshot) await within(20000, picture(page, order.screenshot, order.screenshot_most_px), null);
  // Nor may the page itself, while bodies are looked at.
  await within(2000, context.setOffline(true), null);
  // A document that never came has no clock of its own; the first request's start serves.
  const first = asked[0];
  const began = first ? first.start : Date.now();
  const origin = pageCame ? timings.origin : began;
  result.began_ms = pageCame ? timings.origin : null;
  for (const entry of asked) result.resources.push(await describe(entry, page, origin, times, initiators));

  fs.writeFileSync(`${order.result}.half`, JSON.stringify(result));
  fs.renameSync(`${order.result}.half`, order.result);
  // A HAR with all of its bodies takes longer to be written.
  await within(order.har ? 60000 : 5000, context.close(), null);
}

main().then(() => process.exit(0), (error) => {
  process.stderr.write(`${firstLine(error)}\n`);
  process.exit(1);
});
