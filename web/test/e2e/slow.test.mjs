// Against the real daemon, if STERNA names one: somebody sees on Now that a disk is slow, is led
// to the neighbour that takes its time, limits the neighbour, and the disk recovers. The
// datastore's speed is given, so that it is slow on each machine in the same way.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, open } from "../support/browser.mjs";
import { Daemon, STERNA } from "../support/daemon.mjs";

const skip = STERNA === "" ? "STERNA names no program" : false;
/** The bound for a datastore's p95. A request of the neighbour takes the datastore 26 ms. */
const BOUND = "20ms";
let browser;
let daemon;
before(async () => {
  if (skip) return;
  browser = await launch();
  daemon = await new Daemon().start();
  daemon.datastore("sas", "--shape", "mbps=10");
  daemon.sterna("storage-drs", "set", "--latency", BOUND);
  for (const disk of ["mail", "web"]) daemon.sterna("disk", "create", disk, "--size", "64M", "--on", "sas");
  daemon.sterna("class", "create", "batch", "web");
  daemon.requests("mail", { length: 8192, perSecond: 40, queue: 4 });
  daemon.requests("web", { length: 262_144, perSecond: 1000, queue: 8, write: true });
});
after(async () => {
  await browser?.close();
  await daemon?.stop();
});

test("a slow disk is seen, its neighbour is found and limited, and the disk recovers", { skip }, async () => {
  const page = await open(browser, daemon.url);
  const row = page.locator("table[aria-label='The slowest disks'] tr:has(th:has-text('mail'))");
  // Nothing is promised to it, so it is not late.
  await row.locator(".badge:has-text('slow')").waitFor({ timeout: 15_000 });
  await row.locator("th a").click();

  await page.waitForFunction(() => /is above 20\.0 ms, the bound of Storage DRS/.test(document.querySelector(".lead")?.innerText ?? ""));
  await page.waitForFunction(() => /web, on the same datastore, transfers/.test(document.querySelector("main")?.innerText ?? ""));
  await page.click("table[aria-label='Disks on the same datastore'] th a:has-text('web')");

  await page.waitForFunction(() => document.querySelector("h1")?.innerText === "web");
  await page.click("header a:has-text('batch')");
  await page.click("button:has-text('New policy…')");
  assert.equal(await page.inputValue("dialog label:has-text('class') select"), "batch");
  await page.fill("dialog label:has-text('goal') input", "256K");
  assert.equal(await page.innerText("dialog .command code"), "sterna policy limit batch 256K");
  await page.click("dialog button.primary");
  await page.waitForSelector(".note:has-text('of class batch is made')");

  await page.goto(`${daemon.url}#/disk/mail`);
  await page.waitForFunction(() => /is within 20\.0 ms/.test(document.querySelector(".lead")?.innerText ?? ""), null, { timeout: 15_000 });
  await page.goto(`${daemon.url}#/`);
  await row.locator(".badge:has-text('none')").waitFor({ timeout: 15_000 });
  // What was done is told with the command that the dialog showed.
  await page.goto(`${daemon.url}#/events`);
  await page.waitForFunction(() => document.querySelector("main")?.innerText.includes("sterna policy limit batch 256K"));
  assert.deepEqual(page.trouble, []);
  await page.context().close();
});

test("a disk's page has a button that holds the neighbour, with what it does told before", { skip }, async () => {
  for (const policy of JSON.parse(daemon.sterna("policy", "list", "--json"))) daemon.sterna("policy", "remove", String(policy.id));
  const page = await open(browser, `${daemon.url}#/disk/mail`);
  await page.waitForFunction(() => /is above 20\.0 ms/.test(document.querySelector("main")?.innerText ?? ""), null, { timeout: 30_000 });
  await page.click("button[aria-label='Hold web']");
  const dialog = page.locator("dialog[open]");
  const command = await dialog.locator(".command code").innerText();
  assert.match(command, /^sterna policy limit batch \d+[KM]$/);
  assert.match(await dialog.innerText(), /web transfers .* now and may transfer .* then\. (Predicted: requests of mail|What that brings to mail is not predicted).*web becomes slower/s);
  await dialog.locator("button.primary").click();
  await page.waitForSelector(".note:has-text('web is held. To end that: sterna policy remove')");
  const [policy] = JSON.parse(daemon.sterna("policy", "list", "--json"));
  assert.equal(policy.class, "batch");
  await page.goto(`${daemon.url}#/events`);
  await page.waitForFunction((line) => document.querySelector("main")?.innerText.includes(line), command);
  assert.deepEqual(page.trouble, []);
  await page.context().close();
});
