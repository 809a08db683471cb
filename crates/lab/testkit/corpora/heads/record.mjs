// Records the request heads that Chromium (or Firefox) sends through an explicit HTTP proxy, for a few made-up sites.
// It is proxy and origin in one: it answers every request itself and contacts nothing but the browser it starts.
//
//   node --experimental-websocket record.mjs OUTDIR [firefox] [SITES.mjs]     (needs the browser and openssl on the PATH; nothing from npm)
//
// Must not touch anything outside OUTDIR and its own temporary folder.
import http from 'node:http';
import https from 'node:https';
import net from 'node:net';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { spawn, execFileSync } from 'node:child_process';

const out = process.argv[2] ?? '.';
const firefox = process.argv.includes('firefox');
const module = process.argv.slice(3).find((word) => word.endsWith('.mjs'));
const { sites, answer } = await import(module ? path.resolve(module) : './sites.mjs');
const work = fs.mkdtempSync(path.join(os.tmpdir(), 'heads-'));
let log = [];
let label = 'first';

function note(scheme, request) {
  const target = request.url.startsWith('http') ? request.url : `${scheme}://${request.headers.host}${request.url}`;
  const lines = [];
  for (let i = 0; i < request.rawHeaders.length; i += 2) lines.push(`${request.rawHeaders[i]}: ${request.rawHeaders[i + 1]}`);
  log.push({ target, method: request.method, head: lines, load: label });
  return new URL(target);
}

// Firefox has no simple way to be given cookies: this page sets them and goes on to the first page of its site.
function start(url) {
  const site = sites.find(({ name }) => name === url.searchParams.get('site'));
  const cookies = (site.cookies ?? []).map(({ name, value, domain }) => `${name}=${value}; Path=/${domain.startsWith('.') ? `; Domain=${domain.slice(1)}` : ''}`);
  return { status: 200, headers: { 'content-type': 'text/html', 'set-cookie': cookies, 'referrer-policy': 'no-referrer' }, body: `<script>location.replace(${JSON.stringify(site.steps[0].go)})</script>` };
}

function serve(scheme) {
  return (request, response) => {
    const url = note(scheme, request);
    request.resume();
    request.on('end', () => {
      const { status, headers, body } = url.pathname === '/__start' ? start(url) : answer(url, request);
      response.writeHead(status, headers);
      response.end(body);
    });
  };
}

// --- origin and proxy -------------------------------------------------------------------------------------------
execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2',
  '-subj', '/CN=heads', '-keyout', path.join(work, 'key'), '-out', path.join(work, 'cert')], { stdio: 'ignore' });
const tls = https.createServer({ key: fs.readFileSync(path.join(work, 'key')), cert: fs.readFileSync(path.join(work, 'cert')), ALPNProtocols: ['http/1.1'] }, serve('https'));
await new Promise((done) => tls.listen(0, '127.0.0.1', done));
const proxy = http.createServer(serve('http'));
proxy.on('connect', (request, socket, head) => {
  if (!request.url.split(':')[0].endsWith('.test')) return socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
  const to = net.connect(tls.address().port, '127.0.0.1', () => {
    socket.write('HTTP/1.1 200 OK\r\n\r\n');
    to.write(head);
    socket.pipe(to).pipe(socket);
  });
  to.on('error', () => socket.destroy());
  socket.on('error', () => to.destroy());
});
await new Promise((done) => proxy.listen(0, '127.0.0.1', done));

// --- the browser, by its debugging protocol ---------------------------------------------------------------------
async function browser(site) {
  const profile = fs.mkdtempSync(path.join(work, 'profile-'));
  const child = spawn('chromium', ['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', '--ignore-certificate-errors', `--user-data-dir=${profile}`,
    `--proxy-server=http://127.0.0.1:${proxy.address().port}`, '--proxy-bypass-list=<-loopback>', '--remote-debugging-port=0',
    '--window-size=1280,900', ...site.flags ?? [], 'about:blank'], { stdio: ['ignore', 'ignore', 'pipe'] });
  const endpoint = await new Promise((done, fail) => {
    let text = '';
    child.stderr.on('data', (data) => {
      text += data;
      const found = /DevTools listening on ws:\/\/([^/]+)\//.exec(text);
      if (found) done(found[1]);
    });
    child.on('exit', () => fail(new Error(`chromium ended: ${text}`)));
  });
  const page = (await (await fetch(`http://${endpoint}/json`)).json()).find((target) => target.type === 'page');
  const socket = new WebSocket(page.webSocketDebuggerUrl);
  await new Promise((done) => socket.addEventListener('open', done));
  let id = 0;
  const waiting = new Map();
  const events = [];
  socket.addEventListener('message', ({ data }) => {
    const message = JSON.parse(data);
    if (message.id) waiting.get(message.id)?.(message);
    else events.forEach((on) => on(message));
  });
  const call = (method, params = {}) => new Promise((done, fail) => {
    waiting.set(++id, (message) => (message.error ? fail(new Error(`${method}: ${message.error.message}`)) : done(message.result)));
    socket.send(JSON.stringify({ id, method, params }));
  });
  const loaded = () => new Promise((done) => events.push((message) => message.method === 'Page.loadEventFired' && done()));
  await call('Page.enable');
  await call('Network.enable');
  return { call, loaded, end: async () => { child.removeAllListeners('exit'); await call('Browser.close').catch(() => {}); await new Promise((done) => (child.exitCode === null ? child.on('exit', done) : done())); } };
}

