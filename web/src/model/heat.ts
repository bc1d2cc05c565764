// A heat map of response times, from the daemon's histogram: what was added between two looks.
import type { Bucket } from "../api/wire.ts";

/** What came between two looks. */
export interface Column {
  atMs: number;
  counts: number[];
}

/** The upper ends of the ranges. The last range has no end in the histogram; here it has the end before it. */
export function edges(buckets: Bucket[]): number[] {
  const ends = buckets.map((bucket) => bucket.to ?? null);
  const last = ends.findLast((end): end is number => end !== null) ?? 0;
  return ends.map((end) => end ?? last);
}

/** Two histograms of the same ranges together: reads and writes. */
export function both(one: Bucket[], other: Bucket[]): number[] {
  const longer = one.length >= other.length ? one : other;
  return longer.map((_, at) => (one[at]?.count ?? 0) + (other[at]?.count ?? 0));
}

/** The column between two looks; nothing if the counting began anew, as at a restart. */
export function between(before: number[], after: number[], atMs: number): Column | null {
  if (before.length !== after.length) return null;
  const counts = after.map((count, at) => count - before[at]!);
  return counts.some((count) => count < 0) ? null : { atMs, counts };
}

/** The rows that hold anything, with one more on either side. */
export function cropped(columns: Column[], ends: number[]): { columns: Column[]; edges: number[] } {
  const used = ends.map((_, row) => columns.some((column) => (column.counts[row] ?? 0) > 0));
  const first = used.indexOf(true);
  if (first < 0) return { columns, edges: ends };
  const from = Math.max(0, first - 1);
  const to = Math.min(ends.length, used.lastIndexOf(true) + 2);
  return {
    columns: columns.map((column) => ({ ...column, counts: column.counts.slice(from, to) })),
    edges: ends.slice(from, to),
  };
}
