// How long it takes from the answer to a request of a guest until its figure is on screen, with
// the real daemon: the disk is idle, a single read is answered, and its row shows it.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { launch, open } from "../support/browser.mjs";
import { Daemon } from "../support/daemon.mjs";
import { DIST } from "../support/files.mjs";
import { quantile } from "./chrome.mjs";

/** The figures are of the last second: after so long, and what comes by chance, the row is idle again. */
const IDLE_MS = 2_200;
const CHANCE_MS = 1_000;

export async function fresh(dists, { times = 100 }) {
  const daemon = await new Daemon().start();
  daemon.datastore("fast");
  daemon.sterna("disk", "create", "db", "--size", "64M", "--on", "fast");
  const guest = spawn("/usr/bin/python3", [join(import.meta.dirname, "../support/once.py"), `nbd+unix:///db?socket=${join(daemon.work, "nbd.sock")}`], { stdio: ["pipe", "pipe", "inherit"] });
  daemon.children.push(guest);
  const said = createInterface(guest.stdout);
  const browser = await launch();
  const page = await open(browser, await daemon.serve(dists[0] || DIST));
  await page.waitForSelector("td[data-figure]");
  const took = [];
  for (let time = 0; time < times; time += 1) {
    await page.waitForTimeout(IDLE_MS + Math.random() * CHANCE_MS);
    // Guest and browser are on one machine, with one clock. The task after a frame is after its drawing.
    const shown = page.evaluate(() => new Promise((resolve) => {
      const look = () => {
        if (document.querySelector("td[data-figure]")?.textContent === "0") return void requestAnimationFrame(look);
        setTimeout(() => resolve(Date.now()));
      };
      requestAnimationFrame(look);
    }));
    const answered = once(said, "line");
    guest.stdin.write("\n");
    took.push((await shown) - Number((await answered)[0]));
  }
  await browser.close();
  await daemon.stop();
  const at = (part) => Math.round(quantile(took, part));
  return [{ measured: "fresh", dist: dists[0], times, median_ms: at(0.5), p90_ms: at(0.9), p99_ms: at(0.99), most_ms: at(1) }];
}
