// The daemon's own address, with its own page, if STERNA names a program: a link opens one
// session, and neither a viewer nor another page changes anything.
import assert from "node:assert/strict";
import { createServer, request } from "node:http";
import { after, before, test } from "node:test";
import { launch, open, SCREENS, show } from "../support/browser.mjs";
import { Daemon, STERNA } from "../support/daemon.mjs";

const skip = STERNA === "" ? "STERNA names no program" : false;
let browser;
let daemon;
before(async () => {
  if (skip) return;
  browser = await launch();
  daemon = await new Daemon().start();
  daemon.datastore("fast");
  daemon.sterna("disk", "create", "db", "--size", "64M", "--on", "fast");
});
after(async () => {
  await browser?.close();
  await daemon?.stop();
});

const inMaintenance = () => JSON.parse(daemon.sterna("datastore", "show", "fast", "--json")).maintenance;

/** What the daemon answers to a program that sends these headers. */
function ask(address, method, path, headers, body = "") {
  return new Promise((resolve, reject) => {
    const asked = request(new URL(path, address), { method, headers }, (answer) => {
      let text = "";
      answer.on("data", (part) => (text += part));
      answer.on("end", () => resolve({ status: answer.statusCode, text }));
    });
    asked.on("error", reject).end(body);
  });
}

test("a link works once, and leaves a cookie that no script reads", { skip }, async () => {
  const link = daemon.link();
  const page = await open(browser, link);
  await page.waitForSelector("nav");
  await page.waitForSelector("td[data-figure]");
  assert.equal(await page.evaluate(() => location.hash), "");
  assert.equal(await page.evaluate(() => document.cookie), "");
  const [cookie] = await page.context().cookies();
  assert.deepEqual([cookie.name, cookie.httpOnly, cookie.sameSite], ["sterna-session", true, "Strict"]);
  // The session is there for the next page, too.
  await page.reload();
  await page.waitForSelector("td[data-figure]");

  const late = await open(browser, link);
  await late.waitForSelector(".login");
  assert.match(await late.innerText(".login"), /link/);
  assert.match(await late.innerText(".login"), /sterna dashboard/);
  assert.deepEqual([page.trouble, late.trouble], [[], []]);
  await late.context().close();

  await page.click("button:has-text('log out')");
  await page.waitForSelector(".login");
  await page.context().close();
});

test("another page in the same browser reads nothing and changes nothing", { skip }, async () => {
  const page = await open(browser, daemon.link());
  await page.waitForSelector("nav");
  const address = await page.evaluate(() => location.origin);
  const elsewhere = createServer((_, response) => response.writeHead(200, { "content-type": "text/html" }).end("<title>elsewhere</title>"));
  await new Promise((resolve) => elsewhere.listen(0, "127.0.0.1", resolve));
  const other = await page.context().newPage();
  await other.goto(`http://127.0.0.1:${elsewhere.address().port}/`);
  // Another port is the same site for a browser: the cookie goes along, and the daemon has to refuse.
  const [sent, read] = await other.evaluate(async (address) => {
    const change = { method: "PUT", credentials: "include", body: '{"maintenance":true}' };
    const refused = (asked) => asked.then(() => "answered", () => "refused");
    const form = { ...change, method: "POST", mode: "no-cors" };
    await refused(fetch(`${address}/v1/datastores/fast/maintenance`, form));
    return [await refused(fetch(`${address}/v1/datastores/fast/maintenance`, change)), await refused(fetch(`${address}/v1/status`, { credentials: "include" }))];
  }, address);
  assert.deepEqual([sent, read], ["refused", "refused"]);
  assert.equal(inMaintenance(), false);

  const [{ value }] = await page.context().cookies();
  const cookie = `sterna-session=${value}`;
  const change = (headers) => ask(address, "PUT", "/v1/datastores/fast/maintenance", { "content-type": "application/json", cookie, ...headers }, '{"maintenance":true}');
  for (const headers of [{ origin: "http://evil.example" }, { origin: "null" }, {}]) {
    const { status, text } = await change(headers);
    assert.equal(status, 403, JSON.stringify(headers));
    assert.match(text, /comes from another page/);
  }
  assert.equal((await change({ origin: address, host: "evil.example" })).status, 421);
  assert.equal(inMaintenance(), false);
  elsewhere.close();
  await page.context().close();
});

test("a viewer's page has no button that acts, and the daemon refuses what one would do", { skip }, async () => {
  const page = await open(browser, daemon.link("--viewer"));
  await page.waitForSelector("nav");
  const address = await page.evaluate(() => `${location.origin}/`);
  for (const hash of Object.values(SCREENS)) {
    await show(page, address, hash.replace("web-7", "db").replace("slow", "fast"));
    assert.equal(await page.locator("main .action button, main button.primary, main button.danger").count(), 0, hash);
  }
  assert.match(await page.innerText(".who"), /viewer/);
  const { status, message } = await page.evaluate(async () => {
    const answer = await fetch("/v1/datastores/fast/maintenance", { method: "PUT", headers: { "content-type": "application/json" }, body: '{"maintenance":true}' });
    return { status: answer.status, ...(await answer.json()) };
  });
  assert.deepEqual([status, message], [403, "a viewer changes nothing"]);
  await page.context().close();
});

test("a page whose session is a viewer's by now says in words that nothing was changed", { skip }, async () => {
  const page = await open(browser, daemon.link());
  await page.waitForSelector("nav");
  await page.goto(`${await page.evaluate(() => location.origin)}/#/datastore/fast`);
  await page.waitForSelector("button:has-text('Maintenance')");
  // The same browser logs in as a viewer: its one cookie is another one now.
  const viewer = await open(browser, daemon.link("--viewer"), { context: page.context() });
  await viewer.waitForSelector("nav");
  await page.click("button:has-text('Maintenance')");
  await page.click("dialog button[type=submit]");
  await page.waitForSelector(".note.bad");
  const words = await page.innerText(".note.bad");
  assert.match(words, /a viewer changes nothing/);
  assert.match(words, /sterna dashboard/);
  assert.equal(inMaintenance(), false);
  assert.deepEqual(page.trouble, []);
  await page.context().close();
});
