// The routes that the page uses, for the story.
import { clock } from "./clock.mjs";
import { loadOf, load, timeline, together } from "./load.mjs";
import * as memory from "./memory.mjs";
import * as site from "./site.mjs";

const GIB = 2 ** 30;
const MIB = 2 ** 20;

/** A refusal. */
export function refuse(status, code, message, hint = "") {
  return { status, body: { code, message, hint } };
}

function diskView(world, disk) {
  const move = world.migrations.find((one) => one.disk === disk.name && !one.ended);
  return {
    name: disk.name, id: `id-${disk.name}`, datastore: disk.datastore, class: disk.class, size: disk.size, allocated: Math.round(disk.size * 0.6), generation: 3, image: `/mnt/${disk.datastore}/${disk.name}.raw`, imported: false,
    migration: move?.id ?? null, provision: "thin", served: true, problem: null, uris: [`nbd+unix:///${disk.name}?socket=/run/sterna/nbd.sock`], vhost_user: null, held: null, activity: null,
  };
}

function buckets(world, disk) {
  const ends = [];
  for (let us = 10; us < 2e7; us *= 1.25) ends.push(Math.round(us));
  let kept = world.stats.get(disk.name);
  if (!kept) {
    kept = { at: clock.now() - 60_000, counts: [ends, ends].map((list) => list.map(() => 0)) };
    world.stats.set(disk.name, kept);
  }
  const now = clock.now();
  const found = loadOf(disk, now);
  for (let at = kept.at; at < now; at += 100) {
    [found.read.iops, found.write.iops].forEach((iops, side) => {
      for (let one = 0; one < 5; one += 1) {
        const us = (found.p50_us ?? 100) * Math.exp((clock.random() + clock.random() + clock.random() - 1.4) * 0.9);
        const row = ends.findIndex((end) => us <= end);
        kept.counts[side][row < 0 ? ends.length - 1 : row] += Math.round(iops / 50);
      }
    });
  }
  kept.at = now;
  return kept.counts.map((counts) => counts.map((count, at) => ({ count, to: at === counts.length - 1 ? null : ends[at] })));
}

function stats(world, disk) {
  const [read, written] = buckets(world, disk);
  const pattern = (response) => ({ response, length: [{ to: 4096, count: 7101 }, { to: 8191, count: 0 }, { to: 8192, count: 7895 }, { to: 65536, count: 700 }, { to: null, count: 4 }], outstanding: [{ to: 1, count: 800 }, { to: 2, count: 1900 }, { to: 4, count: 700 }, { to: null, count: 3 }], distance: [], nearest: [{ to: -5000, count: 400 }, { to: 0, count: 90 }, { to: 16, count: 800 }, { to: null, count: 9 }], interval: [{ to: 100, count: 100 }, { to: 1000, count: 4000 }, { to: null, count: 10 }] });
  const side = (response) => ({ bytes: 125 * MIB, operations: 16039, pattern: pattern(response), queue: null, response: null, service: null });
  return { name: disk.name, datastore: disk.datastore, connections: 2, errors: 0, flushes: 148, in_flight: 3, recent: loadOf(disk, clock.now()), read: side(read), write: side(written), zeroes: 0 };
}

function filtered(world, rows, filter) {
  let kept = rows;
  for (const part of filter.split(/\s+/).filter(Boolean)) {
    const [key, value] = part.includes(":") ? [part.slice(0, part.indexOf(":")), part.slice(part.indexOf(":") + 1)] : ["", part];
    const its = (row) => world.disks.find((disk) => disk.name === row.name);
    if (key === "class") kept = kept.filter((row) => its(row)?.class === value);
    else if (key === "on") kept = kept.filter((row) => its(row)?.datastore === value);
    else if (key === "slow") kept = kept.filter((row) => (row.load.p99_us ?? 0) >= parseFloat(value) * 1000);
    else if (key === "busy") kept = kept.filter((row) => row.load.read.iops + row.load.write.iops >= Number(value));
    else kept = kept.filter((row) => row.name.toLowerCase().includes(part.toLowerCase()));
  }
  return kept;
}

const VALUES = {
  name: (row) => row.name,
  iops: (row) => row.load.read.iops + row.load.write.iops,
  rate: (row) => row.load.read.bytes_per_second + row.load.write.bytes_per_second,
  p99: (row) => row.load.p99_us ?? -1,
  max: (row) => row.load.max_us ?? -1,
  outstanding: (row) => row.load.outstanding,
  queue: (row) => row.load.queue_us ?? -1,
};

