// What there is in the story: a busy site with a slow datastore, a noisy neighbour, moves in all
// states, a plan that runs, and names that nobody should choose.
import { clock } from "./clock.mjs";
import { dice, load, loadOf, together } from "./load.mjs";

const GIB = 2 ** 30;
const MIB = 2 ** 20;

/** Names that try to be more than text, among them the longest that Sterna permits. */
export const HOSTILE = ["<script>alert(1)<-script>", "\u202egnp.exe\u202c-rtl", "x".repeat(63), "\"'><img src=x onerror=alert(1)>"];

function disk(name, datastore, more = {}) {
  return {
    name, datastore, class: null, size: 50 * GIB, iops: 40 + dice(name, "i") * 400, length: 8192, writes: 0.3 + dice(name, "w") * 0.5,
    service: 250 + dice(name, "t") * 600, queue: 0, idle: dice(name, "idle") > 0.85, ...more,
  };
}

export class World {
  constructor({ disks = 60, hostile = true, empty = false } = {}) {
    this.started = clock.now();
    this.daemon = clock.random().toString(16).slice(2);
    this.born = this.started - 20 * 3_600_000;
    this.seq = 40;
    this.activities = [];
    this.disks = empty ? [] : this.makeDisks(disks, hostile);
    this.datastores = empty ? [] : this.makeDatastores();
    this.migrations = empty ? [] : this.makeMigrations();
    this.empty = empty;
    this.stats = new Map();
    this.begin();
  }

