// Takes the pictures of the dashboard in README and manual: docs/pictures/*.png.
//
//     make web && STERNA=target/release/sterna node docs/recording/dashboard.mjs
//
// Nothing in the pictures is made up. The script starts a daemon in a scratch directory with two
// emulated arrays, has fio keep twelve disks busy, one of them out of all proportion, moves a disk
// under a guard, and photographs the screens in chromium. It needs what `make web-test` needs, fio
// with its engine for NBD, no root, some 4 GB of disk space, and two minutes.
import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "../..");
const { Daemon } = await import(join(ROOT, "web/test/support/daemon.mjs"));
const { launch, open } = await import(join(ROOT, "web/test/support/browser.mjs"));
const PICTURES = join(ROOT, "docs/pictures");
const SIZE = { width: 1280, height: 800 };

/** The disks: how many requests a second, of how many KiB, and how many of 100 are reads. */
const DISKS = [
  ["db", 300, 8, 70],
  ["db-log", 120, 4, 0],
  ["shop", 180, 8, 80],
  ["mail", 90, 16, 60],
  ["web-1", 60, 16, 90],
  ["web-2", 55, 16, 90],
  ["web-3", 40, 16, 90],
  ["wiki", 20, 8, 95],
  ["build", 150, 32, 50],
  ["backup", 220, 64, 5],
  ["ci", 75, 16, 60],
  ["old", 5, 8, 100],
];
/** How long they are at it before the first picture: the charts are to have something to show. */
const WARM_MS = 75_000;
const MOVE_MS = 7_000;

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const daemon = await new Daemon().start();
const loads = [];
function load(name, rate, kib, reads) {
  const { uris } = JSON.parse(daemon.sterna("--json", "disk", "show", name));
  const words = [`--name=${name}`, "--ioengine=nbd", `--uri=${uris[0]}`, "--rw=randrw", `--rwmixread=${reads}`, `--bs=${kib}k`];
  const pace = [`--rate_iops=${Math.max(1, Math.round((rate * reads) / 100))},${Math.max(1, Math.round((rate * (100 - reads)) / 100))}`];
  loads.push(spawn("fio", [...words, ...pace, "--iodepth=8", "--size=256m", "--time_based", "--runtime=600", "--thread"], { stdio: "ignore" }));
}

try {
  mkdirSync(PICTURES, { recursive: true });
  daemon.sterna("datastore", "add", "flash", "array://flash-2010");
  daemon.sterna("datastore", "add", "old-array", "array://old-fc");
  for (const [name] of DISKS) daemon.sterna("disk", "create", name, "--size", "1G", "--on", "old-array");
  daemon.sterna("class", "create", "gold", "db", "db-log", "shop");
  daemon.sterna("class", "create", "bulk", "backup", "build");
  daemon.sterna("policy", "cruise", "gold", "15ms", "--tolerance", "30%");
  for (const disk of DISKS) load(...disk);
  await wait(WARM_MS);
  daemon.sterna("migrate", "shop", "--to", "flash", "--keep", "90%", "--detach");
  await wait(MOVE_MS);
  const browser = await launch();
  for (const theme of ["light", "dark"]) {
    const page = await open(browser, daemon.url, { viewport: SIZE, colorScheme: theme });
    for (const [name, hash] of [["moves", "#/moves"], ["now", "#/"], ["disk", "#/disk/db"], ["disks", "#/disks"]]) {
      if (theme === "dark" && name !== "now") continue;
      await page.goto(daemon.url + hash);
      await page.waitForSelector("h1");
      await wait(4_000);
      await page.screenshot({ path: join(PICTURES, theme === "dark" ? `${name}-dark.png` : `${name}.png`) });
    }
    await page.context().close();
  }
  await browser.close();
} finally {
  for (const one of loads) one.kill("SIGKILL");
  await daemon.stop();
}
