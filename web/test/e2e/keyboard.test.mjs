// Everything by keys: see a slow disk, ask why, move it, watch, pause, resume, finish.
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

async function tabTo(page, name) {
  for (let presses = 0; presses < 120; presses += 1) {
    const found = await page.evaluate(() => document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.innerText ?? "");
    if (found.trim().startsWith(name)) return;
    await page.keyboard.press("Tab");
  }
  assert.fail(`no control ${name} was reached`);
}

test("a disk is found, explained and moved without a mouse", async () => {
  const page = await open(browser, mock.url);
  await page.waitForSelector("tbody tr");
  await page.keyboard.press("g");
  await page.keyboard.press("d");
  await page.waitForFunction(() => location.hash === "#/disks");
  await page.waitForSelector("input[type=search]");
  await page.waitForSelector("tbody tr a");
  await page.keyboard.press("/");
  await page.keyboard.type("vm-0001");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelectorAll("tbody tr th a").length === 1);
  await page.keyboard.press("Escape");
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => location.hash === "#/disk/vm-0001");
  await page.waitForSelector(".lead");

  await tabTo(page, "Move…");
  await page.keyboard.press("Enter");
  await page.waitForSelector("dialog[open] select");
  await page.locator("dialog select").focus();
  await page.keyboard.type("nas");
  await page.waitForSelector("dialog .forecast");
  assert.match(await page.innerText("dialog .command code"), /^sterna migrate vm-0001 --to nas --keep 97%$/);
  await page.locator("dialog button.primary").focus();
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => location.hash.startsWith("#/moves"));
  await page.waitForSelector("article.selected");

  await tabTo(page, "Pause vm-0001");
  await page.keyboard.press("Enter");
  await page.waitForSelector("article.selected .badge:has-text('paused')");
  await tabTo(page, "Resume vm-0001");
  await page.keyboard.press("Enter");
  await page.waitForSelector("article.selected .badge:has-text('copying')");
  await page.waitForSelector("article.selected .badge:has-text('completed')", { timeout: 60_000 });
  assert.equal(await page.innerText("article.selected .percent"), "100 %");
  assert.deepEqual(page.trouble, []);
  await page.context().close();
});

test("each button tells the daemon the command that it stands for", async () => {
  const page = await open(browser, `${mock.url}#/moves`);
  const [request] = await Promise.all([page.waitForRequest((one) => one.url().endsWith("/pause")), page.click("button[aria-label='Pause db']")]);
  assert.equal(request.headers()["sterna-command"], "sterna migration pause 3");
  await page.context().close();
});

test("what cannot be undone needs the name", async () => {
  const page = await open(browser, `${mock.url}#/moves`);
  await page.click("button[aria-label='Cancel mail']");
  const confirm = page.locator("dialog button.danger");
  assert.ok(await confirm.isDisabled());
  await page.fill("dialog input", "mai");
  assert.ok(await confirm.isDisabled());
  await page.fill("dialog input", "mail");
  await confirm.click();
  await page.waitForSelector("article[aria-label='Move of mail'] .badge:has-text('cancelled')");
  await page.context().close();
});

test("help lists the keys, and single keys can be switched off", async () => {
  const page = await open(browser, mock.url);
  await page.waitForSelector("tbody tr");
  await page.keyboard.press("?");
  await page.waitForSelector("dialog[open]");
  await page.check("dialog input[type=checkbox]");
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => !document.querySelector("dialog[open]"));
  await page.keyboard.press("g");
  await page.keyboard.press("d");
  assert.equal(await page.evaluate(() => location.hash), "");
  await page.context().close();
});

test("the arrows move a chart's cursor, and its values are told", async () => {
  const page = await open(browser, `${mock.url}#/disk/db`);
  await page.waitForSelector(".plot .uplot");
  await page.locator(".plot .canvas[tabindex]").first().focus();
  await page.keyboard.press("ArrowLeft");
  await page.waitForFunction(() => /\d\d:\d\d:\d\d/.test(document.querySelector(".plot .at")?.textContent ?? ""));
  // Figures come each second, and the cursor stays.
  await page.waitForTimeout(2_500);
  assert.match(await page.locator(".plot .at").first().innerText(), /\d\d:\d\d:\d\d/);
  await page.context().close();
});