  makeDisks(count, hostile) {
    const all = [
      disk("db", "fast", { class: "gold", iops: 3100, service: 420, size: 200 * GIB }),
      disk("log", "fast", { class: "gold", iops: 900, service: 180, writes: 0.98, size: 40 * GIB }),
      disk("web-7", "slow", { class: "batch", iops: 1180, length: 262144, writes: 0.95, service: 7200, queue: 18000 }),
      disk("mail", "slow", { iops: 210, service: 6100, queue: 9100, size: 500 * GIB }),
      disk("backup", "nas", { class: "batch", iops: 160, length: 1 << 20, writes: 1, service: 4000, queue: 21000 }),
    ];
    if (hostile) for (const name of HOSTILE) all.push(disk(name, "fast"));
    for (let at = 1; all.length < count; at += 1) {
      all.push(disk(`vm-${String(at).padStart(4, "0")}`, ["fast", "fast", "slow", "nas", "old"][at % 5], { class: at % 4 === 0 ? "silver" : null }));
    }
    return all.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  makeDatastores() {
    const one = (name, kind, location, capacity, free, more = {}) => ({
      name, kind, location, capacity, free, disks: this.disks.filter((disk) => disk.datastore === name).length, backing: null, maintenance: false, problem: null, shape: null, ...more,
    });
    return [
      one("fast", "directory", "/mnt/fast", 8 * 1024 * GIB, 3.4 * 1024 * GIB, { backing: "disk nvme0n1" }),
      one("nas", "nbd", "nbd://nas:10809/pool", 20 * 1024 * GIB, 2.1 * 1024 * GIB, { backing: "server nas" }),
      one("old", "array", "array://old-fc?spindles=8&path=/var/lib/sterna/arrays/old", 4 * 1024 * GIB, 0.5 * 1024 * GIB, { maintenance: true }),
      one("slow", "array", "array://sas-10k?path=/mnt/slow", 12 * 1024 * GIB, 1.3 * 1024 * GIB),
      one("tiny", "directory", "/mnt/tiny", 64 * GIB, 0, { problem: "another file system is at /mnt/tiny: the datastore's mark is missing there; mount the right one" }),
    ];
  }

  move(id, name, from, to, size, more) {
    const now = Math.floor(this.started / 1000);
    return {
      id, disk: name, size, from, to, provision: "thin", rate: null, verify: true, keep_source: false, skip_bad_sectors: false, guard: null, state: "copying", reason: null, hint: null,
      started: now - 300, ended: null, progress: null, application: { before: null, now: null, during: null, worst_p99_us: null, above_p99_s: null }, report: null, predicted: null, unclear: false,
      bad_sectors: null, differing: null, balanced: null, ...more,
    };
  }

  makeMigrations() {
    const predicted = (likely, bytes) => ({ bytes, likely_s: likely, least_s: likely * 0.7, most_s: likely * 1.6, rate: bytes / likely, share: 0.42, kept: 0.97, weakest: "promise", learned_from: "moves", moves: 3, guess: false });
    const progress = (total, synced, more = {}) => ({ total, synced, copied: synced, verified: null, to_copy: total - synced, to_compare: total - (more.verified ?? 0), late_regions: 0, rate: 0, eta_s: null, switch_over_ms: null, undone: 0, patience_ms: 20, ...more });
    const figures = (iops, p99) => ({ window_s: 10, iops, bytes_per_second: iops * 8192, p99_us: p99 });
    const now = Math.floor(this.started / 1000);
    return [
      this.move(1, "mail-2", "old", "fast", 80 * GIB, {
        state: "completed", started: now - 90_000, ended: now - 88_000, predicted: predicted(1800, 60 * GIB),
        report: { duration_s: 2000, copied: 62 * GIB, average_rate: 31 * MIB, compared: null, switch_over_ms: 3.8, undone: 0, verified: 80 * GIB, allocated: 60 * GIB },
        application: { before: figures(400, 2100), now: null, during: figures(396, 2900), worst_p99_us: 9100, above_p99_s: null },
        guard: { asked: { keep: 0.97, idle_only: false }, state: null, kept: 0.989, baseline_iops: 400 },
      }),
      this.move(2, "vm-0003", "nas", "slow", 50 * GIB, { state: "cancelled", started: now - 70_000, ended: now - 69_000, reason: "cancelled by an operator", report: { duration_s: 1000, copied: 9 * GIB, average_rate: 9 * MIB, compared: null, switch_over_ms: null, undone: 0, verified: null, allocated: null } }),
      this.move(3, "db", "fast", "slow", 200 * GIB, {
        predicted: predicted(3600, 150 * GIB), progress: progress(200 * GIB, 70 * GIB, { rate: 48 * MIB, late_regions: 900 }),
        guard: { asked: { keep: 0.97, idle_only: false, finish_by: now + 7200 }, state: "holding", kept: 0.982, baseline_iops: 3100, allowance: 60 * MIB },
        application: { before: figures(3100, 1500), now: figures(3040, 2100), during: null, worst_p99_us: 7600, above_p99_s: null },
      }),
      this.move(4, "vm-0007", "slow", "tiny", 50 * GIB, { state: "paused", progress: progress(50 * GIB, 21 * GIB), reason: "the destination is full (ENOSPC)", hint: "make room on datastore tiny; then `sterna migration resume 4`, or cancel it: `sterna migration cancel 4`" }),
      this.move(5, "mail", "slow", "nas", 500 * GIB, { rate: 200 * MIB, progress: progress(500 * GIB, 120 * GIB), guard: { asked: { window: "22:00-06:00", idle_only: false }, state: "closed", allowance: 0, reason: "opens 22:00:00" } }),
      this.move(6, "vm-0012", "slow", "fast", 50 * GIB, { state: "verifying", predicted: predicted(600, 50 * GIB), progress: progress(50 * GIB, 50 * GIB, { verified: 20 * GIB, rate: 210 * MIB, eta_s: 150 }) }),
    ];
  }

  /** An entry of the log of what was done. */
  tell(who, about, text, command = null, ok = true, atMs = clock.now()) {
    this.seq += 1;
    const entry = { seq: this.seq, at_ms: atMs, who, about, text, command, ok };
    this.activities.push(entry);
    return entry;
  }

  begin() {
    if (this.empty) return;
    const ago = (minutes) => clock.now() - minutes * 60_000;
    this.tell("sterna", "policy 2", "policy made: class gold", null, true, ago(600));
    this.tell("root (uid 0)", "disk db", "start migration: guard keep 97%, to slow", "sterna migrate db --to slow --keep 97%", true, ago(5));
    this.tell("sterna", "disk db", "migration started: migration 3, from fast, to slow", null, true, ago(5));
    this.tell("dashboard", "disk log", "start migration: to tiny; refused: datastore tiny cannot be used: its mark is missing", "sterna migrate log --to tiny", false, ago(4));
    this.tell("sterna", "disk mail", "requests take 15.4 ms, usually 3.1 ms. Its neighbour web-7 does 91% of the work of datastore slow", null, true, ago(27));
    this.tell("sterna", "migration 4", "migration paused: reason the destination is full (ENOSPC)", null, false, ago(3));
    this.tell("dashboard", "migration 5", "guard migration: window 22:00-06:00", "sterna migration set 5 --window 22:00-06:00", true, ago(70));
    this.tell("sterna", "migration 5", "guard: closed: why opens 22:00:00", null, true, ago(70));
    this.tell("sterna", "migration 3", "guard: ", null, true, ago(2));
    this.tell("sterna", "migration 3", "guard: unreachable: why writing to both images costs the application 4.1 % of its IO/s", null, true, ago(2));
    this.tell("sterna", "class gold", "cruise: converging: policy 1, target 5 ms, why ", null, true, ago(1));
    for (let at = 0; at < 30; at += 1) this.tell("sterna", null, "Storage DRS looked: 1 datastore is over a bound.", null, true, ago(200 - at * 6));
    this.activities.sort((a, b) => a.at_ms - b.at_ms).forEach((entry, at) => (entry.seq = at + 1));
    this.seq = this.activities.length;
  }

  /** Goes on by a second. Says which moves changed. */
  step() {
    let changed = false;
    for (const move of this.migrations) {
      const progress = move.progress;
      if (!progress || move.ended || move.state === "paused" || move.guard?.state === "closed") continue;
      changed = true;
      if (move.state === "verifying") {
        progress.verified = Math.min(progress.total, progress.verified + progress.rate);
        progress.to_compare = progress.total - progress.verified;
        progress.eta_s = (progress.total - progress.verified) / progress.rate;
        if (progress.verified === progress.total) this.finish(move);
        continue;
      }
      progress.rate = (40 + 20 * dice(move.id, clock.now())) * MIB * (move.id > 6 ? 20 : 1);
      progress.copied += progress.rate;
      // The guest rewrites: now and then the part that is equal shrinks.
      const rewritten = dice(move.id, "again", clock.now()) > 0.7 ? 1.5 * progress.rate : 0;
      progress.late_regions = Math.round(rewritten / 65536);
      progress.synced = Math.max(0, Math.min(progress.total, progress.synced + progress.rate - rewritten));
      progress.to_copy = progress.total - progress.synced;
      progress.eta_s = (progress.total - progress.synced) / progress.rate;
      if (progress.synced >= progress.total) Object.assign(move, { state: "verifying" }), Object.assign(progress, { verified: 0, rate: 400 * MIB * (move.id > 6 ? 4 : 1) });
    }
    return changed;
  }

  finish(move) {
    move.ended = Math.floor(clock.now() / 1000);
    move.state = "completed";
    move.report = { duration_s: move.ended - move.started, copied: move.progress.copied, average_rate: 50 * MIB, compared: null, switch_over_ms: 4.1, undone: 0, verified: move.size, allocated: move.size };
    move.progress = null;
    const its = this.disks.find((disk) => disk.name === move.disk);
    if (its) its.datastore = move.to;
    this.tell("sterna", `disk ${move.disk}`, `migration completed: migration ${move.id}, to ${move.to}, ${move.report.duration_s} s, guest held 4.1 ms`);
  }

  /** The rows of `top`. */
  rows(by, atMs) {
    const loads = this.disks.map((disk) => ({ name: disk.name, disk, load: loadOf(disk, atMs) }));
    if (by === "disk") return loads.map(({ name, load }) => ({ name, load, device: null }));
    const key = by === "class" ? (disk) => disk.class ?? "(no class)" : (disk) => disk.datastore;
    const groups = Map.groupBy?.(loads, (one) => key(one.disk)) ?? group(loads, (one) => key(one.disk));
    const made = [...groups].map(([name, list]) => ({ name, load: together(list.map((one) => one.load)), device: by === "datastore" ? this.device(name) : null }));
    if (by === "class") made.push({ name: "migration", load: load(190, 262144, 0.5, { queue: 400, service: 900, p50: 1100, p99: 4000, max: 9000 }), device: null });
    return made.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  device(name) {
    if (name === "slow") return { known: "line", unloaded_us: 2100, slope_us: 480, slope_error_us: 14, peak_iops: 2083, points: 84, seen_from: 0.9, seen_to: 31.2 };
    if (name === "fast") return { known: "flat", seen_from: 0.4, seen_to: 9.8, service_us: 310 };
    return { known: "too_few", points: 3 };
  }
}

function group(list, key) {
  const groups = new Map();
  for (const one of list) groups.set(key(one), [...(groups.get(key(one)) ?? []), one]);
  return groups;
}
