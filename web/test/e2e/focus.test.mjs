// The focus stays where somebody works, and Back leads to where somebody was.
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

const focused = (page) => page.evaluate(() => document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.tagName);
const becomes = (page, label) => page.waitForFunction((wanted) => (document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.tagName) === wanted, label, { timeout: 8_000 });

test("after a row is removed the same control of the next row has the focus, and at last that of the row before", async () => {
  const page = await open(browser, `${mock.url}#/levels`);
  for (const [id, next] of [[2, "Remove policy 3"], [4, "Remove policy 3"]]) {
    await page.locator(`button[aria-label='Remove policy ${id}']`).focus();
    await page.keyboard.press("Enter");
    await page.locator("dialog[open] button.primary").focus();
    await page.keyboard.press("Enter");
    await page.locator(`button[aria-label='Remove policy ${id}']`).waitFor({ state: "detached" });
    await becomes(page, next);
  }
  assert.deepEqual(page.trouble, []);
  await page.context().close();
});

test("a dialog that was answered, or left, gives the focus back", async () => {
  const page = await open(browser, `${mock.url}#/levels`);
  await page.locator("button[aria-label='Remove policy 1']").focus();
  await page.keyboard.press("Enter");
  await page.waitForSelector("dialog[open]");
  await page.keyboard.press("Escape");
  await becomes(page, "Remove policy 1");
  await page.context().close();
});

test("a button that becomes another one keeps the focus at its place", async () => {
  const page = await open(browser, `${mock.url}#/moves`);
  await page.locator("button[aria-label='Pause db']").focus();
  await page.keyboard.press("Enter");
  await becomes(page, "Resume db");
  await page.keyboard.press("Enter");
  await becomes(page, "Pause db");
  await page.context().close();
});

test("after a disk is removed the list of disks is shown, and has the focus", async () => {
  const page = await open(browser, `${mock.url}#/disk/vm-0004`);
  await page.click("button[aria-label='Remove vm-0004']");
  await page.fill("dialog input", "vm-0004");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => location.hash === "#/disks");
  await becomes(page, "MAIN");
  await page.context().close();
});

test("after Back a page is scrolled as it was, and the link that led away has the focus", async () => {
  const page = await open(browser, `${mock.url}#/events`, { viewport: { width: 1280, height: 500 } });
  await page.waitForSelector("table[aria-label=Events] tbody tr:nth-child(30)");
  await page.evaluate(() => document.querySelector("main").scrollTo(0, 420));
  await page.waitForTimeout(100);
  await page.locator("tbody a[href='#/disk/mail']").focus();
  await page.evaluate(() => document.querySelector("main").scrollTo(0, 420));
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector("h1")?.innerText === "mail");
  assert.equal(await page.evaluate(() => document.querySelector("main").scrollTop), 0, "a new page begins at its top");
  await page.goBack();
  await page.waitForFunction(() => Math.abs((document.querySelector("main")?.scrollTop ?? 0) - 420) < 3);
  await page.waitForFunction(() => document.activeElement?.getAttribute("href") === "#/disk/mail");
  assert.deepEqual(page.trouble, []);
  await page.context().close();
});

test("after Back the table of disks shows the rows that it showed", async () => {
  const page = await open(browser, `${mock.url}#/disks?sort=name`, { viewport: { width: 1280, height: 500 } });
  await page.waitForSelector("tbody th a");
  await page.evaluate(() => document.querySelector(".scroll").scrollTo(0, 700));
  const link = page.locator("tbody th a", { hasText: "vm-0030" });
  await link.waitFor();
  const at = await page.evaluate(() => document.querySelector(".scroll").scrollTop);
  await link.click();
  await page.waitForFunction(() => document.querySelector("h1")?.innerText === "vm-0030");
  await page.goBack();
  await page.waitForFunction((wanted) => Math.abs((document.querySelector(".scroll")?.scrollTop ?? 0) - wanted) < 3, at);
  await link.waitFor();
  // The next page that is opened is a new one.
  await page.goto(`${mock.url}#/datastores`);
  // Seen, for two addresses in one moment are one page that stays.
  await page.waitForFunction(() => document.querySelector("h1")?.innerText === "Datastores");
  await page.goto(`${mock.url}#/disks?sort=name`);
  await page.waitForSelector("tbody th a");
  await page.waitForTimeout(500);
  assert.equal(await page.evaluate(() => document.querySelector(".scroll").scrollTop), 0);
  await page.context().close();
});
