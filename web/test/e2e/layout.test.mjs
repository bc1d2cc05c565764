// What is drawn can be read: labels of charts, and tables on narrow screens.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Mock } from "../mock/server.mjs";
import { launch, open } from "../support/browser.mjs";

let browser;
let mock;
before(async () => {
  browser = await launch();
  mock = await new Mock().start();
});
after(async () => {
  await browser.close();
  await mock.kill();
});

test("a dashed line of a chart says what it is and its value", async () => {
  const page = await open(browser, `${mock.url}#/whatif`);
  await page.selectOption("main label:has-text('class') select", "gold");
  await page.fill("main label:has-text('goal') input", "30M");
  await page.waitForSelector("figcaption:has-text('limit of class gold 30.0 MiB/s')");
  await page.goto(`${mock.url}#/disk/web-7`);
  await page.waitForSelector("figcaption:has-text('p95 at most, the bound of Storage DRS 20.0 ms')");
  assert.match(await page.getAttribute(".plot .canvas", "aria-label"), /p95 at most, the bound of Storage DRS 20\.0 ms/);
  assert.deepEqual(page.trouble, []);
  await page.context().close();
});

test("the labels of a plan's lines do not lie on each other", async () => {
  const page = await open(browser, `${mock.url}#/plans`);
  await page.waitForSelector(".gantt text.now-text");
  for (const width of [1280, 700]) {
    await page.setViewportSize({ width, height: 800 });
    await page.waitForTimeout(300);
    const boxes = await page.evaluate(() => [...document.querySelectorAll(".gantt svg > text")].map((one) => [one.textContent, one.getBoundingClientRect()]).map(([text, { left, right, top, bottom }]) => ({ text, left, right, top, bottom })));
    assert.ok(boxes.some(({ text }) => /^deadline \d\d:\d\d$|^deadline \d{4}-/.test(text)), JSON.stringify(boxes));
    for (const [at, one] of boxes.entries()) {
      for (const other of boxes.slice(at + 1)) {
        const meet = one.left < other.right && other.left < one.right && one.top + 2 < other.bottom && other.top + 2 < one.bottom;
        assert.ok(!meet, `${one.text} lies on ${other.text} at ${width}`);
      }
    }
  }
  await page.context().close();
});
