// Against the real daemon, if STERNA names one: see a disk, move it, watch, pause, resume,
// finish; and a kill -9 under an open page.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, open, SCREENS } from "../support/browser.mjs";
import { Daemon, STERNA } from "../support/daemon.mjs";

const skip = STERNA === "" ? "STERNA names no program" : false;
let browser;
let daemon;
before(async () => {
  if (skip) return;
  browser = await launch();
  daemon = await new Daemon().start();
  daemon.datastore("fast");
  daemon.datastore("slow", "--shape", "mbps=60");
  daemon.sterna("disk", "create", "db", "--size", "1G", "--on", "fast");
  daemon.sterna("disk", "create", "web", "--size", "1G", "--on", "fast");
  daemon.load("db");
});
after(async () => {
  await browser?.close();
  await daemon?.stop();
});

test("a disk is seen, moved, paused, resumed and has moved", { skip }, async () => {
  const page = await open(browser, `${daemon.url}#/disk/db`);
  await page.waitForFunction(() => /is within|is above|nothing was promised/.test(document.querySelector(".lead")?.innerText ?? ""));
  await page.waitForSelector(".plot .uplot");
  await page.click("button:has-text('Move…')");
  await page.selectOption("dialog select", "slow");
  await page.fill("dialog label:has-text('keeps') input", "");
  assert.equal(await page.innerText("dialog .command code"), "sterna migrate db --to slow");
  await page.click("dialog button.primary");
  await page.waitForSelector("article.selected");
  await page.click("button[aria-label='Pause db']");
  await page.waitForSelector("article.selected .badge:has-text('paused')");
  await page.click("button[aria-label='Resume db']");
  await page.waitForSelector("article.selected .badge:has-text('completed')", { timeout: 120_000 });
  assert.deepEqual(page.trouble, []);
  // What was done is told with the commands that the buttons showed.
  await page.goto(`${daemon.url}#/events`);
  await page.waitForFunction(() => document.body.innerText.includes("sterna migration pause 1"));
  await page.context().close();
});

test("each screen opens without an error", { skip }, async () => {
  const page = await open(browser, daemon.url);
  const refused = [];
  page.on("response", (answer) => answer.status() >= 400 && refused.push(`${answer.status()} ${answer.url()}`));
  for (const hash of Object.values(SCREENS)) {
    await page.goto(daemon.url + hash.replace("web-7", "web"));
    await page.waitForSelector("h1");
    await page.waitForTimeout(1_500);
  }
  assert.deepEqual(page.trouble, []);
  assert.deepEqual(refused.filter((one) => !one.includes("predictions") && !one.includes("gold")), []);
  await page.context().close();
});

test("a daemon that is killed is told within 3 s, and the page goes on by itself", { skip }, async () => {
  const page = await open(browser, `${daemon.url}#/disks`);
  await page.waitForSelector("tbody[data-age=fresh] tr a");
  const killed = Date.now();
  await daemon.kill();
  await page.waitForSelector(".banner", { timeout: 5_000 });
  assert.ok(Date.now() - killed <= 3_000, `${Date.now() - killed} ms`);
  await daemon.start();
  await page.waitForFunction(() => !document.querySelector(".banner"), null, { timeout: 15_000 });
  await page.waitForSelector("tbody[data-age=fresh] tr a");
  const names = await page.locator("tbody tr th a").allInnerTexts();
  assert.deepEqual([...new Set(names)].sort(), ["db", "web"]);
  assert.equal(names.length, 2);
  await page.context().close();
});
