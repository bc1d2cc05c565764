// Why a disk answers as it does, in a sentence: the wait before the device against the time at
// the device, and what is known about either.
import type { Class, Load, Migration } from "../api/wire.ts";
import { hangs, isAbove, isLate, measured, type Bound } from "./late.ts";
import type { Tone } from "./words.ts";
import { limits } from "./words.ts";
import { rate, response, wholePercent } from "./units.ts";

/** What is known about a disk when the question is asked. */
export interface Known {
  load: Load;
  /** Its class, if it is in one. */
  class?: Class | undefined;
  /** The move under way, if there is one. */
  move?: Migration | undefined;
  /** What its requests should take at most. */
  bound?: Bound | null | undefined;
  /**
   * The disk that has the most bytes of those on the same datastore. Nothing if the daemon names a
   * cause already: its share is one of all work on the datastore, and would seem to contradict.
   */
  neighbour?: { name: string; load: Load } | null | undefined;
}

/** An answer. */
export interface Answer {
  tone: Tone;
  headline: string;
  because: string;
  /** The neighbour that is named, if one is. */
  neighbour: string | null;
}

/** From here on the wait before the device is what matters. */
const QUEUE_MATTERS = 0.5;
/** A neighbour with this part of all bytes is named. */
const LOUD = 0.5;

/** The answer. */
export function why({ load, class: its, move, bound, neighbour }: Known): Answer {
  if (hangs(load)) {
    const stuck = `${load.in_flight} requests are under way, and none was answered in the last second`;
    return { tone: "bad", headline: "Its requests hang", because: `${stuck}: look at its datastore`, neighbour: null };
  }
  const p99 = load.p99_us;
  if (p99 === null || p99 === undefined) {
    return { tone: "quiet", headline: "It is idle", because: "Nothing was asked of it in the last second.", neighbour: null };
  }
  const above = isAbove(load, bound ?? null);
  let headline = `p99 ${response(p99)}; nothing was promised to it`;
  if (bound) {
    const word = above ? "above" : "within";
    headline = `${bound.of} ${response(measured(load, bound.of))} is ${word} ${response(bound.us)}, ${bound.whose}`;
  }
  const tone = isLate(load, bound ?? null) ? "warn" : above ? "quiet" : "ok";
  const loud = above && neighbour && loudness(neighbour.load, load) >= LOUD ? neighbour : null;
  return { tone, headline, because: parts(load, its, move, loud), neighbour: loud?.name ?? null };
}

function parts(load: Load, its: Class | undefined, move: Migration | undefined, neighbour: NonNullable<Known["neighbour"]> | null): string {
  const queue = load.queue_us ?? 0;
  const service = load.service_us ?? 0;
  const part = queue / Math.max(1, queue + service);
  const times = `${response(queue)} before the device, ${response(service)} at it`;
  const said = [];
  if (part < QUEUE_MATTERS) {
    said.push(`Its requests spend their time at the device (${times})`);
  } else {
    said.push(`Its requests wait for their turn ${wholePercent(part)} of their time (${times})`);
    said.push(queued(its));
  }
  if (neighbour) {
    said.push(`${neighbour.name}, on the same datastore, transfers ${rate(bytes(neighbour.load))}: ${wholePercent(loudness(neighbour.load, load))} of the bytes of these two disks`);
  }
  if (move && move.progress && move.progress.rate > 0) said.push(`it is being moved to ${move.to} meanwhile`);
  return `${said.filter(Boolean).join("; ")}.`;
}

/** The part of a neighbour of what both transfer. */
function loudness(neighbour: Load, load: Load): number {
  return bytes(neighbour) / Math.max(1, bytes(neighbour) + bytes(load));
}

function bytes(load: Load): number {
  return load.read.bytes_per_second + load.write.bytes_per_second;
}

function queued(its: Class | undefined): string {
  if (its?.held) return `class ${its.name} is held for the target of class ${its.held.class} (policy ${its.held.policy})`;
  const own = its ? limits(its) : "-";
  if (its && own !== "-") return `class ${its.name} is held to ${own}`;
  return "other disks of its datastore go first";
}
