// A policy that is not made yet: what contradicts it, and what it would have done yesterday.
// The daemon decides in the end; this says it while one types.
import type { Class, Columns, Goal, Policy } from "../api/wire.ts";
import { minuteWords, overlap, parse } from "./schedule.ts";
import { isOpen } from "./schedule.ts";
import { minuteOfWeek } from "./time.ts";
import { windowAt } from "./kept.ts";
import { parseBytes, parseResponse, rate, wholePercent } from "./units.ts";
import { command, option } from "./quote.ts";
import { goal } from "./words.ts";

/** What somebody has typed. */
export interface Draft {
  class: string;
  kind: "limit" | "cruise" | "queue-depth";
  goal: string;
  tolerance: string;
  schedule: string;
}

/** Reads a goal: `20M`, `100iops`, `20ms`. */
export function parseGoal(text: string): Goal | null {
  const iops = /^\s*(\d+)\s*(?:iops|io\/s)\s*$/i.exec(text);
  if (iops) return Number(iops[1]) > 0 ? { iops: Number(iops[1]) } : null;
  const us = parseResponse(text);
  if (us !== null) return { response_ms: us / 1e3 };
  // A bare number has no unit.
  if (/^\s*[\d.]+\s*$/.test(text)) return null;
  const bytes = parseBytes(text.replace(/\/s\s*$/, ""));
  return bytes ? { bytes_per_second: bytes } : null;
}

/** The aim of a draft, or what is wrong with it. */
export function aimOf(draft: Draft): { aim: Policy["aim"] } | { wrong: string } {
  if (draft.schedule.trim() && parse(draft.schedule) === null) return { wrong: "schedule: give days, hours or both: Mon-Fri 22:00-06:00" };
  if (draft.kind === "queue-depth") {
    const depth = Number(draft.goal);
    const good = Number.isInteger(depth) && depth >= 1 && depth <= 65_535;
    return good ? { aim: { kind: "queue-depth", depth } } : { wrong: "queue depth: give a number from 1 to 65535" };
  }
  const wanted = parseGoal(draft.goal);
  if (!wanted) return { wrong: "goal: give bytes per second (20M), requests per second (100iops) or a response time (20ms)" };
  if ("response_ms" in wanted && wanted.response_ms > 10_000) return { wrong: "more than 10 s would stop a guest" };
  if ("iops" in wanted && wanted.iops < 4) return { wrong: "less than 4 IO/s would stop a guest" };
  if ("bytes_per_second" in wanted && wanted.bytes_per_second < 262_144) return { wrong: "less than 256 KiB/s would stop a guest" };
  if (draft.kind === "limit") return { aim: { kind: "limit", goal: wanted } };
  const tolerance = Number(draft.tolerance.replace("%", ""));
  if (!Number.isInteger(tolerance) || tolerance < 1 || tolerance > 50) return { wrong: "tolerance: give 1% to 50%" };
  return { aim: { kind: "cruise", goal: wanted, tolerance_percent: tolerance } };
}

/** The command that makes a draft a policy. */
export function commandOf(draft: Draft): string {
  const tolerance = draft.kind === "cruise" ? option("--tolerance", `${draft.tolerance.replace("%", "")}%`) : [];
  return command("policy", draft.kind, draft.class || "CLASS", draft.goal.trim() || "GOAL", ...tolerance, ...option("--schedule", draft.schedule.trim()));
}

/**
 * That a limit leaves a class less than is reserved for it, where the two are of different metrics:
 * then what counts is how long its requests are: `load` is what is known of them.
 */
export function breaks(wanted: Goal, its: Class, load: { iops: number; bytes: number } | null): string | null {
  const own = its.reservation;
  if (!own || !load || load.iops <= 0 || load.bytes <= 0) return null;
  const each = load.bytes / load.iops;
  const leaves = "bytes_per_second" in wanted && "iops" in own ? wanted.bytes_per_second / each : "iops" in wanted && "bytes_per_second" in own ? wanted.iops * each : null;
  if (leaves === null) return null;
  const [least, left] = "iops" in own ? [own.iops, `${Math.floor(leaves)} of ${own.iops} IO/s`] : [own.bytes_per_second, `${rate(leaves)} of ${rate(own.bytes_per_second)}`];
  return leaves < least ? `this breaks the reservation of class ${its.name}: with requests as long as they are, the limit leaves it ${left}` : null;
}

