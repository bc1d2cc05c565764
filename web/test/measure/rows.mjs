// What rows that change each second take of the page's main thread.
import { Mock } from "../mock/server.mjs";
import { launch, open } from "../support/browser.mjs";
import { MainThread } from "./chrome.mjs";

/** Windows: all rows drawn, a wall, a screen. */
const SIZES = [
  { name: "500 rows", width: 1280, height: 14_250 },
  { name: "4K wall", width: 3840, height: 2160 },
  { name: "screen", width: 1280, height: 800 },
];
const SETTLES_MS = 4_000;

/** One look at each size, of the page in each directory. */
export async function rows(dists, { seconds = 20, times = 1 }) {
  const found = [];
  const browser = await launch();
  for (let time = 0; time < times; time += 1) {
    for (const size of SIZES) {
      for (const dist of dists) found.push(await once(browser, dist, size, seconds));
    }
  }
  await browser.close();
  return found;
}

async function once(browser, dist, { name, ...viewport }, seconds) {
  const mock = await new Mock({ dist, disks: 500 }).start();
  const page = await open(browser, `${mock.url}#/disks`, { viewport });
  await page.waitForSelector("td[data-figure]");
  const thread = await MainThread.of(browser, page);
  await page.waitForTimeout(SETTLES_MS);
  const drawn = await page.locator("tbody tr:not(.gap)").count();
  const [began, before, at] = [thread.seconds, await thread.parts(), performance.now()];
  await page.waitForTimeout(seconds * 1_000);
  const [ended, after, passed] = [thread.seconds, await thread.parts(), (performance.now() - at) / 1_000];
  await page.context().close();
  await mock.kill();
  const percent = (part) => Number(((part / passed) * 100).toFixed(2));
  const of = (part) => percent(after[part] - before[part]);
  return { measured: "rows", dist, size: name, drawn, core: percent(ended - began), script: of("script"), style: of("style"), layout: of("layout"), task: of("task"), heap_mb: Number((after.heap / 1e6).toFixed(1)) };
}
