// What a disk, a class, a datastore or everything did. The daemon leaves out the time in which
// nothing was asked; here it becomes a row without response times, so that no line is drawn
// across a pause.
import { get } from "./client.ts";
import { withPauses } from "../model/pauses.ts";
import type { RawTimeline, Timeline } from "./wire.ts";

/** What is asked: moments in milliseconds, and how many points at most. */
export interface Ask {
  fromMs?: number;
  toMs?: number;
  points?: number;
}

/** Asks for a timeline: `disk:db`, `class:gold`, `datastore:fast` or `all`. */
export async function timeline(of: string, { fromMs, toMs, points = 600 }: Ask = {}): Promise<Timeline> {
  const params = new URLSearchParams({ of, points: String(points) });
  if (fromMs !== undefined) params.set("from", (fromMs / 1e3).toFixed(3));
  if (toMs !== undefined) params.set("to", (toMs / 1e3).toFixed(3));
  return withPauses(await get<RawTimeline>(`/v1/timelines?${params}`));
}
