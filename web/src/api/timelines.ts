// What a disk, a class, a datastore or everything did. The daemon leaves out the time in which
// nothing was asked; here it becomes a row without response times, so that no line is drawn
// across a pause.
import { get, path } from "./client.ts";
import { withPauses } from "../model/pauses.ts";
import type { RawTimeline, Timeline } from "./wire.ts";

/** What is asked: moments in milliseconds, and how many points at most. */
export interface Ask {
  fromMs?: number;
  toMs?: number;
  points?: number;
  /** All windows of one length. */
  even?: boolean;
}

/** Asks for a timeline: `disk:db`, `class:gold`, `datastore:fast` or `all`. */
export async function timeline(of: string, { fromMs, toMs, points = 600, even = false }: Ask = {}): Promise<Timeline> {
  const params = new URLSearchParams({ of, points: String(points) });
  if (fromMs !== undefined) params.set("from", (fromMs / 1e3).toFixed(3));
  if (toMs !== undefined) params.set("to", (toMs / 1e3).toFixed(3));
  if (even) params.set("even", "true");
  return withPauses(await get<RawTimeline>(`/v1/timelines?${params}`));
}

/** What a disk did hour by hour, for longer than a day. */
export async function hourly(disk: string, fromMs: number, toMs: number): Promise<Timeline> {
  const params = new URLSearchParams({ from: String(Math.floor(fromMs / 1e3)), to: String(Math.ceil(toMs / 1e3)) });
  return withPauses(await get<RawTimeline>(path`/v1/disks/${disk}/hours?` + params));
}
