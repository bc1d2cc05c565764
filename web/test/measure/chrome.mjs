// What chromium itself says of the time that a page takes.
import { readFileSync } from "node:fs";

/** The page's main thread: processor time, which other programs do not lengthen. */
export class MainThread {
  static async of(browser, page) {
    const found = new MainThread();
    found.cdp = await page.context().newCDPSession(page);
    await found.cdp.send("Performance.enable");
    const whole = await browser.newBrowserCDPSession();
    const { processInfo } = await whole.send("SystemInfo.getProcessInfo");
    // The page's process is the renderer that began last.
    found.pid = Math.max(...processInfo.filter((one) => one.type === "renderer").map((one) => one.id));
    return found;
  }

  /** Seconds of processor time up to now. The main thread's number is the process's. */
  get seconds() {
    return Number(readFileSync(`/proc/${this.pid}/task/${this.pid}/schedstat`, "utf8").split(" ")[0]) / 1e9;
  }

  /** What the time went to, in seconds up to now, by the clock on the wall. */
  async parts() {
    const { metrics } = await this.cdp.send("Performance.getMetrics");
    const of = (name) => metrics.find((one) => one.name === name).value;
    return { script: of("ScriptDuration"), style: of("RecalcStyleDuration"), layout: of("LayoutDuration"), task: of("TaskDuration"), heap: of("JSHeapUsedSize") };
  }
}

/** How busy the machine is besides: processes that want a core, on average of a minute. */
export function load() {
  return Number(readFileSync("/proc/loadavg", "utf8").split(" ")[0]);
}

/** The value below which that part of all values is. */
export function quantile(values, part) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))];
}