function preferences() {
  return { 'network.proxy.type': 1, 'network.proxy.http': '127.0.0.1', 'network.proxy.http_port': proxy.address().port,
    'network.proxy.ssl': '127.0.0.1', 'network.proxy.ssl_port': proxy.address().port, 'network.captive-portal-service.enabled': false,
    'network.connectivity-service.enabled': false, 'app.update.enabled': false, 'datareporting.policy.dataSubmissionEnabled': false,
    'browser.shell.checkDefaultBrowser': false, 'browser.aboutwelcome.enabled': false, 'toolkit.telemetry.enabled': false,
    'dom.security.https_first': false, 'dom.security.https_first_schemeless': false, 'browser.safebrowsing.malware.enabled': false };
}

async function loadInFirefox(site) {
  const profile = fs.mkdtempSync(path.join(work, 'profile-'));
  const prefs = preferences();
  fs.writeFileSync(path.join(profile, 'user.js'), Object.entries(prefs).map(([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});`).join('\n'));
  const child = spawn('firefox-esr', ['--headless', '--no-remote', '--profile', profile, `${new URL(site.steps[0].go).origin}/__start?site=${site.name}`], { stdio: 'ignore' });
  const first = new URL(site.steps[0].go).href;
  for (let waited = 0; waited < 60 && !log.some(({ target }) => target === first); waited++) await new Promise((done) => setTimeout(done, 500));
  await settled();
  child.kill();
  await new Promise((done) => child.on('exit', done));
}

// Sites of several steps, or over TLS, by WebDriver BiDi: it accepts the throwaway certificate and clicks.
async function stepsInFirefox(site) {
  const profile = fs.mkdtempSync(path.join(work, 'profile-'));
  fs.writeFileSync(path.join(profile, 'user.js'), Object.entries({ ...preferences(), 'remote.prefs.recommended': false }).map(([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});`).join('\n'));
  const child = spawn('firefox-esr', ['--headless', '--no-remote', '--profile', profile, '--remote-debugging-port', '0', 'about:blank'], { stdio: ['ignore', 'ignore', 'pipe'] });
  const endpoint = await new Promise((done) => {
    let text = '';
    child.stderr.on('data', (data) => {
      text += data;
      const found = /WebDriver BiDi listening on (ws:\/\/\S+)/.exec(text);
      if (found) done(found[1]);
    });
  });
  const socket = new WebSocket(`${endpoint}/session`);
  await new Promise((done) => socket.addEventListener('open', done));
  let id = 0;
  const waiting = new Map();
  socket.addEventListener('message', ({ data }) => {
    const message = JSON.parse(data);
    waiting.get(message.id)?.(message);
  });
  const call = (method, params = {}) => new Promise((done, fail) => {
    waiting.set(++id, (message) => (message.type === 'error' ? fail(new Error(`${method}: ${message.message}`)) : done(message.result)));
    socket.send(JSON.stringify({ id, method, params }));
  });
  await call('session.new', { capabilities: { alwaysMatch: { acceptInsecureCerts: true } } });
  const { contexts: [{ context }] } = await call('browsingContext.getTree');
  for (const step of site.steps) {
    label = step.label;
    if (step.go) await call('browsingContext.navigate', { context, url: step.go, wait: 'complete' });
    if (step.reload === true) await call('browsingContext.reload', { context, wait: 'complete' });
    if (step.click) await call('script.evaluate', { target: { context }, expression: `document.querySelector(${JSON.stringify(step.click)}).click()`, awaitPromise: false, userActivation: true });
    await settled();
  }
  child.kill();
  await new Promise((done) => child.on('exit', done));
}

// The page is settled when nothing new has been asked for during a second.
async function settled() {
  for (let seen = -1; seen !== log.length;) {
    seen = log.length;
    await new Promise((done) => setTimeout(done, 1000));
  }
}

for (const site of sites) {
  log = [];
  if (firefox && site.scheme === 'https' && !module) continue; // the other recordings have it over plain HTTP only
  if (firefox) {
    label = 'first';
    await (module ? stepsInFirefox(site) : loadInFirefox(site));
    write(site, `firefox-${site.name}`);
    continue;
  }
  const { call, loaded, end } = await browser(site);
  for (const cookie of site.cookies ?? []) await call('Network.setCookie', cookie);
  for (const step of site.steps) {
    label = step.label;
    const load = loaded();
    if (step.go) await call('Page.navigate', { url: step.go });
    if (step.click) await call('Runtime.evaluate', { expression: `document.querySelector(${JSON.stringify(step.click)}).click()`, userGesture: true });
    if (step.reload) await call('Page.reload', { ignoreCache: step.reload === 'hard' });
    await load;
    await settled();
  }
  await end();
  write(site, site.name);
}

function write(site, name) {
  const own = log.filter(({ target }) => new URL(target).hostname.endsWith('.test') && !target.includes('/__start'));
  const text = own.map(({ target, method, head, load }) => `# load: ${load}\n${method} ${target} HTTP/1.1\n${head.join('\n')}\n`).join('\n');
  fs.writeFileSync(path.join(out, `${name}.heads`), text);
  for (const [url, document] of Object.entries(site.documents)) {
    const fields = Object.entries(document.headers).map(([name, value]) => `${name}: ${value}`).join('\n');
    fs.writeFileSync(path.join(out, `${site.name}${document.suffix ?? ''}.page`), `${url}\n${fields}\n\n${document.body}`);
  }
  console.log(name, own.length, 'heads,', log.length - own.length, 'of the browser\'s own left out');
}

proxy.close(); tls.close(); proxy.closeAllConnections(); tls.closeAllConnections();
fs.rmSync(work, { recursive: true, force: true, maxRetries: 10 });
process.exit(0);
