// Believable figures: for each name and moment the same ones, so that a timeline and the live
// rows tell one story.
import { clock } from "./clock.mjs";

/** A number from 0 to 1 that depends on nothing but its arguments. */
export function dice(...parts) {
  let hash = 2166136261;
  for (const one of parts.join("|")) hash = Math.imul(hash ^ one.codePointAt(0), 16777619);
  hash ^= hash >>> 15;
  hash = Math.imul(hash, 2246822519);
  hash ^= hash >>> 13;
  return (hash >>> 0) / 4294967296;
}

/** What a disk does in the second that ends at `atMs`. */
export function loadOf(disk, atMs) {
  const second = Math.floor(atMs / 1000);
  const noise = dice(disk.name, second);
  const day = 0.75 + 0.25 * Math.sin((second / 86_400) * 2 * Math.PI);
  const wave = 1 + 0.25 * Math.sin(second / 47 + dice(disk.name) * 7);
  let iops = disk.iops * day * wave * (0.85 + 0.3 * noise);
  if (disk.idle && second % 60 < 40) iops = 0;
  const service = disk.service * (0.9 + 0.25 * dice(disk.name, "s", Math.floor(second / 5)));
  const queue = disk.queue * (0.8 + 0.4 * noise);
  const p50 = (queue + service) * 0.85;
  const spike = dice(disk.name, "spike", second) > 0.97 ? 3 : 1;
  const p99 = (queue * 1.4 + service * 2.6) * spike;
  return load(iops, disk.length, disk.writes, { queue, service, p50, p99, max: p99 * (1.4 + noise) });
}

/** A load of these figures. Times are microseconds. */
export function load(iops, length, writes, times) {
  const asked = iops > 0;
  const side = (part) => ({ iops: iops * part, bytes_per_second: iops * part * length, response_us: asked && part > 0 ? times.queue + times.service : null });
  const outstanding = (iops * (times.queue + times.service)) / 1e6;
  return {
    window_s: 1.0,
    read: side(1 - writes),
    write: side(writes),
    flushes: asked ? iops * writes * 0.1 : 0,
    queue_us: asked ? times.queue : null,
    service_us: asked ? times.service : null,
    p50_us: asked ? times.p50 : null,
    p95_us: asked ? times.p99 * 0.7 : null,
    p99_us: asked ? times.p99 : null,
    max_us: asked ? times.max : null,
    outstanding,
    in_flight: Math.round(outstanding),
  };
}

/** Several loads together. */
export function together(loads) {
  const busy = loads.filter((one) => one.p99_us !== null);
  const sum = (of) => loads.reduce((total, one) => total + of(one), 0);
  const io = (one) => one.read.iops + one.write.iops;
  const all = sum(io);
  const mean = (of) => (all > 0 ? busy.reduce((total, one) => total + of(one) * io(one), 0) / all : null);
  const worst = (of) => (busy.length > 0 ? Math.max(...busy.map(of)) : null);
  return {
    window_s: 1.0,
    read: { iops: sum((one) => one.read.iops), bytes_per_second: sum((one) => one.read.bytes_per_second), response_us: mean((one) => one.read.response_us ?? 0) },
    write: { iops: sum((one) => one.write.iops), bytes_per_second: sum((one) => one.write.bytes_per_second), response_us: mean((one) => one.write.response_us ?? 0) },
    flushes: sum((one) => one.flushes),
    queue_us: mean((one) => one.queue_us),
    service_us: mean((one) => one.service_us),
    p50_us: mean((one) => one.p50_us),
    p95_us: worst((one) => one.p95_us),
    p99_us: worst((one) => one.p99_us),
    max_us: worst((one) => one.max_us),
    outstanding: sum((one) => one.outstanding),
    in_flight: sum((one) => one.in_flight),
  };
}

/** A timeline of at most `points` windows. */
export function timeline(of, at, fromMs, toMs, points, bornMs) {
  const from = Math.max(fromMs, bornMs);
  const finest = toMs - fromMs > 3_600_000 ? 10_000 : 1_000;
  const windows = Math.max(0, Math.floor((toMs - from) / finest));
  const joined = Math.max(1, Math.ceil(windows / points));
  const columns = Object.fromEntries(
    ["start_ms", "end_ms", "read_iops", "write_iops", "read_bytes_s", "write_bytes_s", "p50_us", "p99_us", "max_us", "queue_us", "service_us", "outstanding", "windows"].map((name) => [name, []]),
  );
  for (let window = 0; window < windows; window += joined) {
    const start = Math.floor((from + window * finest) / 1000) * 1000;
    const end = start + Math.min(joined, windows - window) * finest;
    const found = at(end);
    // Where nothing was asked there is no point.
    if (found.p99_us === null) continue;
    columns.start_ms.push(start);
    columns.end_ms.push(end);
    columns.windows.push(Math.min(joined, windows - window));
    columns.read_iops.push(found.read.iops);
    columns.write_iops.push(found.write.iops);
    columns.read_bytes_s.push(found.read.bytes_per_second);
    columns.write_bytes_s.push(found.write.bytes_per_second);
    columns.p50_us.push(found.p50_us);
    columns.p99_us.push(found.p99_us);
    columns.max_us.push(found.max_us);
    columns.queue_us.push(found.queue_us);
    columns.service_us.push(found.service_us);
    columns.outstanding.push(found.outstanding);
  }
  return { of, from_ms: fromMs, to_ms: toMs, now_ms: clock.now(), columns };
}
