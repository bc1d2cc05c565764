// A browser for the end-to-end tests: the distribution's chromium, driven by playwright-core.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const EXECUTABLE = process.env.CHROMIUM ?? "/usr/bin/chromium";
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** All screens, with a name where one is needed. */
export const SCREENS = {
  now: "#/",
  disks: "#/disks",
  disk: "#/disk/web-7",
  datastores: "#/datastores",
  datastore: "#/datastore/slow",
  moves: "#/moves",
  plans: "#/plans",
  hosts: "#/hosts?vm=web-1",
  memory: "#/memory",
  levels: "#/levels?class=gold",
  whatif: "#/whatif?disk=web-7&to=fast",
  events: "#/events",
};

/** Starts the browser. */
export function launch() {
  return chromium.launch({ executablePath: EXECUTABLE, args: ["--no-sandbox"] });
}

/** Starts a browser that keeps what it knows in a directory, as somebody's own does. */
export function persistent(directory) {
  return chromium.launchPersistentContext(directory, { executablePath: EXECUTABLE, args: ["--no-sandbox"], viewport: { width: 1280, height: 800 } });
}

/** A page that notes whatever it should not do: errors, requests to others. */
export async function open(browser, url, { context = null, ...options } = {}) {
  const its = context ?? (await browser.newContext({ viewport: { width: 1280, height: 720 }, ...options }));
  const page = await its.newPage();
  const origin = new URL(url).origin;
  page.trouble = [];
  page.on("pageerror", (error) => page.trouble.push(`error: ${error.message}`));
  page.on("console", (said) => said.type() === "error" && !/ERR_|Failed to load resource/.test(said.text()) && page.trouble.push(`console: ${said.text()}`));
  page.on("request", (request) => {
    const where = new URL(request.url());
    if (where.origin !== origin && !["data:", "blob:"].includes(where.protocol)) page.trouble.push(`request to ${request.url()}`);
  });
  await page.goto(url);
  return page;
}

/** Shows a screen, and waits for its first figures. */
export async function show(page, base, hash) {
  await page.goto(base + hash);
  await page.waitForSelector("h1");
  await page.waitForFunction(() => document.querySelector(".aged, table, .nothing, .panel, .card"));
}

/** The violations of WCAG 2.1 A and AA that axe finds, in words. */
export async function violations(page) {
  await page.evaluate(AXE);
  const found = await page.evaluate(() =>
    globalThis.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"], resultTypes: ["violations"] }),
  );
  return found.violations.map((one) => `${one.id}: ${one.help}: ${one.nodes.slice(0, 3).map((node) => `${node.target} ${node.failureSummary?.split("\n")[1] ?? ""}`).join("; ")}`);
}
