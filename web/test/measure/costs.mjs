// What a viewer costs the daemon and its guests, with the real daemon: `cost` has 500 disks that
// are read from, and one guest that measures its own reads; the live stream is read and not read,
// in turns. `scrape` is the time of one answer of /v1/metrics with 1,500 disks.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { request } from "node:http";
import { cpus } from "node:os";
import { join } from "node:path";
import { Daemon } from "../support/daemon.mjs";
import { quantile } from "./chrome.mjs";

const SUPPORT = join(import.meta.dirname, "../support");
/** What is measured in a turn, after the stream has begun or ended. */
const SETTLE_MS = 2_000;
const TURN_MS = 15_000;
/** Linux counts a process's time in these. */
const TICKS_PER_SECOND = 100;

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function withDisks(count) {
  const daemon = await new Daemon().start();
  daemon.datastore("fast");
  for (let disk = 0; disk < count; disk += 1) {
    await post(daemon, "/v1/disks", { name: `d${disk}`, size: 1 << 20, datastore: "fast" });
  }
  return daemon;
}

/** Asks the daemon, and gives its whole answer. */
function ask(daemon, path, method = "GET", body = null) {
  const headers = { host: "localhost", ...(body ? { "content-type": "application/json" } : {}) };
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath: daemon.socket, path, method, headers }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (more) => (text += more)).on("end", () => resolve({ status: answer.statusCode, text }));
    });
    asked.on("error", reject);
    asked.end(body ?? undefined);
  });
}

async function post(daemon, path, body) {
  const { status, text } = await ask(daemon, path, "POST", JSON.stringify(body));
  if (status >= 300) throw new Error(`${path}: ${status} ${text}`);
}

/** What the page with all disks asks the live stream for. */
const STREAM = "/v1/events?topics=status,top,migrations,activity&by=disk&window_s=1&sort=iops&from=0&count=500";

/** Reads the live stream as a page does; gives what ends that. */
function view(daemon) {
  const asked = request({ socketPath: daemon.socket, path: STREAM, headers: { host: "localhost", accept: "text/event-stream" } }, (answer) => {
    if (answer.statusCode !== 200) throw new Error(`the stream: ${answer.statusCode}`);
    answer.resume();
  });
  asked.on("error", () => {});
  asked.end();
  return () => asked.destroy();
}

/** The processor time that a process has used, in seconds. */
function used(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

export async function cost(_, { times = 6 }) {
  const daemon = await withDisks(500);
  const uri = (disk) => `nbd+unix:///${disk}?socket=${join(daemon.work, "nbd.sock")}`;
  const start = (script, ...words) => {
    const child = spawn("/usr/bin/python3", [join(SUPPORT, script), ...words], { stdio: ["pipe", "pipe", "inherit"] });
    daemon.children.push(child);
    return child;
  };
  start("many.py", ...Array.from({ length: 499 }, (_, disk) => uri(`d${disk}`))).stdout.resume();
  const guest = start("times.py", uri("d499"));
  let said = "";
  guest.stdout.setEncoding("utf8").on("data", (more) => (said += more));
  const turn = async () => {
    await wait(SETTLE_MS);
    [said, guest.before] = ["", used(daemon.process.pid)];
    await wait(TURN_MS);
    const took = said.split("\n").slice(1, -1).map(Number).sort((a, b) => a - b);
    return { cpu: ((used(daemon.process.pid) - guest.before) / TURN_MS) * 1e3, p99: quantile(took, 0.99), reads: took.length };
  };
  const [alone, viewed] = [[], []];
  for (let time = 0; time < times; time += 1) {
    alone.push(await turn());
    const end = view(daemon);
    viewed.push(await turn());
    end();
  }
  await daemon.stop();
  const middle = (turns, of) => quantile(turns.map(of).sort((a, b) => a - b), 0.5);
  const cpu = [alone, viewed].map((turns) => middle(turns, (it) => it.cpu));
  const p99 = [alone, viewed].map((turns) => middle(turns, (it) => it.p99));
  const percent = (part) => Number((100 * part).toFixed(2));
  return [{ measured: "cost", disks: 500, turns: times, cores: cpus().length, daemon_percent_of_a_core: cpu.map(percent), viewer_percent_of_a_core: percent(cpu[1] - cpu[0]), guest_p99_us: p99.map((it) => Math.round(it)), p99_ratio: Number((p99[1] / p99[0]).toFixed(3)) }];
}

export async function scrape(_, { times = 50 }) {
  const daemon = await withDisks(1500);
  const took = [];
  let length = 0;
  for (let time = 0; time < times; time += 1) {
    const began = performance.now();
    length = (await ask(daemon, "/v1/metrics")).text.length;
    took.push(performance.now() - began);
    await wait(100);
  }
  await daemon.stop();
  took.sort((a, b) => a - b);
  const at = (part) => Number(quantile(took, part).toFixed(1));
  return [{ measured: "scrape", disks: 1500, bytes: length, median_ms: at(0.5), p99_ms: at(0.99) }];
}
