// Events tell who did what to what, and with which command.
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

const rows = (page) => page.locator("table[aria-label=Events] tbody tr").allInnerTexts();

test("each event is a whole sentence, without an empty reason", async () => {
  const page = await open(browser, `${mock.url}#/events`);
  await page.waitForFunction(() => /The guard of the move of disk db from fast to slow \(migration 3\) cannot keep the promise/.test(document.querySelector("main")?.innerText ?? ""));
  for (const row of await rows(page)) {
    assert.doesNotMatch(row, /\bwhy\b|\breason\b|: *$|asked for/m, row);
    assert.doesNotMatch(row, /migration set \d+\s*(copy)?$/m, row);
  }
  await page.context().close();
});

test("what is changed of a move is one event with its own command, and nothing else is sent", async () => {
  const page = await open(browser, `${mock.url}#/moves`);
  await page.click("button[aria-label='Rate, guard… of mail']");
  const dialog = page.locator("dialog[open]");
  assert.ok(await dialog.locator("button.primary").isDisabled(), "nothing is changed yet");
  await dialog.locator("label:has-text('rate') input").first().fill("100M");
  assert.equal(await dialog.locator(".command code").innerText(), "sterna migration set 5 --rate 100M");
  await dialog.locator("button.primary").click();
  await dialog.waitFor({ state: "detached" });
  const sent = mock.requests.filter((one) => /^(PATCH|PUT) \/v1\/migrations/.test(one));
  assert.deepEqual(sent, ["PATCH /v1/migrations/5"]);
  await page.goto(`${mock.url}#/events`);
  await page.waitForFunction(() => /changed the rate of the move of disk mail from slow to nas \(migration 5\): at most 100 MiB\/s/.test(document.querySelector("main")?.innerText ?? ""));
  const row = (await rows(page)).find((one) => one.includes("at most 100 MiB/s"));
  assert.match(row, /dashboard\s+migration 5, of disk mail\s+changed.*\s+sterna migration set 5 --rate 100M/);
  await page.context().close();
});

test("a move that somebody paused says who did it", async () => {
  const page = await open(browser, `${mock.url}#/moves`);
  await page.click("button[aria-label='Pause db']");
  const card = page.locator("article[aria-label='Move of db']");
  await card.locator(".waits:has-text('an operator paused it')").waitFor();
  assert.match(await card.locator(".waits").innerText(), /Paused by dashboard, \d\d:\d\d:\d\d/);
  await page.context().close();
});
