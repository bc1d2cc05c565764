// The parts of the story that hardly change: classes, policies, hosts, plans, advice.
import { clock } from "./clock.mjs";

const GIB = 2 ** 30;
const MIB = 2 ** 20;

const FREE = { reservation: null, bytes_per_second: null, iops: null, response_ms: null, queue_depth: null, shares: 1000 };

/** The disk that suffers from its neighbour. */
function hurt(world) {
  if (world.empty) return [];
  return [
    {
      disk: "mail", datastore: "slow", since: Math.floor(world.started / 1000) - 1620, response_us: 15_400, usual_us: 3100, promised_us: null, by: "neighbour", neighbour: "web-7",
      why: "Its neighbour web-7 does 91% of the work of datastore slow",
      help: { text: "move mail to datastore fast; 95 of 100 requests on slow then take up to 18.0 ms, now 41.0 ms", command: "sterna migrate mail --to fast --keep 97%" },
    },
  ];
}

/** A disk that takes three times as long as usual, and is not hurt: its promise is kept. */
function slower(world) {
  if (world.empty) return [];
  return [
    {
      disk: "backup", datastore: "nas", since: Math.floor(world.started / 1000) - 40, response_us: 24_900, usual_us: 8300, promised_us: null, by: "device", neighbour: null,
      why: "No neighbour and no copy does most of the work: datastore nas itself is slower",
      help: { text: "nothing is known: no move makes datastore nas faster without making another one too slow or too full. A probe says what the device can do", command: "sterna datastore probe nas" },
      tried: "it has not helped yet: requests take 24.9 ms, before 25.3 ms. 62 s ago policy 5 of class batch was made",
    },
  ];
}

/** What is usual for a disk. Of one it is not known yet. */
export function usual(world, disk) {
  const young = disk.name === "vm-0002";
  const time = (writes, longest, response_us) => ({ writes, longest, response_us: young ? null : response_us, learned_s: young ? 120 : 21_000 });
  return { disk: disk.name, since: Math.floor(world.started / 1000) - (young ? 130 : 70_000), needed_s: 300, times: [time(false, 16384, 3300), time(true, 16384, 500), time(true, null, 7200)], iops: young ? null : disk.iops };
}

export function status(world) {
  const under = world.migrations.filter((move) => !move.ended);
  const warnings = world.empty
    ? []
    : [
        { about: "datastore tiny", message: "it is offline: another file system is at /mnt/tiny; the datastore's mark is missing there", hint: "mount the right file system at /mnt/tiny" },
        ...under.filter((move) => move.hint).map((move) => ({ about: `migration ${move.id}`, message: move.reason, hint: move.hint })),
      ];
  return {
    version: "0.1.0", pid: 14774, started: Math.floor(world.born / 1000), state: "/var/lib/sterna", socket: "/run/sterna/sterna.sock", nbd: ["nbd+unix:///?socket=/run/sterna/nbd.sock"],
    io: { engine: "io_uring", reason: null },
    counts: { datastores: world.datastores.length, disks: world.disks.length, disks_served: world.disks.length, migrations: under.length, migrations_paused: under.filter((move) => move.state === "paused").length, classes: 3, policies: 4, vms: 6, disks_hurt: hurt(world).length, disks_slower: slower(world).length },
    hurt: hurt(world),
    slower: slower(world),
    warnings,
    predictions: { moves: 12, median_error: 0.071, within: 11, beside: 8, kept_error: 0.015 },
  };
}

export function classes(world) {
  const made = Math.floor(world.born / 1000);
  const one = (name, more) => ({ name, built_in: false, created: made, disks: world.disks.filter((disk) => disk.class === name).map((disk) => disk.name), in_force: FREE, notes: [], policies: [], reservation: null, shares: 1000, held: null, attained: null, ...more });
  return [
    one("migration", { built_in: true, in_force: { ...FREE, bytes_per_second: 400 * MIB }, policies: [4] }),
    one("gold", { reservation: { iops: 3000 }, in_force: { ...FREE, reservation: { iops: 3000 }, shares: 4000 }, shares: 4000, policies: [1], attained: { has: { iops: 4000 }, percent: 133, since: made, state: "kept" } }),
    one("silver", { shares: 2000, in_force: { ...FREE, shares: 2000 } }),
    one("batch", { in_force: { ...FREE, bytes_per_second: 300 * MIB }, policies: [2, 3], held: { class: "gold", policy: 1, bytes_per_second: 300 * MIB } }),
  ];
}

