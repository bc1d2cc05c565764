// The pages that `sterna lab` and `sterna sim` write: each chart is drawn, in the units that
// are said.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { launch, open } from "../support/browser.mjs";
import { STERNA } from "../support/daemon.mjs";

const SCENARIO = join(dirname(fileURLToPath(import.meta.url)), "../../../scenarios/evacuate-at-night.toml");
const skip = STERNA === "" ? "STERNA names no program" : false;

let browser;
let out;
before(async () => {
  browser = await launch();
  out = mkdtempSync(join(tmpdir(), "sterna-report-"));
});
after(async () => {
  await browser.close();
  rmSync(out, { recursive: true });
});

/** The titles of the charts on which something is drawn. */
const drawn = (page) =>
  page.evaluate(() =>
    [...document.querySelectorAll("#charts h3")]
      .filter((head) => {
        const canvas = head.nextElementSibling.querySelector("canvas");
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        // Two lines of text and an empty frame are less.
        return data.filter((part, at) => at % 4 === 3 && part > 0).length > 2_000;
      })
      .map((head) => head.innerText),
  );

test("a report of an experiment draws response times on a logarithmic axis, and what each side keeps", { skip }, async () => {
  execFileSync(STERNA, ["lab", "qos", "--virtual", "--out", out], { stdio: "ignore" });
  const page = await open(browser, pathToFileURL(join(out, "qos.html")).href);
  const titles = await drawn(page);
  assert.deepEqual(titles, [
    "Throughput MB/s",
    "Requests IO/s",
    "Mean response time ms, logarithmic",
    "Response time, 99th percentile ms, logarithmic",
    "What each side keeps of its throughput %",
  ]);
  assert.match(await page.locator("main").innerText(), /Time is in minutes and seconds/);
  assert.deepEqual(page.trouble, []);
  await page.context().close();
});

test("a scenario of hours has an axis of hours", { skip }, async () => {
  execFileSync(STERNA, ["sim", "run", SCENARIO, "--out", out], { stdio: "ignore" });
  const page = await open(browser, pathToFileURL(join(out, "evacuate-at-night.html")).href, { colorScheme: "dark" });
  assert.equal((await drawn(page)).length, 5);
  const text = await page.locator("main").innerText();
  assert.match(text, /Time is in hours and minutes/);
  // The copying begins again on the next night.
  assert.match(text, /\n\d+\s+30:\d\d:\d\d\s/);
  assert.deepEqual(page.trouble, []);
  await page.context().close();
});