/** `top`, of the rows that are asked for. */
export function top(world, query) {
  const by = query.get("by") ?? "disk";
  const at = clock.now();
  const all = world.rows(by, at);
  const result = { by, at_ms: at, disks: world.disks.length, migrations: world.migrations.filter((move) => !move.ended).length, total: together(world.disks.map((disk) => loadOf(disk, at))), rows: all };
  if (!query.has("sort")) return result;
  const kept = filtered(world, all, query.get("filter") ?? "");
  const down = query.get("sort").startsWith("-") ? -1 : 1;
  const value = VALUES[query.get("sort").replace("-", "")];
  kept.sort((a, b) => (value(a) < value(b) ? -down : value(a) > value(b) ? down : 0));
  const from = Number(query.get("from") ?? 0);
  return { ...result, rows: kept.slice(from, from + Number(query.get("count") ?? 60)), matched: kept.length };
}

function timelines(world, query) {
  const of = query.get("of") ?? "all";
  const [kind, name] = of.includes(":") ? [of.slice(0, of.indexOf(":")), of.slice(of.indexOf(":") + 1)] : ["all", ""];
  const now = clock.now();
  const to = query.has("to") ? Number(query.get("to")) * 1000 : now;
  const from = query.has("from") ? Number(query.get("from")) * 1000 : to - 600_000;
  const points = Number(query.get("points") ?? 600);
  const disks = world.disks.filter((disk) => kind === "all" || (kind === "disk" && disk.name === name) || (kind === "class" && disk.class === name) || (kind === "datastore" && disk.datastore === name));
  if (kind === "disk" && disks.length === 0) return refuse(404, "not_found", `there is no disk ${name}`);
  const copies = () => load(190 + 40 * clock.random(), 262144, 0.5, { queue: 400, service: 900, p50: 1100, p99: 4000, max: 9000 });
  const at = name === "migration" ? copies : (moment) => together(disks.slice(0, 40).map((disk) => loadOf(disk, moment)));
  return { body: timeline(of, at, from, Math.min(to, now), points, world.born) };
}

/** A disk's hours, of a quarter at most. */
function hoursOf(world, disk, query) {
  const [from, to] = [Number(query.get("from")) * 1000, Number(query.get("to")) * 1000];
  const hour = 3_600_000;
  const whole = timeline(`disk:${disk.name}`, (at) => loadOf({ ...disk, idle: false }, at), Math.ceil(from / hour) * hour, Math.min(to, clock.now()), 1e9, clock.now() - 30 * 24 * hour);
  const every = (column) => column.filter((_, at) => at % 360 === 0);
  const columns = Object.fromEntries(Object.entries(whole.columns).map(([name, column]) => [name, every(column)]));
  columns.end_ms = columns.start_ms.map((start) => start + hour);
  columns.windows = columns.start_ms.map(() => 4);
  return { body: { ...whole, from_ms: from, columns } };
}

function predict(world, ask) {
  const disk = world.disks.find((one) => one.name === ask.disk);
  if (!disk) return refuse(404, "not_found", `there is no disk ${ask.disk}`, "see `sterna disk list`");
  if (disk.datastore === ask.to) return refuse(400, "invalid", `disk ${ask.disk} is on datastore ${ask.to} already`);
  const hour = ask.at ? new Date(ask.at.replace(" ", "T")).getHours() || 3 : 12;
  const likely = 300 + 600 * Math.abs(Math.sin(hour / 4)) * (ask.keep ? 1.5 : 1);
  const found = loadOf(disk, clock.now());
  return {
    body: {
      disk: disk.name, from: disk.datastore, to: ask.to, size: disk.size, at: ask.at ? Math.floor(new Date(ask.at.replace(" ", "T")).getTime() / 1000) || null : null, outstanding: found.outstanding,
      guard: { keep: ask.keep ?? null, p99_us: ask.p99_us ?? null, idle_only: ask.idle_only ?? false },
      application: { window_s: 10, iops: found.read.iops + found.write.iops, bytes_per_second: 0, p99_us: found.p99_us },
      predicted: { bytes: disk.size * 0.6, likely_s: likely, least_s: likely * 0.7, most_s: likely * 1.5, rate: (disk.size * 0.6) / likely, share: 0.4, kept: ask.keep ?? 0.9, weakest: ask.keep ? "promise" : "application", learned_from: "moves", moves: 3, guess: false },
      best: { at: Math.floor(clock.now() / 3.6e6) * 3600 + 8 * 3600, likely_s: 124 },
    },
  };
}

/** The number of a rate, as the daemon's events have it. */
const rateWords = (rate) => (rate ? `: rate ${Math.round(rate / MIB)} MiB/s` : "");