/** How the promises to a class were kept: five days, one of them badly. To others none was made. */
export function kept(world, name) {
  if (name !== "gold") return { class: name, hours: [] };
  const hour = Math.floor(world.started / 3.6e6) * 3600;
  const hours = [];
  for (let ago = 5 * 24; ago >= 0; ago -= 1) {
    const missed_s = ago > 60 && ago < 70 ? 900 : ago % 24 === 3 ? 20 : 0;
    hours.push({ policy: 1, at: hour - ago * 3600, kept_s: 3000 - missed_s, missed_s, quiet_s: 600 });
  }
  return { class: name, hours };
}

export function policies(world) {
  const since = Math.floor(world.born / 1000) + 3600;
  const now = Math.floor(clock.now() / 1000);
  return [
    { id: 1, class: "gold", aim: { kind: "cruise", goal: { response_ms: 2 }, tolerance_percent: 20, floor: null, fallback: { limit: { bytes_per_second: 20 * MIB } } }, schedule: null, created: since, since, standing: "binds", until: null, until_job: null, looser_than: null, cruise: { phase: "holding", since, reason: null, fallback: null } },
    { id: 2, class: "batch", aim: { kind: "limit", goal: { bytes_per_second: 300 * MIB } }, schedule: "Mon-Fri 06:00-22:00", created: since, since, standing: "binds", until: now + 7200, until_job: null, looser_than: null, cruise: null },
    { id: 3, class: "batch", aim: { kind: "queue-depth", depth: 8 }, schedule: "Mon-Fri 22:00-06:00, Sat,Sun", created: since, since, standing: "closed", until: now + 7200, until_job: null, looser_than: null, cruise: null },
    { id: 4, class: "migration", aim: { kind: "limit", goal: { bytes_per_second: 400 * MIB } }, schedule: null, created: since, since, standing: "binds", until: null, until_job: null, looser_than: null, cruise: null },
  ];
}

export function storageDrs(world) {
  const load = (taken, p95_us) => ({ taken, p95_us });
  return {
    broken: [], ended: [], moves: [], next: Math.floor(clock.now() / 1000) + 1200,
    datastores: world.datastores.map((one) => ({ datastore: one.name, load: load(one.capacity ? 1 - one.free / one.capacity : 1, { fast: 1800, slow: 41_000, nas: 9000, old: 7000 }[one.name] ?? null), maintenance: one.maintenance, outstanding: 8.1, over: one.name === "slow" ? ["latency", "space"] : one.name === "nas" ? ["space"] : [], settling: one.name === "old", shares_room_with: { nas: ["old"], old: ["nas"] }[one.name] ?? [], trend: { slow: { bytes_per_second: (20 * GIB) / 3600, over_s: 10_800, full_in_s: (1.3 * 1024 * 3600) / 20 }, fast: { bytes_per_second: 0, over_s: 10_800, full_in_s: null } }[one.name] ?? null })),
    last: null, scores: { known: 10, paid: 9, waiting: 1 },
    settings: { automation: "partial", every_s: 3600, guard: { keep: 0.97, idle_only: false }, latency_us: 20_000, space: 0.8, window_s: 3600 },
  };
}

export function storageAdvice(world) {
  const drs = storageDrs(world);
  const predicted = { bytes: 22 * GIB, likely_s: 240, least_s: 180, most_s: 420, rate: 90 * MIB, share: 0.8, weakest: "storage", learned_from: "moves", moves: 3, kept: 0.98, guess: false };
  return {
    asked: { latency_us: 20_000, moves: 10, space: 0.8, window_s: 3600 }, datastores: drs.datastores,
    moves: [{ bytes: 22 * GIB, disk: "mail", from: "slow", to: "fast", over: "latency", rule: null, priority: 2, step: 1, predicted, source: [{ taken: 0.89, p95_us: 41_000 }, { taken: 0.85, p95_us: 18_000 }], destination: [{ taken: 0.57, p95_us: 1800 }, { taken: 0.61, p95_us: 2400 }] }],
    // One disk stays for both bounds.
    staying: [
      { datastore: "slow", disk: "vm-0002", over: "latency", rule: null, reason: "its load is too small to matter", to: null },
      { datastore: "slow", disk: "vm-0002", over: "space", rule: null, reason: "fast would be too full: 93% used", to: "fast" },
    ],
  };
}

