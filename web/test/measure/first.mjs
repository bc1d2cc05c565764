// When the first figure of a disk is on screen, from the moment somebody asked for the page:
// with nothing of the page in the browser (cold), and as somebody who comes back (warm).
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { persistent } from "../support/browser.mjs";
import { Daemon } from "../support/daemon.mjs";
import { DIST } from "../support/files.mjs";
import { quantile } from "./chrome.mjs";

/** Disks of the site, which ask for nothing: the page's time is measured. */
const DISKS = 40;
/** Chromium keeps what it has compiled of a script from the third visit on. */
const VISITS = 3;

/** So many visits of the page in each directory, in turns. */
export async function first(dists, { times = 15 }) {
  const found = new Map(dists.flatMap((dist) => ["cold", "warm"].map((kind) => [`${kind} ${dist}`, []])));
  const profile = mkdtempSync(join(tmpdir(), "sterna-measure-"));
  const context = await persistent(profile);
  const daemon = await new Daemon().start();
  daemon.datastore("fast");
  for (let at = 1; at <= DISKS; at += 1) daemon.sterna("disk", "create", `vm-${at}`, "--size", "64M", "--on", "fast");
  const pages = [];
  for (const dist of dists) pages.push({ dist, url: await daemon.serve(dist || DIST) });
  for (let time = 0; time < times; time += 1) {
    for (const { dist, url } of pages) {
      found.get(`cold ${dist}`).push(await visit(context, url, true));
      for (let again = 1; again < VISITS; again += 1) await visit(context, url, false);
      found.get(`warm ${dist}`).push(await visit(context, url, false));
    }
  }
  await context.close();
  await daemon.stop();
  rmSync(profile, { recursive: true, force: true });
  return [...found].map(([name, values]) => {
    const [kind, dist] = name.split(" ");
    const at = (part) => Math.round(quantile(values, part));
    return { measured: "first", dist, kind, least_ms: at(0), median_ms: at(0.5), p90_ms: at(0.9), times: values.length };
  });
}

async function visit(context, url, cold) {
  const page = await context.newPage();
  if (cold) {
    const cdp = await context.newCDPSession(page);
    await cdp.send("Network.clearBrowserCache");
  }
  // A frame that begins with a figure in the page has drawn it when the next task runs.
  await page.addInitScript(() => {
    globalThis.figure = new Promise((resolve) => {
      const look = () => {
        const cell = [...document.querySelectorAll("td[data-figure]")].find((one) => /\d/.test(one.textContent));
        if (!cell) return void requestAnimationFrame(look);
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = () => resolve(performance.now());
        port2.postMessage(null);
      };
      requestAnimationFrame(look);
    });
  });
  await page.goto(url);
  const took = await page.evaluate(() => globalThis.figure);
  await page.close();
  return took;
}
