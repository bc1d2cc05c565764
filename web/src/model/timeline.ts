// Timelines that go on. Percentiles are never averaged: the daemon takes the worst of several
// windows, and the page says so.
import type { Column, Columns, Load, Timeline } from "../api/wire.ts";

type Name = Exclude<keyof Columns, "start_ms" | "end_ms">;

/** Columns of which the worst window counts. */
export const WORST: readonly Name[] = ["p50_us", "p99_us", "max_us"];
const MEANS: readonly Name[] = ["read_iops", "write_iops", "read_bytes_s", "write_bytes_s", "queue_us", "service_us", "outstanding"];
/** All columns of figures. */
export const NAMES: readonly Name[] = [...MEANS, ...WORST];

/** Columns without a row. */
export function empty(): Columns {
  const columns = { start_ms: [] as number[], end_ms: [] as number[] } as Columns;
  for (const name of NAMES) columns[name] = [];
  return columns;
}

/** A timeline with one more window, without what is then too old. */
export function append(timeline: Timeline, load: Load, atMs: number, spanMs: number): Timeline {
  const columns = timeline.columns;
  const last = columns.end_ms.at(-1) ?? 0;
  if (atMs <= last) return timeline;
  const start = Math.max(last, atMs - load.window_s * 1e3);
  const asked = load.read.iops + load.write.iops > 0;
  const row: Record<Name, number | null> = {
    read_iops: load.read.iops,
    write_iops: load.write.iops,
    read_bytes_s: load.read.bytes_per_second,
    write_bytes_s: load.write.bytes_per_second,
    p50_us: asked ? (load.p50_us ?? null) : null,
    p99_us: asked ? (load.p99_us ?? null) : null,
    max_us: asked ? (load.max_us ?? null) : null,
    queue_us: asked ? (load.queue_us ?? null) : null,
    service_us: asked ? (load.service_us ?? null) : null,
    outstanding: load.outstanding,
  };
  const drop = columns.start_ms.findIndex((at) => at >= atMs - spanMs);
  const from = drop < 0 ? columns.start_ms.length : drop;
  const made = empty();
  made.start_ms = [...columns.start_ms.slice(from), start];
  made.end_ms = [...columns.end_ms.slice(from), atMs];
  for (const name of NAMES) made[name] = [...columns[name].slice(from), row[name]];
  return { ...timeline, columns: made, from_ms: atMs - spanMs, to_ms: atMs, now_ms: atMs };
}

/** The middle value of those that are known, or nothing. */
export function median(values: Column): number | null {
  const known = values.filter((value): value is number => value !== null).sort((a, b) => a - b);
  return known.length === 0 ? null : known[Math.floor((known.length - 1) / 2)]!;
}

/** The sum of two columns, row by row. */
export function sum(left: Column, right: Column): Column {
  return left.map((value, at) => {
    const other = right[at] ?? null;
    return value === null && other === null ? null : (value ?? 0) + (other ?? 0);
  });
}

/** How a point of a timeline is to be read. */
export function pointMeans(timeline: Timeline): string {
  const seconds = (timeline.finest_ms * timeline.joined) / 1e3;
  if (timeline.joined <= 1) return `each point is one window of ${seconds < 1 ? "0.1" : Math.round(seconds)} s`;
  return `each point joins up to ${timeline.joined} windows: rates are means, p50, p99 and max are those of the worst window`;
}
