// What is drawn can be read: labels of charts, and tables on narrow screens.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Mock } from "../mock/server.mjs";
import { launch, open, SCREENS } from "../support/browser.mjs";

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

/** What scrolls sideways, and what is cut off. Names may be: a hover tells all of one. */
function tooWide() {
  const shown = (one) => one.clientWidth > 1 && !one.closest("thead, .hidden, .name, svg, .uplot, .rail .host");
  const wide = [...document.querySelectorAll("body, body *")].filter((one) => shown(one) && one.scrollWidth > one.clientWidth + 1);
  const cuts = wide.filter((one) => getComputedStyle(one).overflowX !== "visible");
  return cuts.map((one) => `${one.tagName}.${one.className} ${one.getAttribute("aria-label") ?? ""} ${one.scrollWidth} > ${one.clientWidth}: ${one.textContent.slice(0, 40)}`);
}

for (const [width, height, device] of [[1280, 800, "a small screen"], [390, 844, "a telephone"]]) {
  test(`on ${device} nothing is cut off, and nothing scrolls sideways`, async () => {
    const page = await open(browser, mock.url, { viewport: { width, height } });
    for (const [name, hash] of Object.entries(SCREENS)) {
      await page.goto(mock.url + hash);
      await page.waitForSelector("h1");
      await page.waitForTimeout(1_200);
      assert.deepEqual(await page.evaluate(tooWide), [], name);
    }
    assert.deepEqual(page.trouble, []);
    await page.context().close();
  });
}

test("on a telephone each figure of a table stands beside what it is", async () => {
  const page = await open(browser, `${mock.url}#/datastores`, { viewport: { width: 390, height: 844 } });
  const cell = page.locator("table[aria-label=Datastores] tbody tr:has-text('slow') td", { hasText: "2083" });
  await cell.waitFor();
  const seen = await cell.evaluate((one) => ({ display: getComputedStyle(one).display, label: getComputedStyle(one, "::before").content }));
  assert.deepEqual(seen, { display: "block", label: '"peak/s"' });
  // A row that comes later has its labels, too.
  mock.world.datastores.push({ ...mock.world.datastores[0], name: "new" });
  await page.locator("table[aria-label=Datastores] tr:has-text('new') td[data-label=free]").waitFor({ timeout: 12_000 });
  mock.world.datastores.pop();
  await page.context().close();
});
