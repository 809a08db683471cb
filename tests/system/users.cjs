// A page through a proxy that asks for name and password, in a browser of its own for each password. Run as:
// node users.cjs ORDER, a JSON object of `playwright`, `executable`, `proxy`, `url`, `username` and `passwords`. Prints
// what was seen as JSON; judging is Rust's part.
'use strict';

const order = JSON.parse(process.argv[2]);
const { chromium } = require(order.playwright);

async function seen(password) {
  const browser = await chromium.launch({
    executablePath: order.executable,
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update'],
    proxy: { server: `http://${order.proxy}`, username: order.username, password },
  });
  const page = await browser.newPage();
  let error;
  await page.goto(order.url).catch((failure) => { error = failure.message.split('\n')[0]; });
  const title = await page.title();
  const images = await page.evaluate(() => [...document.images].map((image) => image.naturalWidth));
  await browser.close();
  return { title, images, error };
}

async function main() {
  const all = [];
  for (const password of order.passwords) all.push(await seen(password));
  console.log(JSON.stringify(all));
}

main().catch((error) => {
  console.error(String(error && error.message || error));
  process.exit(1);
});