export function plans(world) {
  if (world.empty) return [];
  const now = Math.floor(clock.now() / 1000);
  const began = Math.floor(world.started / 1000) - 1500;
  const guard = { keep: 0.97, idle_only: false, p99_us: null, finish_by: null, window: null };
  const move = (disk, to, wave, begins, ends, state, more = {}) => ({ disk, from: "old", to, wave, begins_s: begins, ends_s: ends, bytes: 40 * GIB, state, attempts: state === "waiting" ? 0 : 1, why: "emptiest: 61% used afterwards", verifying: false, problem: null, tile: null, began: null, ended: null, done: null, took_s: null, migration: null, predicted: null, ...more });
  const moves = [
    move("shop-db", "fast", 1, 0, 900, "moved", { began, ended: began + 960, took_s: 960, tile: "shop", migration: 11 }),
    move("shop-log", "fast", 1, 0, 600, "moved", { began, ended: began + 560, took_s: 560, tile: "shop", migration: 12 }),
    move("mail-3", "nas", 2, 900, 2400, "moving", { began: began + 970, done: Math.min(0.95, (now - began - 970) / 1500), tile: "mail", migration: 13 }),
    move("mail-4", "nas", 2, 900, 2100, "standing", { began: began + 970, done: 0.2, tile: "mail", migration: 14, problem: "datastore nas does not answer; tried again in 40 s" }),
    move("test-1", "fast", 3, 2400, 3000, "waiting", { tile: "test", problem: "waits for tile mail" }),
    move("test-2", "nas", 3, 2400, 3300, "waiting", { tile: "test", problem: "waits for tile mail" }),
  ];
  const plan = (id, state, more) => ({
    id, state, datastore: "old", created: began - 600, started: null, ended: null, ends: null, opens: null, at_once: null, rate: null, verify: true, space: 0.8, guard, deadline: null,
    datastores: [{ datastore: "fast", bytes: 120 * GIB, moves: 3, room: 900 * GIB, speed: 90 * MIB, problem: null }, { datastore: "nas", bytes: 120 * GIB, moves: 3, room: 300 * GIB, speed: 40 * MIB, problem: null }, { datastore: "old", bytes: 240 * GIB, moves: 6, room: null, speed: 110 * MIB, problem: null }],
    estimate: { bytes: 240 * GIB, likely_s: 3300, least_s: 2600, most_s: 5200, bound_s: 3200, gap: 0.03, unknown: 0 }, moves, refused: [{ disk: "legacy", reason: "it is not served" }],
    tiles: [{ name: "shop", disks: ["shop-db", "shop-log"], together: true }, { name: "mail", disks: ["mail-3", "mail-4"] }, { name: "test", disks: ["test-1", "test-2"] }],
    workloads: [{ tile: "shop", state: "started", stopped: began - 10, started: began + 980, problem: null, tries: 0 }], ...more,
  });
  return [
    plan(1, "running", { started: began, ends: began + 3700, deadline: { by: began + 5400, state: "likely" } }),
    plan(2, "planned", { moves: moves.map((one) => ({ ...one, state: "waiting", began: null, ended: null, done: null, problem: null })), workloads: [] }),
  ];
}

export function hosts() {
  const added = Math.floor(clock.now() / 1000) - 90_000;
  const one = (name, cpu, memory, vms) => ({ name, cpu: 32, memory: 256 * GIB, added, load: { cpu, memory }, vms, program: "/usr/local/bin/start-vm" });
  return [one("a", 0.82, 0.91, ["db-1", "web-1", "web-2", "mail-1"]), one("b", 0.31, 0.4, ["test-1"]), one("c", 0.22, 0.35, ["ci"])];
}

