// Each screen opens, answers its question, and is for everybody.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Mock } from "../mock/server.mjs";
import { launch, open, SCREENS, show, violations } from "../support/browser.mjs";

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

const WORDS = {
  now: /things? to look at/,
  disks: /60 disks/,
  disk: /is above|is within/,
  datastores: /offline/,
  datastore: /over its bound/,
  moves: /under way/,
  plans: /Likely done by/,
  hosts: /should be elsewhere/,
  memory: /the host has its reserve/,
  levels: /promise was kept|promises were missed/,
  whatif: /9 of 10 times/,
  events: /began to move disk db: guard keep 97%, to slow/,
};

for (const [name, hash] of Object.entries(SCREENS)) {
  test(`${name} answers its question, without barriers in light and dark, on a telephone too`, async () => {
    const page = await open(browser, mock.url + hash, { colorScheme: "light" });
    const answered = () => page.waitForFunction((words) => new RegExp(words).test(document.querySelector("main")?.innerText ?? ""), WORDS[name].source);
    await answered();
    await page.waitForTimeout(600);
    assert.deepEqual(await violations(page), [], "light");
    await page.emulateMedia({ colorScheme: "dark" });
    assert.deepEqual(await violations(page), [], "dark");
    await page.setViewportSize({ width: 390, height: 844 });
    await answered();
    await page.waitForTimeout(300);
    const wide = await page.evaluate(() => [document.documentElement, document.querySelector("main")].map((one) => one.scrollWidth - one.clientWidth));
    assert.deepEqual(wide, [0, 0], "wider than a telephone");
    assert.deepEqual(page.trouble, []);
    await page.context().close();
  });
}

test("an empty site says on each screen what to do", async () => {
  const empty = await new Mock({ empty: true }).start();
  const page = await open(browser, empty.url);
  for (const [hash, words] of [["#/", "There are no disks yet"], ["#/disks", "There is no disk yet"], ["#/datastores", "There is no datastore yet"], ["#/moves", "Nothing moves"], ["#/plans", "There is no plan"], ["#/hosts", "There are no hosts yet"], ["#/memory", "Sterna knows no VM"], ["#/events", "Nothing has happened yet"]]) {
    await page.goto(empty.url + hash);
    await page.waitForFunction((text) => document.querySelector("main")?.innerText.includes(text), words);
  }
  assert.deepEqual(page.trouble, []);
  await page.context().close();
  await empty.kill();
});

test("nothing that was opened broke the policy for content", () => {
  assert.deepEqual(mock.reports, []);
});

test("a wall shows figures and no controls", async () => {
  const page = await open(browser, `${mock.url}?wall=1`, { viewport: { width: 1920, height: 1080 } });
  await page.waitForSelector("table tbody tr");
  assert.equal(await page.locator("nav").count(), 0);
  assert.equal(await page.locator("main button").count(), 0);
  await page.context().close();
});

test("the address holds what is shown, so that a link is a report", async () => {
  const page = await open(browser, `${mock.url}#/disks?sort=name&filter=on:slow`);
  await page.waitForSelector("table tbody tr a");
  assert.equal(await page.inputValue("input[type=search]"), "on:slow");
  const names = await page.locator("tbody th a").allInnerTexts();
  assert.deepEqual(names, [...names].sort());
  await page.click("thead button:has-text('IO/s')");
  await page.waitForFunction(() => location.hash.includes("sort=-iops"));
  await show(page, mock.url, "#/disk/db?span=1h");
  assert.equal(await page.locator("button[aria-pressed=true]", { hasText: "1 h" }).count(), 1);
  await page.context().close();
});

test("what a policy would have met is drawn although its figures do not change", async () => {
  const page = await open(browser, `${mock.url}#/whatif`);
  await page.selectOption("main label:has-text('class') select", "gold");
  await page.fill("main label:has-text('goal') input", "10M");
  await page.waitForFunction(() => /did more than this limit permits in \d+% .*slower/.test(document.querySelector("main")?.innerText ?? ""));
  // A chart without its line has a few pixels of axes.
  await page.waitForFunction(() => {
    const canvas = document.querySelector(".plot canvas");
    const drawn = canvas?.getContext("2d")?.getImageData(0, 0, canvas.width, canvas.height).data ?? [];
    let count = 0;
    for (let at = 3; at < drawn.length; at += 4) count += drawn[at] > 0 ? 1 : 0;
    return count > 20_000;
  });
  assert.deepEqual(page.trouble, []);
  await page.context().close();
});

test("who is hurt is named first, with since when, by what, and what would help", async () => {
  const page = await open(browser, mock.url);
  await page.waitForFunction(() => /^\W*mail: requests take 15\.4 ms, usually 3\.1 ms, since .*Its neighbour web-7 does 91% of the work/.test(document.querySelector("h1")?.innerText ?? ""));
  const help = page.locator("ul[aria-label='Disks that are hurt'] .help");
  assert.match(await help.innerText(), /Would help: move mail to datastore fast.*sterna migrate mail --to fast --keep 97%/s);
  await page.click("ul[aria-label='Disks that are hurt'] a");
  await page.waitForFunction(() => /Requests take 15\.4 ms/.test(document.querySelector(".lead")?.innerText ?? ""));
  await page.context().close();
});

test("what a button does at once is told before", async () => {
  const page = await open(browser, `${mock.url}#/moves`);
  await page.hover("button[aria-label='Pause db']");
  await page.waitForFunction(() => /The copy stops at once.*The move ends later/.test([...document.querySelectorAll(".tip")].find((one) => getComputedStyle(one).display !== "none")?.innerText ?? ""));
  await page.waitForFunction(() => /copy \d+ %, until .*; then comparison, until/.test(document.querySelector("main")?.innerText ?? ""));
  await page.context().close();
});
