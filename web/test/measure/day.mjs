// How long the charts of a disk's day take from the answer until they are drawn (with the story,
// which has a day), and how many bytes the answer has (by the length of a point of the real daemon,
// which has just begun).
import { Mock } from "../mock/server.mjs";
import { launch, open } from "../support/browser.mjs";
import { Daemon, STERNA } from "../support/daemon.mjs";
import { quantile } from "./chrome.mjs";

/** The real daemon measures so long before its points are counted. */
const MEASURES_MS = 30_000;

export async function day(dists, { times = 20 }) {
  const length = STERNA ? await pointLength() : null;
  const browser = await launch();
  const found = [];
  for (const dist of dists) {
    const mock = await new Mock({ dist }).start();
    const page = await open(browser, `${mock.url}#/disk/db`);
    await page.waitForSelector(".plot .uplot");
    const drawn = [];
    for (let time = 0; time < times; time += 1) {
      await page.click("button:has-text('10 min')");
      await page.waitForTimeout(1_500);
      drawn.push(await page.evaluate(watch));
    }
    const asked = mock.requests.filter((one) => one.includes("/v1/timelines?of=disk%3Adb")).at(-1);
    const points = Number(new URL(asked.split(" ")[1], mock.url).searchParams.get("points"));
    await page.context().close();
    await mock.kill();
    const at = (part) => Math.round(quantile(drawn, part));
    found.push({ measured: "day", dist, times, points, answer_to_drawn_median_ms: at(0.5), most_ms: at(1), kb: length && Number(((length * points) / 1e3).toFixed(1)) });
  }
  await browser.close();
  return found;
}

/** Chooses 24 h; gives the time from the last byte of the answer until the task after its frame. */
function watch() {
  return new Promise((resolve) => {
    new PerformanceObserver((list, observer) => {
      const answer = list.getEntries().find((one) => one.name.includes("/v1/timelines?of=disk"));
      if (!answer) return;
      observer.disconnect();
      requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - answer.responseEnd)));
    }).observe({ type: "resource" });
    [...document.querySelectorAll("button")].find((one) => one.innerText === "24 h").click();
  });
}

/** The bytes of a point of a timeline. */
async function pointLength() {
  const daemon = await new Daemon().start();
  daemon.datastore("fast");
  daemon.sterna("disk", "create", "db", "--size", "64M", "--on", "fast");
  daemon.requests("db", { length: 4096, perSecond: 300, queue: 4 });
  daemon.requests("db", { length: 8192, perSecond: 170, queue: 4, write: true });
  await new Promise((resolve) => setTimeout(resolve, MEASURES_MS));
  const text = await (await fetch(`${daemon.url}v1/timelines?of=disk:db&points=600`)).text();
  await daemon.stop();
  return text.length / JSON.parse(text).columns.end_ms.length;
}