export function drs() {
  const vm = (name, host, score, more = {}) => ({ vm: name, host, pool: null, demand: { cpu: 6.2, memory: 30 * GIB }, entitled: { cpu: 5.1, memory: 30 * GIB }, size: { cpu: 8, memory: 32 * GIB }, score, stays: null, ...more });
  const imbalance = { deviation: 0.265, of: { cpu: 0.27, memory: 0.25 }, variation: 0.48 };
  const settings = { automation: "partial", cooldown_s: 600, hold: 3, moves: 10, round_s: 60, threshold: 3 };
  const vms = [vm("db-1", "a", 71, { stays: "its disk db is being moved" }), vm("web-1", "a", 84), vm("web-2", "a", 79), vm("mail-1", "a", 90), vm("test-1", "b", 100), vm("ci", "c", 100)];
  const advice = {
    imbalance, rounds: 4, settings,
    moves: [{ vm: "web-2", from: "a", to: "c", back: null, bytes: 30 * GIB, goal: "cpu", held: true, priority: 2, reason: "the hosts' loads differ", imbalance: [imbalance, { ...imbalance, deviation: 0.088 }], source: [{ cpu: 0.82, memory: 0.91 }, { cpu: 0.66, memory: 0.79 }], destination: [{ cpu: 0.22, memory: 0.35 }, { cpu: 0.38, memory: 0.47 }], worth: { benefit: 212.1, cost: 3.1, risk: 20.4, seconds: 28 } }],
    staying: [{ vm: "db-1", host: "a", goal: "cpu", reason: "its disk db is being moved", to: "b" }],
  };
  return { status: { broken: [], elsewhere: [], hosts: hosts(), imbalance, looked: Math.floor(clock.now() / 1000) - 20, rounds: 4, settings, vms }, advice };
}

export function transfers() {
  const now = Math.floor(clock.now() / 1000);
  const one = (id, vm, more) => ({ id, vm, from: "a", to: "b", automatic: false, priority: 2, source: "/run/a.qmp", destination: "/run/b.qmp", started: now - 40, ended: null, state: "copying", stuck: false, why: "the hosts' loads differ", reason: null, report: null, progress: null, ...more });
  return [
    one(1, "test-1", { state: "completed", ended: now - 4000, started: now - 4030, report: { held_ms: 41, passes: 3, seconds: 28, sent: 31 * GIB } }),
    one(2, "mail-1", { progress: { sent: 12 * GIB, left: 19 * GIB, passes: 1, rate: 1.1e9, eta_s: 18 } }),
  ];
}

export function vms() {
  const added = Math.floor(clock.now() / 1000) - 90_000;
  const disk = (device, more = {}) => ({ device, image: `/var/lib/images/${device}.qcow2`, format: "qcow2", size: 40 * GIB, read_only: false, datastore: "fast", disk: null, migration: null, now: { iops: 120, bytes_per_second: 900_000, latency_us: 700, window_s: 1 }, allocated: 20 * GIB, unmovable: null, ...more });
  return [
    { name: "db-1", added, state: "running", detail: null, domain: null, libvirt: null, qmp: "/run/a.qmp", qemu: "10.0.2", disks: [disk("vda", { disk: "db", format: "raw" }), disk("vdb", { disk: "log", format: "raw" })] },
    { name: "web-1", added, state: "running", detail: null, domain: "web-1", libvirt: "qemu:///system", qmp: null, qemu: "9.2.0", disks: [disk("vda"), disk("sr0", { unmovable: "it is a CD-ROM drive", read_only: true, now: null })] },
    { name: "ghost", added, state: "unreachable", detail: "no such file: /run/ghost.qmp", domain: null, libvirt: null, qmp: "/run/ghost.qmp", qemu: null, disks: [] },
  ];
}

export function advice(world, about) {
  const all = [
    { about: "disk web-7", kind: "ungoverned", message: "it transfers 91% of the bytes on slow, beside mail, and no policy limits it", hint: "give it a class and a limit: `sterna policy limit batch 100M --schedule 08:00-18:00`" },
    { about: "datastore slow", kind: "near_peak", message: "it does 91% of the 2083 IO/s that its device can do", hint: "move disks away: `sterna storage-drs recommend`" },
  ];
  const disks = world.disks.slice(0, 20).map((disk) => ({ disk: disk.name, datastore: disk.datastore, nature: "random", iops: disk.iops, length: disk.length, in_order: 0.02, there: 0.93 }));
  return { window_s: 600, disks, advice: about ? all.filter((one) => one.about.endsWith(` ${about}`)) : all };
}
