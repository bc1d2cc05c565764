// What is usual for a disk, in words: what it is, or since when it is learned.
import type { UsualDisk, UsualTime } from "../api/wire.ts";
import { moment } from "./time.ts";
import { bytes, response, span } from "./units.ts";

/** `reads up to 16.0 KiB`, `longer writes` */
function kind(one: UsualTime): string {
  const side = one.writes ? "writes" : "reads";
  return one.longest ? `${side} up to ${bytes(one.longest)}` : `longer ${side}`;
}

/** `reads up to 16.0 KiB take 3.3 ms, writes up to 16.0 KiB 0.50 ms`; nothing while nothing is known. */
export function usually(usual: UsualDisk): string | null {
  const known = usual.times.filter((one) => typeof one.response_us === "number");
  if (known.length === 0) return null;
  return known.map((one, at) => `${kind(one)} ${at === 0 ? "take " : ""}${response(one.response_us)}`).join(", ");
}

/**
 * Over which time that is: as `sterna_core::hurt::Usual` learns. It is a sentence of its own, and
 * said wherever the figures are.
 */
export const OVER =
  "Usual is the median of steps of 5 s in which the disk was asked for something. Old steps fade: of one that is six hours of load old, a third still counts.";

/** Since when it is learned, and what is missing: `learned since 14:03:20; not known yet: 2 min 00 s of 5 min 00 s of load are seen`. */
export function learning(usual: UsualDisk, nowMs: number): string {
  if (!usual.since) return "not known: the disk was asked for nothing yet";
  const since = `learned since ${moment(usual.since * 1e3, nowMs)}`;
  if (usually(usual)) return since;
  const seen = Math.max(0, ...usual.times.map((one) => one.learned_s));
  return `${since}; not known yet: ${span(Math.min(seen, usual.needed_s))} of ${span(usual.needed_s)} of load are seen`;
}