/** What a guard asks for, as the daemon's events have it. */
function guardWords({ keep, p99_us, finish_by, idle_only, window }) {
  const parts = [finish_by && `finish by ${finish_by}`, idle_only && "idle only true", keep && `keep ${keep}`, p99_us && `p99 ${p99_us / 1000} ms`, window && `window ${window}`].filter(Boolean);
  return parts.length > 0 ? `: ${parts.join(", ")}` : "";
}

function changeMove(world, id, what, body, command) {
  const move = world.migrations.find((one) => one.id === id);
  if (!move) return refuse(404, "not_found", `there is no migration ${id}`, "see `sterna migration list`");
  if (move.ended) return refuse(409, "in_use", `migration ${id} of disk ${move.disk} is done`);
  if (what === "pause") Object.assign(move, { state: "paused", reason: "asked for", hint: null });
  if (what === "resume") Object.assign(move, { state: "copying", reason: null, hint: null });
  if (what === "cancel") Object.assign(move, { state: "cancelled", ended: Math.floor(clock.now() / 1000), reason: null, hint: null });
  if (what === "rate") move.rate = body.rate ?? null;
  if (what === "guard") move.guard = { asked: body, state: "learning" };
  const text = { rate: `change migration${rateWords(body.rate)}`, guard: `guard migration${guardWords(body)}` }[what] ?? `${what} migration`;
  world.tell("dashboard", `migration ${id}`, text, command);
  return { body: move };
}

function start(world, body, command) {
  const disk = world.disks.find((one) => one.name === body.disk);
  if (!disk) return refuse(404, "not_found", `there is no disk ${body.disk}`);
  if (body.to === "tiny") return refuse(503, "unavailable", "datastore tiny cannot be used: its mark is missing", "mount the right file system at /mnt/tiny");
  const id = Math.max(...world.migrations.map((move) => move.id)) + 1;
  const { keep = null, p99_us = null, finish_by = null, window = null, idle_only = false } = body.guard ?? {};
  const guard = keep || p99_us || window || idle_only ? { asked: { keep, p99_us, window, idle_only, finish_by: finish_by ? Math.floor(clock.now() / 1000) + 3600 : null }, state: "learning" } : null;
  const move = world.move(id, disk.name, disk.datastore, body.to, 4 * GIB, { rate: body.rate ?? null, verify: body.verify ?? true, keep_source: body.keep_source ?? false, guard, started: Math.floor(clock.now() / 1000), progress: { total: 4 * GIB, synced: 0, copied: 0, verified: null, to_copy: 4 * GIB, to_compare: 4 * GIB, late_regions: 0, rate: 0, eta_s: null, switch_over_ms: null, undone: 0, patience_ms: 20 }, predicted: predict(world, body).body?.predicted ?? null });
  world.migrations.push(move);
  world.tell("dashboard", `disk ${disk.name}`, `start migration: to ${body.to}`, command);
  return { body: move };
}

