// Names are hostile, viewers are viewers, and links are for one use.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Mock } from "../mock/server.mjs";
import { HOSTILE } from "../mock/world.mjs";
import { launch, open, SCREENS } from "../support/browser.mjs";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

test("hostile names are text everywhere, and keep to their place", async () => {
  const mock = await new Mock().start();
  const page = await open(browser, mock.url);
  let asked = false;
  page.on("dialog", (dialog) => ((asked = true), dialog.dismiss()));
  for (const name of HOSTILE) {
    await page.goto(`${mock.url}#/disk/${encodeURIComponent(name)}`);
    await page.waitForFunction((name) => document.querySelector("h1")?.textContent === name, name);
    await page.waitForSelector(".lead");
    assert.doesNotMatch(await page.title(), /[\u202a-\u202e]/);
    const wide = await page.evaluate(() => document.querySelector("main").scrollWidth - document.querySelector("main").clientWidth);
    assert.equal(wide, 0, `${name} makes the page wider`);
    await page.click("button[aria-label^='Remove']");
    const command = await page.innerText("dialog .command code");
    assert.doesNotMatch(command, /[\u202a-\u202e]/);
    await page.keyboard.press("Escape");
  }
  // All rows on one screen.
  await page.setViewportSize({ width: 1280, height: 2400 });
  await page.goto(`${mock.url}#/disks?sort=name`);
  await page.waitForFunction((names) => names.every((name) => [...document.querySelectorAll("tbody th")].some((cell) => cell.textContent?.trim() === name)), HOSTILE);
  assert.equal(await page.locator("main script, main img").count(), 0);
  assert.equal(asked, false);
  assert.deepEqual(page.trouble, []);
  assert.deepEqual(mock.reports, []);
  await page.context().close();
  await mock.kill();
});

test("a viewer sees everything and no button that changes anything", async () => {
  const mock = await new Mock({ role: "viewer" }).start();
  const page = await open(browser, mock.url);
  for (const hash of Object.values(SCREENS)) {
    await page.goto(mock.url + hash);
    await page.waitForSelector("h1");
    await page.waitForTimeout(700);
    const buttons = await page.locator("main .action button, main button.primary, main button.danger").count();
    assert.equal(buttons, 0, hash);
  }
  const refused = await page.evaluate(() => fetch("/v1/migrations/3/pause", { method: "POST" }).then((answer) => answer.status));
  assert.equal(refused, 403);
  assert.ok(!mock.requests.some((one) => /^(POST|PUT|PATCH|DELETE) \/v1\/(?!predictions|storage-drs\/recommendations|migrations\/3\/pause)/.test(one)), "the page asked for a change");
  await page.context().close();
  await mock.kill();
});

test("the link of the address is exchanged and gone at once", async () => {
  const mock = await new Mock({ role: "none" }).start();
  const page = await open(browser, `${mock.url}#link=good`);
  await page.waitForSelector("nav");
  assert.equal(await page.evaluate(() => location.hash), "");
  assert.ok(!mock.requests.some((one) => one.includes("good")), "the link was in an address");
  await page.click("button:has-text('log out')");
  await page.waitForSelector(".login");
  await page.context().close();
  await mock.kill();
});

test("a link that is used up says where another comes from", async () => {
  const mock = await new Mock({ role: "none" }).start();
  const page = await open(browser, `${mock.url}#link=old`);
  await page.waitForSelector(".login");
  assert.match(await page.innerText(".login"), /has been used[\s\S]*sterna dashboard/);
  await page.context().close();
  await mock.kill();
});

test("the order of a table stands while somebody points at it", async () => {
  const mock = await new Mock().start();
  const page = await open(browser, `${mock.url}#/disks?sort=-iops`);
  await page.waitForSelector("tbody tr a");
  await page.hover("tbody tr:nth-child(3)");
  const names = () => page.locator("tbody tr th a").allInnerTexts();
  const before = await names();
  await page.waitForTimeout(3_500);
  assert.deepEqual((await names()).slice(0, before.length), before.slice(0, (await names()).length));
  assert.ok((await page.innerText("main")).includes("the order stands"));
  await page.context().close();
  await mock.kill();
});
