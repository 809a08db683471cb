// The portal as a user of a browser without JavaScript meets it. Run as: node portal.cjs ORDER, a JSON object of
// `playwright`, `executable`, `proxy`, `pac` and `folder`. Prints what was seen as JSON; judging is Rust's part.
'use strict';

const path = require('node:path');
const order = JSON.parse(process.argv[2]);
const { chromium } = require(order.playwright);

async function seen(proxyArgument) {
  const browser = await chromium.launch({
    executablePath: order.executable,
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update', proxyArgument],
  });
  const context = await browser.newContext({ javaScriptEnabled: false, viewport: { width: 360, height: 740 } });
  const page = await context.newPage();
  let bytes = 0;
  const problems = [];
  page.on('response', async (response) => {
    if (response.status() === 200) bytes += (await response.body().catch(() => [])).length;
  });
  page.on('console', (message) => { if (message.type() === 'error') problems.push(message.text()); });
  return { browser, page, problems, bytes: () => bytes };
}

async function main() {
  const { browser, page, problems, bytes } = await seen(`--proxy-server=http://${order.proxy}`);
  await page.goto('http://farhop.internal/');
  const before = await page.locator('main').innerText();
  const font = await page.evaluate(() => getComputedStyle(document.querySelector('section')).borderTopStyle);
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  await page.screenshot({ path: path.join(order.folder, 'overview.png'), fullPage: true });

  await page.getByLabel('Not for this site').fill('https://www.bank.example/login');
  await page.getByRole('button', { name: 'Leave this site alone' }).click();
  const withSite = await page.locator('main').innerText();
  await page.getByRole('button', { name: 'Switch on again for bank.example' }).click();
  const withoutSite = await page.locator('main').innerText();
  await page.getByRole('button', { name: 'Switch it off for all my pages' }).click();
  const off = await page.locator('main').innerText();
  await page.getByRole('button', { name: 'Switch it on for me' }).click();
  const on = await page.locator('main').innerText();

  await page.getByRole('link', { name: 'Certificate', exact: true }).click();
  await page.getByText('Debian and Ubuntu').click();
  const steps = await page.locator('main').innerText();
  await page.screenshot({ path: path.join(order.folder, 'install.png'), fullPage: true });
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'PEM file' }).click(),
  ]);
  await download.saveAs(path.join(order.folder, 'downloaded.pem'));
  await browser.close();

  // A browser that knows nothing but the PAC file finds the portal through it.
  const automatic = await seen(`--proxy-pac-url=${order.pac}`);
  await automatic.page.goto('http://farhop.internal/');
  const byPac = await automatic.page.title();
  await automatic.browser.close();

  console.log(JSON.stringify({ before, font, width, withSite, withoutSite, off, on, steps, byPac, bytes: bytes(), problems }));
}

main().catch((error) => {
  console.error(String(error && error.message || error));
  process.exit(1);
});
