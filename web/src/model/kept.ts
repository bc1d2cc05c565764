// Whether a class got what it was promised, hour by hour, from what was measured.
import type { Class, Columns, KeptClass, KeptHour, Policy } from "../api/wire.ts";
import { isOpen } from "./schedule.ts";
import { day, minuteOfWeek } from "./time.ts";
import { count, percent } from "./units.ts";
import { reserved, wish } from "./words.ts";

/** What an hour was. `none`: nothing was promised then; `quiet`: nothing was asked. */
export type Verdict = "kept" | "missed" | "quiet" | "none";

/** A promise to a class: a target of a policy, or its reservation. */
export interface Promise_ {
  key: string;
  text: string;
  schedule: string | null;
  /** Since when it is promised, in milliseconds since 1970; nothing if that is not known. */
  sinceMs: number | null;
  /** Whether a window held it; nothing if the class asked for less, or for nothing. */
  held: (window: Window) => boolean | null;
}

/** What was measured in a window. */
export interface Window {
  iops: number | null;
  bytes: number | null;
  meanUs: number | null;
  queueUs: number | null;
}

/** The least part of an hour's windows that must hold a promise for the hour to count as kept. */
export const ENOUGH = 0.95;
/** A class whose requests hardly wait asks for no more than it gets. */
const HARDLY = 0.1;

/** What a class is promised. */
export function promises(its: Class, policies: Policy[]): Promise_[] {
  const found: Promise_[] = [];
  for (const policy of policies) {
    if (policy.class !== its.name || policy.aim.kind !== "cruise") continue;
    const { goal: wanted, tolerance_percent: tolerance } = policy.aim;
    found.push({
      key: `policy ${policy.id}`,
      text: `${wish(policy)} (policy ${policy.id})`,
      schedule: policy.schedule ?? null,
      sinceMs: policy.created * 1000,
      held: (window) => {
        if ("response_ms" in wanted) return window.meanUs === null ? null : window.meanUs <= wanted.response_ms * 1e3 * (1 + tolerance / 100);
        const [got, least] = "iops" in wanted ? [window.iops, wanted.iops] : [window.bytes, wanted.bytes_per_second];
        return enough(got, least * (1 - tolerance / 100), window);
      },
    });
  }
  const own = its.reservation;
  if (own) {
    const least = "iops" in own ? own.iops : own.bytes_per_second;
    found.push({ key: "reservation", text: `reservation of ${reserved(its)}`, schedule: null, sinceMs: null, held: (window) => enough("iops" in own ? window.iops : window.bytes, least, window) });
  }
  return found;
}

/** Less than was promised is a miss only if requests waited for their turn. */
function enough(got: number | null, least: number, window: Window): boolean | null {
  if (got === null || window.meanUs === null) return null;
  if (got >= least) return true;
  return (window.queueUs ?? 0) <= window.meanUs * HARDLY ? null : false;
}

/** An hour of a class. */
export interface Hour {
  startMs: number;
  verdict: Verdict;
  /** The part of the windows that held the promise, of those in which there was something to hold. */
  part: number | null;
}

const HOUR_MS = 3_600_000;

/** The hours of a timeline, each judged by a promise. */
export function hours(columns: Columns, promise: Promise_, zone?: string): Hour[] {
  const found = new Map<number, { held: number; missed: number; open: boolean }>();
  columns.start_ms.forEach((start, at) => {
    const hour = Math.floor(start / HOUR_MS) * HOUR_MS;
    const its = found.get(hour) ?? { held: 0, missed: 0, open: false };
    found.set(hour, its);
    if (promise.sinceMs !== null && start < promise.sinceMs) return;
    if (!isOpen(promise.schedule, minuteOfWeek(start, zone))) return;
    its.open = true;
    const held = promise.held(windowAt(columns, at));
    if (held === true) its.held += 1;
    if (held === false) its.missed += 1;
  });
  return [...found]
    .sort(([a], [b]) => a - b)
    .map(([startMs, { held, missed, open }]) => {
      const part = held + missed === 0 ? null : held / (held + missed);
      const verdict: Verdict = !open ? "none" : part === null ? "quiet" : part >= ENOUGH ? "kept" : "missed";
      return { startMs, verdict, part };
    });
}

