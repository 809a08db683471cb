// The portal as a user of a browser without JavaScript meets it. Run as: node portal.cjs ORDER, a JSON object of
// `playwright`, `executable`, `proxy`, `pac`, `evil` (a page of another site with a form that is sent here) and `folder`.
// Prints what was seen as JSON; judging is Rust's part.
'use strict';

const path = require('node:path');
const order = JSON.parse(process.argv[2]);
const { chromium } = require(order.playwright);

async function seen(...proxyArguments) {
  const browser = await chromium.launch({
    executablePath: order.executable,
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update', ...proxyArguments],
  });
  const context = await browser.newContext({ javaScriptEnabled: false, viewport: { width: 360, height: 740 } });
  const page = await context.newPage();
  const bodies = [];
  const problems = [];
  page.on('response', (response) => {
    if (response.status() === 200) bodies.push(response.body().then((body) => body.length, () => 0));
  });
  page.on('console', (message) => {
    // What a form is refused is no problem of the pages.
    const own = /^http:\/\/farhop\.internal\/(?!switch)/.test(message.location().url);
    if (message.type() === 'error' && own) problems.push(message.text());
  });
  const bytes = async () => (await Promise.all(bodies)).reduce((sum, length) => sum + length, 0);
  return { browser, page, problems, bytes };
}

async function main() {
  // Chromium asks no proxy for this machine's own addresses unless told to.
  const { browser, page, problems, bytes } = await seen(`--proxy-server=http://${order.proxy}`, '--proxy-bypass-list=<-loopback>');
  await page.goto('http://farhop.internal/', { waitUntil: 'networkidle' });
  const first = await bytes();
  const before = await page.locator('main').innerText();
  const font = await page.evaluate(() => getComputedStyle(document.querySelector('section')).borderTopStyle);
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  await page.screenshot({ path: path.join(order.folder, 'overview.png'), fullPage: true });

  await page.getByLabel('Not for this site').fill('https://www.bank.example/login');
  await page.getByRole('button', { name: 'Leave this site alone' }).click();
  const withSite = await page.locator('main').innerText();
  await page.getByRole('button', { name: 'Switch on again for bank.example' }).click();
  const withoutSite = await page.locator('main').innerText();
  await page.getByLabel('Not for this site').fill('co.uk');
  await page.getByRole('button', { name: 'Leave this site alone' }).click();
  const ending = await page.locator('main').innerText();
  await page.getByRole('link', { name: 'To the overview' }).click();
  await page.getByRole('button', { name: 'Switch it off for all my pages' }).click();
  const off = await page.locator('main').innerText();
  await page.getByRole('button', { name: 'Switch it on for me' }).click();
  const on = await page.locator('main').innerText();

  await page.goto(order.evil);
  await page.getByRole('button', { name: 'Win a prize' }).click();
  const evil = await page.locator('main').innerText();
  await page.goto('http://farhop.internal/');
  const afterEvil = await page.locator('main').innerText();

  await page.getByRole('link', { name: 'Certificate', exact: true }).click();
  await page.getByText('Debian and Ubuntu').click();
  const steps = await page.locator('main').innerText();
  await page.screenshot({ path: path.join(order.folder, 'install.png'), fullPage: true });
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'PEM file' }).click(),
  ]);
  await download.saveAs(path.join(order.folder, 'downloaded.pem'));
  const all = await bytes();
  await browser.close();

  // A browser that knows nothing but the PAC file finds the portal through it.
  const automatic = await seen(`--proxy-pac-url=${order.pac}`);
  await automatic.page.goto('http://farhop.internal/');
  const byPac = await automatic.page.title();
  await automatic.browser.close();

  console.log(JSON.stringify({ before, font, width, withSite, withoutSite, ending, off, on, evil, afterEvil, steps, byPac, first, bytes: all, problems }));
}

main().catch((error) => {
  console.error(String(error && error.message || error));
  process.exit(1);
});