/** Answers a request: a status and a body. */
export function answer(world, method, path, query, body, command = null) {
  const parts = path.split("/").slice(2).map(decodeURIComponent);
  const [what, name, more] = parts;
  const disk = () => world.disks.find((one) => one.name === name);
  const missing = (kind) => refuse(404, "not_found", `there is no ${kind} ${name}`, `see \`sterna ${kind} list\``);
  switch (`${method} ${what}${name === undefined ? "" : "/_"}${more ? `/${more}` : ""}`) {
    case "GET status": return { body: site.status(world) };
    case "GET top": return { body: top(world, query) };
    case "GET timelines": return timelines(world, query);
    case "GET disks": return { body: world.disks.map((one) => diskView(world, one)) };
    case "GET disks/_": return disk() ? { body: diskView(world, disk()) } : missing("disk");
    case "GET disks/_/usual": return disk() ? { body: site.usual(world, disk()) } : missing("disk");
    case "GET disks/_/hours": return disk() ? hoursOf(world, disk(), query) : missing("disk");
    case "GET disks/_/stats": return disk() ? { body: stats(world, disk()) } : missing("disk");
    case "DELETE disks/_":
      if (!disk()) return missing("disk");
      world.disks = world.disks.filter((one) => one.name !== name);
      world.tell("dashboard", `disk ${name}`, "remove disk", command);
      return { body: { name, image_kept: false } };
    case "GET datastores": return { body: world.datastores };
    case "GET datastores/_": return { body: world.datastores.find((one) => one.name === name) ?? null };
    case "GET datastores/_/images": return { body: { datastore: name, left_out: 0, images: [{ image: "db.raw", is: "disk", disk: "db", size: 200 * GIB, allocated: 120 * GIB }, { image: "db.old.raw", is: "old_copy", disk: "db", migration: 1, size: 200 * GIB, allocated: 90 * GIB }, { image: "notes.txt", is: "unknown", size: 4096, allocated: 4096 }] } };
    case "PUT datastores/_/maintenance": {
      const one = world.datastores.find((store) => store.name === name);
      one.maintenance = body.maintenance;
      return { body: one };
    }
    case "GET classes": return { body: site.classes(world) };
    case "GET classes/_/explanation": return { body: { class: site.classes(world).find((one) => one.name === name), local_time: "Fri 19:31:21", next_change: Math.floor(clock.now() / 1000) + 7200, policies: site.policies(world).filter((one) => one.class === name), then: null, time_zone: "Europe/Berlin" } };
    case "GET classes/_/kept": return { body: site.kept(world, name) };
    case "GET policies": return { body: [...site.policies(world), ...(world.policies ?? [])].filter((one) => !world.removed?.includes(one.id)) };
    case "POST policies":
      world.policies = [...(world.policies ?? []), { id: 9, cruise: null, created: Math.floor(clock.now() / 1000), since: Math.floor(clock.now() / 1000), standing: "binds", looser_than: null, until: null, ...body }];
      return { body: world.policies.at(-1) };
    case "DELETE policies/_": {
      const gone = [...site.policies(world), ...(world.policies ?? [])].find((one) => one.id === Number(name));
      world.removed = [...(world.removed ?? []), gone?.id];
      return gone ? { body: gone } : missing("policy");
    }
    case "GET storage-drs": return { body: site.storageDrs(world) };
    case "POST storage-drs/_": return { body: site.storageAdvice(world) };
    case "GET migrations": return { body: world.migrations };
    case "POST migrations": return start(world, body, command);
    case "PATCH migrations/_": return changeMove(world, Number(name), "rate", body, command);
    case "PUT migrations/_/guard": return changeMove(world, Number(name), "guard", body, command);
    case "POST migrations/_/pause":
    case "POST migrations/_/resume":
    case "POST migrations/_/cancel": return changeMove(world, Number(name), more, body, command);
    case "POST predictions": return body.to === "tiny" ? { status: query.get("or_why") === "true" ? 202 : 503, body: { code: "unavailable", message: "no prediction: Sterna has not copied from fast or to tiny yet", hint: "move a small disk first: `sterna migrate DISK --to tiny`" } } : predict(world, body);
    case "GET plans": return { body: site.plans(world) };
    case "POST plans": return body.datastore === "tiny" ? { body: { ...site.plans(world)[1], id: 0, datastore: "tiny", moves: [], refused: [{ disk: "vm-0001", reason: "no datastore has room for it" }] } } : { body: { ...site.plans(world)[1], id: body.dry_run ? 0 : 3, datastore: body.datastore } };
    case "GET plans/_": return { body: site.plans(world).find((one) => one.id === Number(name)) };
    case "POST plans/_/pause": case "POST plans/_/resume": case "POST plans/_/apply": case "POST plans/_/cancel": return { body: site.plans(world)[0] };
    case "GET hosts": return { body: world.empty ? [] : site.hosts() };
    case "GET drs": return { body: world.empty ? { ...site.drs().status, hosts: [], vms: [] } : site.drs().status };
    case "GET drs/_": return { body: name === "recommendations" ? site.drs().advice : site.transfers() };
    case "POST drs/_": return { body: [site.transfers()[1]] };
    case "GET drs/_/" + more: return { body: { goal: "cpu", recommended: null, vm: site.drs().status.vms[0], hosts: [{ host: "a", may: true, reason: "the VM is there" }, { host: "b", may: false, reason: "its disk db is being moved" }] } };
    case "GET memory": return { body: memory.host(world) };
    case "GET top/_": return { body: memory.top(world) };
    case "POST memory/_/sleep":
    case "POST memory/_/wake": return memory.change(world, name, more, command) ?? missing("vm");
    case "GET vms/_": {
      const vm = site.vms().find((one) => one.name === name);
      return vm ? { body: vm } : refuse(404, "not_found", `there is no VM ${name}`);
    }
    case "GET vms": return { body: world.empty ? [] : site.vms() };
    case "GET advice": return { body: site.advice(world, query.get("about")) };
    case "GET activity": {
      const of = query.get("of");
      const before = Number(query.get("before") ?? Infinity);
      const about = of ? of.replace(":", " ") : null;
      const entries = world.activities.filter((one) => one.seq < before && (!about || one.about === about));
      return { body: { entries: entries.slice(-Number(query.get("limit") ?? 200)).reverse() } };
    }
    default: return refuse(404, "not_found", `there is no ${method} ${path}`);
  }
}
