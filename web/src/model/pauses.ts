// The pauses of a timeline: time in which nothing was asked has no points.
import type { Columns, RawTimeline, Timeline } from "../api/wire.ts";
import { empty, median, NAMES, WORST } from "./timeline.ts";

/** A point that begins later than this after the one before follows a pause. */
const SLACK = 0.5;

/** A timeline whose pauses are rows without response times, and without requests. */
export function withPauses(raw: RawTimeline): Timeline {
  const columns = empty();
  const source = raw.columns;
  const lengths = source.end_ms.map((end, at) => (end - source.start_ms[at]!) / Math.max(1, source.windows[at] ?? 1));
  // The newest windows are shorter: the usual length counts.
  const finest = Math.max(1, median(lengths) ?? 1_000);
  source.end_ms.forEach((end, at) => {
    const start = source.start_ms[at]!;
    const before = source.end_ms[at - 1];
    if (before !== undefined && start - before > finest * SLACK) pause(columns, before, start);
    columns.start_ms.push(start);
    columns.end_ms.push(end);
    for (const name of NAMES) columns[name].push(source[name][at] ?? null);
  });
  const last = source.end_ms.at(-1);
  if (last !== undefined && raw.to_ms - last > finest * 2) pause(columns, last, raw.to_ms);
  return { ...raw, columns, finest_ms: finest, joined: Math.max(1, ...source.windows) };
}

/** Two rows: the pause begins at once, and lasts until the next point. */
function pause(columns: Columns, fromMs: number, toMs: number): void {
  for (const [start, end] of [[fromMs, fromMs + 1], [fromMs + 1, toMs]] as const) {
    if (end <= start) continue;
    columns.start_ms.push(start);
    columns.end_ms.push(end);
    for (const name of NAMES) columns[name].push(WORST.includes(name) || name === "queue_us" || name === "service_us" ? null : 0);
  }
}
