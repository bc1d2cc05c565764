// What people missed who looked at an array under load: what is usual, how full a datastore will
// be and what helps, whom a deed has helped, and that nothing is kept that is wrong.
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

const reads = (page, pattern) => page.waitForFunction((words) => new RegExp(words, "s").test(document.querySelector("main")?.innerText ?? ""), pattern.source);

test("a disk that is slower than usual is named before it is hurt, and what was tried for it", async () => {
  const page = await open(browser, mock.url);
  const list = page.locator("ul[aria-label='Disks that are slower than usual']");
  await list.waitFor();
  assert.match(await list.innerText(), /backup: 3\.0 times its usual 8\.3 ms for .*Tried: it has not helped yet: requests take 24\.9 ms, before 25\.3 ms/s);
  await list.locator("a").first().click();
  await reads(page, /Slower than usual: 3\.0 times its usual 8\.3 ms for/);
  await reads(page, /Usually reads up to 16\.0 KiB take 3\.3 ms, writes up to 16\.0 KiB 0\.50 ms, longer writes 7\.2 ms \(learned since/);
  await page.goto(`${mock.url}#/disks?filter=backup`);
  await page.waitForFunction(() => [...document.querySelectorAll("tbody tr")].some((row) => /backup[^]*slower/.test(row.innerText)));
  await page.goto(`${mock.url}#/disk/vm-0002`);
  await reads(page, /Usually learned since .*; not known yet: 2 min 00 s of 5 min 00 s of load are seen/);
  assert.deepEqual(page.trouble, []);
  await page.context().close();
});

test("a VM's disks that QEMU serves have their figures, and what Sterna does not see of them is said", async () => {
  const page = await open(browser, `${mock.url}#/hosts`);
  const vm = page.locator("details.vm", { hasText: "web-1" });
  await vm.waitFor();
  await vm.locator("summary").click();
  await reads(page, /QEMU serves 120 IO\/s/);
  await reads(page, /no p99, no history and no service level of them/);
  // The one that is open is asked all the time: its figures do not grow old.
  await page.waitForTimeout(4_500);
  assert.equal(await vm.locator("td .aged:not([data-age=fresh])").count(), 0);
  assert.deepEqual(page.trouble, []);
  await page.context().close();
});

test("a datastore without room says when it is full, who shares its room, and what would help", async () => {
  const page = await open(browser, mock.url);
  await reads(page, /slow: p95 .*of its room is taken; fills up by 20\.0 GiB an hour .*: full in 2 d \d\d h.*Would help: move .* to fast/);
  await page.locator(".attention li", { hasText: "full in 2 d" }).locator("a", { hasText: "What if?" }).click();
  await page.waitForFunction(() => /#\/whatif\?disk=.*&to=fast/.test(location.hash));
  await reads(page, /The disks that stay on slow get faster|Gain: the disks that stay on slow/);
  await page.goto(`${mock.url}#/datastore/nas`);
  await reads(page, /shares the file system of old: what one takes is gone for all/);
  await page.goto(`${mock.url}#/datastores`);
  await reads(page, /full in[\s\S]*2 d/);
  assert.deepEqual(page.trouble, []);
  await page.context().close();
});

test("a datastore whose requests hang says so at once, and how many", async () => {
  const page = await open(browser, mock.url);
  await page.route(/v1\/top\?by=datastore/, async (route) => {
    const response = await route.fetch();
    const found = await response.json();
    const still = (side) => ({ ...side, iops: 0, bytes_per_second: 0, response_us: null });
    for (const { load } of found.rows) Object.assign(load, { read: still(load.read), write: still(load.write), p50_us: null, p95_us: null, p99_us: null, max_us: null, outstanding: 0, in_flight: 6 });
    await route.fulfill({ response, json: found });
  });
  await page.goto(`${mock.url}#/datastore/fast`);
  await reads(page, /hangs: 6 requests under way, and none answered/);
  await reads(page, /under way\s+6\s/);
  assert.deepEqual(page.trouble, []);
  await page.context().close();
});

test("neither a policy that contradicts another nor a plan without a disk can be kept", async () => {
  const page = await open(browser, `${mock.url}#/levels`);
  await page.click("button:has-text('New policy')");
  const dialog = page.locator("dialog");
  await dialog.locator("label:has-text('class') select").selectOption("gold");
  await dialog.locator("label:has-text('goal') input").fill("100iops");
  await page.waitForFunction(() => /below the reservation of class gold/.test(document.querySelector("dialog")?.innerText ?? ""));
  assert.ok(await dialog.locator("button[type=submit]").isDisabled());
  await dialog.locator("label:has-text('goal') input").fill("5000iops");
  await page.waitForFunction(() => /Gain: .*Lose: the 2 disks of class gold/.test(document.querySelector("dialog")?.innerText ?? ""));
  assert.ok(!(await dialog.locator("button[type=submit]").isDisabled()));
  await page.goto(`${mock.url}#/plans`);
  await page.click("button:has-text('Empty a datastore')");
  await dialog.locator("label:has-text('datastore') select").selectOption("tiny");
  await page.waitForFunction(() => /No disk of tiny can move, so there is no plan to make/.test(document.querySelector("dialog")?.innerText ?? ""));
  assert.ok(await dialog.locator("button[type=submit]").isDisabled());
  await page.context().close();
});

test("what cannot be predicted yet is told, and is no failure in the browser's console", async () => {
  const page = await open(browser, `${mock.url}#/whatif?disk=db&to=tiny`);
  const failed = [];
  page.on("response", (answer) => answer.status() >= 400 && failed.push(`${answer.status()} ${answer.url()}`));
  await page.reload();
  await reads(page, /No prediction: Sterna has not copied from fast or to tiny yet.*move a small disk first/);
  await page.click("nav a:has-text('Disks')");
  await page.waitForSelector("tbody tr a");
  assert.deepEqual(failed, []);
  await page.context().close();
});

test("a disk has a quarter, and a move says that nothing can be lost", async () => {
  const page = await open(browser, `${mock.url}#/disk/db?span=90d`);
  await reads(page, /each point joins up to 4 windows/);
  assert.equal(await page.locator("button[aria-pressed=true]", { hasText: "90 days" }).count(), 1);
  await reads(page, /Collecting since \d\d:\d\d:\d\d|Collected since \d\d:\d\d:\d\d/);
  await page.goto(`${mock.url}#/moves`);
  await reads(page, /The image on fast has all data and stays the truth until the switch-over\. A cancel, a crash or a failure of slow before that loses nothing/);
  assert.deepEqual(page.trouble, []);
  await page.context().close();
});

test("a very wide screen is used", async () => {
  const page = await open(browser, mock.url, { viewport: { width: 3840, height: 2160 } });
  await page.waitForSelector("table tbody tr a");
  const part = await page.evaluate(() => document.querySelector(".screen").clientWidth / document.querySelector("main").clientWidth);
  assert.ok(part > 0.95, String(part));
  await page.context().close();
});
