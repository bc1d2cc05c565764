// Disks that are hurt, in words: how, since when, by what, and what would help. Who is hurt, the
// daemon decides.
import type { HurtDisk } from "../api/wire.ts";
import { day, moment, shortClock } from "./time.ts";
import { response, span } from "./units.ts";

/** So many disks are named; of the others, how many they are. */
export const NAMED = 3;

/** Up to so many times what is usual, a disk recovers. */
const RECOVERED = 1.2;

/** `requests take 7.9 ms, usually 0.50 ms` */
export function takes(one: HurtDisk): string {
  if (one.response_us === null || one.response_us === undefined) return "requests hang";
  const now = `${one.recovers ? "recovering: " : ""}requests take ${response(one.response_us)}`;
  if (one.promised_us) return `${now}, promised ${response(one.promised_us)}`;
  return one.usual_us ? `${now}, usually ${response(one.usual_us)}` : now;
}

/** `since 14:03`, with the day if that is not today. */
export function since(one: HurtDisk, nowMs: number): string {
  const atMs = one.since * 1e3;
  return `since ${day(atMs) === day(nowMs) ? shortClock(atMs) : moment(atMs, nowMs)}`;
}

/** `3.0 times its usual 3.3 ms for 40 s`, of a disk that is slower than usual and not hurt. */
export function slower(one: HurtDisk, nowMs: number): string {
  const lasted = `for ${span(Math.max(1, nowMs / 1e3 - one.since))}`;
  if (!one.response_us || !one.usual_us) return `slower than usual ${lasted}`;
  // It counts as slower for some steps more, and takes no longer by now.
  if (one.response_us <= one.usual_us * RECOVERED) return `as quick as usual again, ${response(one.response_us)}; it was slower ${lasted}`;
  return `${(one.response_us / one.usual_us).toFixed(1)} times its usual ${response(one.usual_us)} ${lasted}`;
}

/** `requests take 244 ms, usually 20.0 ms, on purpose for 40 s`, of a disk that a policy slows. */
export function slowed(one: HurtDisk, nowMs: number): string {
  return `${takes(one)}, on purpose for ${span(Math.max(1, nowMs / 1e3 - one.since))}`;
}

/** `db is slower than usual: 3.0 times its usual 3.3 ms for 40 s`, or `4 disks are slower than usual` */
export function slowerLine(all: HurtDisk[], count: number, nowMs: number): string {
  const [first] = all;
  if (first && count <= 1) return `${first.disk} is slower than usual: ${slower(first, nowMs)}`;
  return `${count} disks are slower than usual`;
}

/**
 * `db: requests take 7.9 ms, usually 0.50 ms, since 14:03. Its neighbour etl does 90% of the work
 * of datastore array`, or `db, mail, web and 4 more are hurt`.
 */
export function headline(hurt: HurtDisk[], count: number, nowMs: number): string {
  const [first] = hurt;
  if (hurt.length === 1 && count <= 1 && first) return `${first.disk}: ${takes(first)}, ${since(first, nowMs)}. ${first.why}`;
  const names = hurt.slice(0, NAMED).map((one) => one.disk);
  const more = Math.max(count, hurt.length) - names.length;
  const all = more > 0 ? [...names, `${more} more`] : names;
  return `${all.slice(0, -1).join(", ")} and ${all.at(-1)} are hurt`;
}

/** How a disk is hurt, if it is. */
export function hurtOf(hurt: HurtDisk[] | undefined, disk: string): HurtDisk | undefined {
  return hurt?.find((one) => one.disk === disk);
}

/**
 * What Storage DRS has no word on: of a datastore that answers nothing, no response time can be
 * over a bound. So the disk that hangs comes first, whatever else is recommended.
 */
export function hangsFirst(one: HurtDisk, nowMs: number): string {
  return `${one.why}: disk ${one.disk} hangs ${since(one, nowMs)}. Storage DRS judges by requests that are answered, so it recommends nothing for that.`;
}

/** A disk that is hurt where Storage DRS moves nothing. */
export function withinBounds(one: HurtDisk): string {
  return `No datastore is over a bound, so Storage DRS moves nothing by itself. But disk ${one.disk} on ${one.datastore} is hurt: ${takes(one)}.`;
}

/** `1 more disk that is`, `4 more disks that are` */
export function more(count: number): string {
  return count === 1 ? "1 more disk that is" : `${count} more disks that are`;
}