/** What cannot be had together with what there is. */
export function contradictions(draft: Draft, its: Class | undefined, policies: Policy[]): string[] {
  const read = aimOf(draft);
  if (!("aim" in read) || !its) return [];
  const aim = read.aim;
  const said: string[] = [];
  const own = its.reservation;
  if (aim.kind === "limit" && own) {
    const below =
      ("iops" in aim.goal && "iops" in own && aim.goal.iops < own.iops) ||
      ("bytes_per_second" in aim.goal && "bytes_per_second" in own && aim.goal.bytes_per_second < own.bytes_per_second);
    if (below) said.push(`the limit of ${goal(aim.goal)} is below the reservation of class ${its.name}`);
  }
  if (aim.kind === "cruise" && its.built_in) said.push("a target for copies would slow applications for them: reserve something for the class instead");
  for (const policy of policies.filter((one) => one.class === its.name)) {
    const minute = overlap(draft.schedule.trim() || null, policy.schedule);
    if (minute === null) continue;
    if (aim.kind === "cruise" && policy.aim.kind === "cruise") {
      said.push(`a class has one cruise control at a time, and policy ${policy.id} holds too, on ${minuteWords(minute)}`);
    }
    const pair = [aim, policy.aim];
    const limit = pair.find((one) => one.kind === "limit");
    const target = pair.find((one) => one.kind === "cruise");
    if (limit?.kind === "limit" && target?.kind === "cruise" && beyond(target.goal, target.tolerance_percent, limit.goal)) {
      said.push(`the target of ${goal(target.goal)} is beyond the limit of ${goal(limit.goal)} (policy ${policy.id}), on ${minuteWords(minute)}`);
    }
  }
  return said;
}

function beyond(target: Goal, tolerance: number, limit: Goal): boolean {
  const part = 1 - tolerance / 100;
  if ("iops" in target && "iops" in limit) return target.iops * part > limit.iops;
  if ("bytes_per_second" in target && "bytes_per_second" in limit) return target.bytes_per_second * part > limit.bytes_per_second;
  return "response_ms" in target && "response_ms" in limit && target.response_ms * (1 + tolerance / 100) < limit.response_ms;
}

/** What a policy would have met in what was measured. */
export interface Rehearsal {
  /** Windows in which its schedule was open and something was asked. */
  windows: number;
  /** Those in which the class was beyond the limit, or missed the target. */
  beyond: number;
}

/**
 * What a policy would have met in the last day, in words: a limit holds the class back, and a
 * target holds the others back.
 */
export function rehearsed(draft: Draft, found: Rehearsal): string {
  if (found.windows === 0) return "In the last day the class asked for nothing while this schedule was open.";
  const part = found.beyond / found.windows;
  const share = part > 0 && part < 0.005 ? "less than 1%" : wholePercent(part);
  const of = `${share} of the time in which it asked for anything and the schedule was open`;
  const name = draft.class;
  if (draft.kind === "cruise") {
    return part === 0 ? `In the last day class ${name} always had this target: nobody would have been slowed for it.` : `In the last day class ${name} missed this target in ${of}: then Sterna would have slowed the other classes.`;
  }
  if (part === 0) return `In the last day class ${name} never did more than this limit permits: it would have changed nothing.`;
  const slows = /ms|\ds\s*$/.test(draft.goal) && draft.kind === "limit";
  if (slows) return `In the last day requests of class ${name} were answered sooner than this limit permits in ${of}: they would have been slower then.`;
  const more = draft.kind === "queue-depth" ? "had more requests at the device than this" : "did more than this limit permits";
  return `In the last day class ${name} ${more} in ${of}: its requests would have waited then, so it would have been slower.`;
}

/** Holds a draft against a timeline of its class. */
export function rehearse(draft: Draft, columns: Columns, zone?: string): Rehearsal | null {
  const read = aimOf(draft);
  if (!("aim" in read)) return null;
  const aim = read.aim;
  const found = { windows: 0, beyond: 0 };
  columns.start_ms.forEach((start, at) => {
    if (!isOpen(draft.schedule.trim() || null, minuteOfWeek(start, zone))) return;
    const window = windowAt(columns, at);
    if (window.meanUs === null) return;
    found.windows += 1;
    if (aim.kind === "queue-depth") found.beyond += (columns.outstanding[at] ?? 0) > aim.depth ? 1 : 0;
    else found.beyond += outside(aim.goal, aim.kind === "limit", window) ? 1 : 0;
  });
  return found;
}

function outside(wanted: Goal, isLimit: boolean, window: ReturnType<typeof windowAt>): boolean {
  if ("response_ms" in wanted) {
    // A limit in milliseconds is the least that a request takes; a target the most.
    const apart = (window.meanUs ?? 0) - wanted.response_ms * 1e3;
    return isLimit ? apart < 0 : apart > 0;
  }
  const got = "iops" in wanted ? (window.iops ?? 0) : (window.bytes ?? 0);
  const bound = "iops" in wanted ? wanted.iops : wanted.bytes_per_second;
  return isLimit ? got > bound : got < bound;
}
