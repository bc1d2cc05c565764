// A class says which of its disks is worst, and keeps the week of a promise that was removed.
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

test("a class shows its disks, the worst first, and says how bad that one is", async () => {
  const page = await open(browser, `${mock.url}#/levels?class=gold`);
  const table = page.locator("table[aria-label='Disks of class gold, the worst first']");
  await table.waitFor();
  const means = async () => table.locator("tbody tr").evaluateAll((rows) => rows.map((row) => [row.querySelector("th").innerText, ...[...row.querySelectorAll("td")].slice(-4, -2).map((cell) => Number(cell.innerText))]).map(([name, queue, service]) => ({ name, mean: queue + service })));
  const shown = await means();
  assert.deepEqual(shown.map((one) => one.name).sort(), ["db", "log"]);
  assert.ok(shown[0].mean >= shown[1].mean, JSON.stringify(shown));
  await page.waitForFunction((name) => new RegExp(`${name} is worst: its mean of .* the 2.4 ms of the target of class gold`).test(document.querySelector("main").innerText), shown[0].name);
  assert.deepEqual(page.trouble, []);
  await page.context().close();
});

test("the week of a promise that was removed is shown still", async () => {
  const page = await open(browser, mock.url);
  const answer = async (path, change) => page.route(path, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: change(await response.json()) });
  });
  await answer("**/v1/policies", () => []);
  await answer("**/v1/classes", (all) => all.map((one) => ({ ...one, reservation: null })));
  await page.goto(`${mock.url}#/levels`);
  await page.reload();
  const week = page.locator("table[aria-label='Promises of the week']");
  await week.waitFor();
  assert.match(await week.innerText(), /gold\s+nothing is promised now\s+.*kept on \d of \d days/s);
  assert.equal(await week.locator("tbody tr").count(), 1, "a class to which nothing was promised has no row");
  await page.waitForFunction(() => /No class is promised anything now\. The week above is of promises/.test(document.querySelector("main").innerText));
  assert.deepEqual(page.trouble, []);
  await page.context().close();
});
