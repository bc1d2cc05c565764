// A neighbour that is named as the cause is held from the page of the disk that suffers.
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

test("the button says what it does, and what it brings, before it holds the neighbour", async () => {
  const page = await open(browser, `${mock.url}#/disk/mail`);
  const button = page.locator("button[aria-label='Hold web-7']");
  await button.waitFor();
  assert.equal(await button.innerText(), "Hold web-7…");
  await button.click();
  const dialog = page.locator("dialog[open]");
  const command = await dialog.locator(".command code").innerText();
  assert.match(command, /^sterna policy limit batch \d+M$/);
  assert.match(await dialog.innerText(), /web-7 transfers .* now and may transfer .* then.*web-7 becomes slower.*class batch as a whole, so 1 other disk shares it: backup/s);
  assert.ok(!mock.requests.includes("POST /v1/policies"), "nothing is done before the answer");
  // What somebody reads stands still while figures change.
  await page.waitForTimeout(2_200);
  assert.equal(await dialog.locator(".command code").innerText(), command);
  await dialog.locator("button.primary").click();
  await page.waitForSelector(".note:has-text('web-7 is held')");
  assert.ok(mock.requests.includes("POST /v1/policies"));
  assert.equal(`${mock.world.policies.at(-1).aim.goal.bytes_per_second / 2 ** 20}M`, command.split(" ").at(-1));
  assert.deepEqual(page.trouble, []);
  await page.context().close();
});

test("a disk without a neighbour to blame has no such button", async () => {
  const page = await open(browser, `${mock.url}#/disk/db`);
  await page.waitForSelector(".figures.big");
  assert.equal(await page.locator("button:has-text('Hold')").count(), 0);
  await page.context().close();
});