/** What was measured in a row of a timeline. */
export function windowAt(columns: Columns, at: number): Window {
  const sum = (one: number | null | undefined, other: number | null | undefined) => (one == null && other == null ? null : (one ?? 0) + (other ?? 0));
  const queueUs = columns.queue_us[at] ?? null;
  return {
    iops: sum(columns.read_iops[at], columns.write_iops[at]),
    bytes: sum(columns.read_bytes_s[at], columns.write_bytes_s[at]),
    meanUs: sum(queueUs, columns.service_us[at]),
    queueUs,
  };
}

/** A day of a class, as the daemon recorded it second by second. */
export interface Day {
  /** `2026-11-24` */
  day: string;
  verdict: Verdict;
  /** The part of the seconds with a promise and a load in which it was kept. */
  part: number | null;
}

/** How many days a week has. */
const DAYS = 7;
const DAY_MS = 86_400_000;

/** The last seven days until now, the oldest first. `none`: nothing was recorded. */
export function week(hours: KeptHour[], nowMs: number, zone?: string): Day[] {
  const days = new Map<string, { kept: number; missed: number; any: boolean }>();
  // A day with a change of the clock is longer or shorter: one step more finds all seven.
  for (let at = nowMs; days.size < DAYS; at -= DAY_MS / 2) days.set(day(at, zone), { kept: 0, missed: 0, any: false });
  for (const hour of hours) {
    const its = days.get(day(hour.at * 1e3, zone));
    if (!its) continue;
    its.kept += hour.kept_s;
    its.missed += hour.missed_s;
    its.any = true;
  }
  return [...days].reverse().map(([name, { kept, missed, any }]) => ({ day: name, ...judged(kept, missed, any) }));
}

/** Several days in one: how many of those in which something was asked were kept. */
export interface Overall {
  verdict: Verdict;
  part: number | null;
  kept: number;
  asked: number;
}

/** The days of a week together: kept if each day is. */
export function overall(days: Day[], hours: KeptHour[]): Overall {
  const names = new Set(days.filter((one) => one.part !== null).map((one) => one.day));
  const sum = (of: (hour: KeptHour) => number) => hours.reduce((total, hour) => total + of(hour), 0);
  const all = judged(sum((hour) => hour.kept_s), sum((hour) => hour.missed_s), hours.length > 0);
  const missed = days.filter((one) => one.verdict === "missed").length;
  const verdict = all.part === null ? all.verdict : missed > 0 ? "missed" : "kept";
  return { part: all.part, verdict, kept: names.size - missed, asked: names.size };
}

function judged(kept: number, missed: number, any: boolean): { verdict: Verdict; part: number | null } {
  const part = kept + missed === 0 ? null : kept / (kept + missed);
  return { part, verdict: !any ? "none" : part === null ? "quiet" : part >= ENOUGH ? "kept" : "missed" };
}

/**
 * The classes of a week: those that are promised something now, then those that were. A promise
 * that is removed takes nothing back of what was recorded.
 */
export function classesOfWeek(promised: KeptClass[], others: KeptClass[]): KeptClass[] {
  return [...promised, ...others.filter((one) => one.hours.length > 0)];
}

/** That nothing is promised now, and what there is of the time when something was. */
export function nothingPromised(week: KeptClass[]): string {
  if (week.length === 0) return "No class is promised anything, so nothing can be kept or missed.";
  return "No class is promised anything now. The week above is of promises that have been removed.";
}

const WORDS: Record<Verdict, string> = { kept: "kept", missed: "not kept", quiet: "not asked", none: "no data" };

/** `kept 99.9%`, `not kept 88.7%`, `no data` */
export function dayWords(one: { verdict: Verdict; part: number | null }): string {
  return one.part === null ? WORDS[one.verdict] : `${WORDS[one.verdict]} ${share(one.part)}`;
}

/** `kept on 5 of 6 days, 97.7%` */
export function weekWords(all: Overall): string {
  return all.part === null ? WORDS[all.verdict] : `kept on ${all.kept} of ${count(all.asked, "day")}, ${share(all.part)}`;
}

/** What was missed is not rounded away. */
function share(part: number): string {
  return percent(part < 1 ? Math.min(part, 0.999) : 1);
}
