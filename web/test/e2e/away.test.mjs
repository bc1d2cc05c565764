// The daemon is killed under open pages: they say so, keep what they had, and go on by
// themselves.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Mock } from "../mock/server.mjs";
import { launch, open, SCREENS } from "../support/browser.mjs";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

test("a killed daemon is told within 3 s, and its figures are crossed out", async () => {
  const mock = await new Mock().start();
  const page = await open(browser, `${mock.url}#/disks`);
  await page.waitForSelector("tbody tr a");
  // The banner takes the room of some rows: the first ones are looked at.
  const rows = async () => (await page.locator("tbody tr th a").allInnerTexts()).slice(0, 15);
  const killed = Date.now();
  await mock.kill();
  const before = await rows();
  await page.waitForSelector(".banner", { timeout: 5_000 });
  const told = Date.now() - killed;
  assert.ok(told <= 3_000, `${told} ms`);
  await page.waitForSelector("tbody[data-age=old]", { timeout: 5_000 });
  await page.waitForSelector("tbody[data-age=dead]", { timeout: 12_000 });
  assert.deepEqual(await rows(), before);

  const back = Date.now();
  await mock.restart();
  await page.waitForFunction(() => !document.querySelector(".banner"), null, { timeout: 10_000 });
  await page.waitForSelector("tbody[data-age=fresh]");
  console.log(`banner after ${told} ms, back after ${Date.now() - back} ms`);
  const names = await page.locator("tbody tr th a").allInnerTexts();
  assert.equal(new Set(names).size, names.length, "no row is there twice");
  assert.deepEqual(page.trouble, []);
  await page.context().close();
  await mock.kill();
});

test("nothing is said to be well while the daemon is away, and what brings the page back is", async () => {
  const mock = await new Mock({ empty: true }).start();
  const page = await open(browser, mock.url);
  await page.waitForFunction(() => /Nobody is hurt/.test(document.querySelector(".verdict")?.innerText ?? ""));
  await mock.kill();
  const killed = Date.now();
  await page.waitForFunction(() => /Not known now: the last figures are from/.test(document.querySelector(".verdict").innerText), null, { timeout: 6_000 });
  const took = Date.now() - killed;
  assert.ok(took <= 3_500, `${took} ms`);
  assert.equal(await page.locator(".verdict .badge[data-tone=ok]").count(), 0);
  const banner = (await page.innerText(".banner")).replaceAll(/\s+/g, " ");
  assert.match(banner, /connection broke, this page goes on by itself/);
  assert.ok(banner.includes(`without --dashboard ${new URL(mock.url).host} in the daemon's options`), banner);
  assert.match(banner, /nothing brings this page back. sterna dashboard/);
  await mock.restart();
  await page.waitForFunction(() => /Nobody is hurt/.test(document.querySelector(".verdict").innerText), null, { timeout: 10_000 });
  await page.context().close();
  await mock.kill();
});

test("after a restart that ended the session, every screen says so with the command", async () => {
  const mock = await new Mock().start();
  const pages = [];
  for (const hash of Object.values(SCREENS)) {
    const page = await open(browser, mock.url + hash);
    await page.waitForSelector("h1");
    pages.push([hash, page]);
  }
  await mock.kill();
  for (const [, page] of pages) await page.waitForSelector(".banner", { timeout: 10_000 });
  mock.role = "none";
  await mock.restart();
  for (const [hash, page] of pages) {
    await page.waitForSelector(".login", { timeout: 10_000 }).catch(() => assert.fail(`${hash} says nothing`));
    assert.match(await page.innerText(".login"), /The session has ended[\s\S]*sterna dashboard/);
    if (page !== pages[0][1]) await page.context().close();
  }
  // A new link in the same tab goes on.
  const [, page] = pages[0];
  await page.goto(`${mock.url}#link=good`);
  await page.waitForSelector("nav");
  await page.context().close();
  await mock.kill();
});

test("eight tabs over HTTP/1.1 stay alive with one stream", async () => {
  const mock = await new Mock().start();
  const context = await browser.newContext();
  const pages = [];
  for (const hash of ["#/", "#/disks", "#/moves", "#/disk/db", "#/disks?sort=name", "#/datastores", "#/plans", "#/events"]) {
    pages.push(await open(browser, mock.url + hash, { context }));
  }
  for (const page of pages) await page.waitForSelector("h1");
  await pages[0].waitForTimeout(2_000);
  assert.equal(mock.streams.size, 1);
  // All are told the time, and all get rows: by the stream, or by asking.
  for (const page of [pages[0], pages[1], pages[3], pages[4]]) await page.waitForSelector("tbody[data-age=fresh]");
  for (const page of pages) assert.equal(await page.locator(".banner").count(), 0);

  // The tab with the stream is closed: another takes over.
  await pages[0].close();
  await pages[1].waitForTimeout(3_000);
  assert.equal(mock.streams.size, 1);
  for (const page of pages.slice(1)) assert.equal(await page.locator(".banner").count(), 0);
  await pages[4].waitForSelector("tbody[data-age=fresh]");
  await context.close();
  await mock.kill();
});

test("a tab that comes back has nothing green that is of before", async () => {
  const mock = await new Mock({ empty: true }).start();
  const page = await open(browser, mock.url);
  await page.waitForFunction(() => /Nobody is hurt/.test(document.querySelector(".verdict")?.innerText ?? ""));
  const turn = (hidden) => {
    Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  };
  await page.evaluate(turn, true);
  await mock.kill();
  await page.waitForTimeout(4_000);
  await page.evaluate(turn, false);
  // At the next frame, and not when the daemon has been silent for some time again.
  const said = await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => resolve(document.querySelector(".verdict").innerText))));
  assert.match(said, /Not known now/);
  await page.context().close();
});

test("a hidden tab lets the stream go, and takes it again", async () => {
  const mock = await new Mock().start();
  const page = await open(browser, `${mock.url}#/disks`);
  await page.waitForSelector("tbody tr a");
  assert.equal(mock.streams.size, 1);
  const turn = (hidden) =>
    page.evaluate((hidden) => {
      Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }, hidden);
  await turn(true);
  await page.waitForTimeout(500);
  assert.equal(mock.streams.size, 0);
  await turn(false);
  await page.waitForSelector("tbody[data-age=fresh]");
  assert.equal(mock.streams.size, 1);
  await page.context().close();
  await mock.kill();
});
