// Pages as a browser shows them, with a browser of its own for each visit. Run as: node visits.cjs ORDER, a JSON object of
// `playwright`, `executable` and `visits`, a list of {arguments, proxy, urls, until, expression} of which each may be left out but
// `urls`; each page is given the time to become one of the title `until`, and the expression is awaited on it.
// Prints for each URL what was seen as JSON; judging is Rust's part.
'use strict';

const order = JSON.parse(process.argv[2]);
const { chromium } = require(order.playwright);

async function visit({ arguments: more = [], proxy, urls, until, expression }) {
  const browser = await chromium.launch({
    executablePath: order.executable,
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update', ...more],
    proxy,
  });
  const page = await browser.newPage();
  const seen = [];
  for (const url of urls) {
    let error;
    await page.goto(url).catch((failure) => { error = failure.message.split('\n')[0]; });
    // What it has become instead is seen below.
    if (until) await page.waitForFunction((wanted) => document.title === wanted, until).catch(() => {});
    const title = await page.title();
    const images = await page.evaluate(() => [...document.images].map((image) => image.naturalWidth));
    const value = expression && await page.evaluate(expression);
    seen.push({ title, images, error, value });
  }
  await browser.close();
  return seen;
}

async function main() {
  const all = [];
  for (const one of order.visits) all.push(await visit(one));
  console.log(JSON.stringify(all));
}

main().catch((error) => {
  console.error(String(error && error.message || error));
  process.exit(1);
});
