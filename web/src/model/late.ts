// Whether requests take longer than they should. What was promised of the mean is held against
// the mean, and what was promised of the 99th percentile against that.
import type { Load } from "../api/wire.ts";
import { grouped, iops } from "./units.ts";

/** The figure that a bound is about. */
export type Measure = "mean" | "p95" | "p99";

/** What requests should take at most, and whose word that is. */
export interface Bound {
  us: number;
  of: Measure;
  whose: string;
  /** Whether somebody promised it: what only Storage DRS judges by is no promise. */
  promised: boolean;
}

/** The figure that a bound is about; nothing where nothing was asked. */
export function measured(load: Load, of: Measure): number | null {
  if (load.p99_us === null || load.p99_us === undefined) return null;
  if (of === "p99") return load.p99_us;
  if (of === "p95") return load.p95_us ?? null;
  return (load.queue_us ?? 0) + (load.service_us ?? 0);
}

/** Whether a load is above its bound, promised or not. */
export function isAbove(load: Load, bound: Bound | null): boolean {
  return bound !== null && (measured(load, bound.of) ?? 0) > bound.us;
}

/** Whether a load is later than was promised. */
export function isLate(load: Load, bound: Bound | null): boolean {
  return bound?.promised === true && isAbove(load, bound);
}

/** Whether requests are under way and none is answered. */
export function hangs(load: Load): boolean {
  return load.read.iops + load.write.iops === 0 && load.in_flight > 0;
}

/**
 * How many requests are under way: the mean over the window, which is that of answered requests;
 * or, where none is answered, how many hang.
 */
export function underWay(load: Load): string {
  return hangs(load) ? grouped(load.in_flight) : iops(load.outstanding);
}
