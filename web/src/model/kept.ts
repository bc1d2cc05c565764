// Whether a class got what it was promised, hour by hour and day by day, as the daemon recorded it.
import type { Class, Columns, KeptClass, KeptHour, Policy } from "../api/wire.ts";
import { day } from "./time.ts";
import { count, percent } from "./units.ts";
import { reserved, wish } from "./words.ts";

/** What an hour was. `none`: nothing was promised then; `quiet`: nothing was asked. */
export type Verdict = "kept" | "missed" | "quiet" | "none";

/** A promise to a class: a target of a policy, or its reservation. */
export interface Promise_ {
  key: string;
  text: string;
  /** The policy; nothing of what is reserved: the class's reservation, or a policy's floor. */
  policy: number | null;
}

/** What was measured in a window. */
export interface Window {
  iops: number | null;
  bytes: number | null;
  meanUs: number | null;
  queueUs: number | null;
}

/** The least part of the seconds that must hold a promise for an hour or a day to count as kept. */
export const ENOUGH = 0.95;

/** What a class is promised. */
export function promises(its: Class, policies: Policy[]): Promise_[] {
  const found: Promise_[] = [];
  for (const policy of policies) {
    if (policy.class !== its.name || policy.aim.kind !== "cruise") continue;
    found.push({ key: `policy ${policy.id}`, text: `${wish(policy)} (policy ${policy.id})`, policy: policy.id });
  }
  // The daemon records what is reserved without a policy, also if a policy's floor is all that is.
  const floors = policies.filter((one) => one.class === its.name && one.aim.kind === "cruise" && one.aim.floor);
  if (its.reservation) found.push({ key: "reservation", text: `reservation of ${reserved(its)}`, policy: null });
  else if (floors.length > 0) found.push({ key: "reservation", text: `floor of policy ${floors.map((one) => one.id).join(", ")}`, policy: null });
  return found;
}

/** An hour of a promise, as the daemon recorded it second by second. */
export interface Hour {
  startMs: number;
  verdict: Verdict;
  /** The part of the seconds with a promise and a load in which it was kept. */
  part: number | null;
}

/** A promise by hours. */
export interface HoursOf {
  class: string;
  promise: string;
  hours: Hour[];
}

const HOUR_MS = 3_600_000;

/** The first hour of the last day. */
function firstHour(nowMs: number): number {
  return Math.floor((nowMs - DAY_MS) / HOUR_MS) * HOUR_MS;
}

/**
 * The last day of a class by promises and hours: of each promise that it has, and of those that were
 * removed, together. These are the same records as those of the week, so the two agree.
 */
export function lastDay(its: KeptClass, now: Promise_[], nowMs: number): HoursOf[] {
  const recent = its.hours.filter((hour) => hour.at * 1e3 >= firstHour(nowMs));
  const of = (promise: string, hours: KeptHour[]): HoursOf => ({ class: its.class, promise, hours: byHour(hours) });
  const rows = now.map((one) => of(one.text, recent.filter((hour) => (hour.policy ?? null) === one.policy)));
  const before = recent.filter((hour) => !now.some((one) => one.policy === (hour.policy ?? null)));
  return before.length > 0 ? [...rows, of("promises that were removed", before)] : rows;
}

function byHour(hours: KeptHour[]): Hour[] {
  const starts = [...new Set(hours.map((hour) => hour.at))].sort((a, b) => a - b);
  return starts.map((at) => {
    const these = hours.filter((hour) => hour.at === at);
    const sum = (of: (hour: KeptHour) => number) => these.reduce((total, hour) => total + of(hour), 0);
    return { startMs: at * 1e3, ...judged(sum((hour) => hour.kept_s), sum((hour) => hour.missed_s), true) };
  });
}

/**
 * The last day in a line: an hour of which two promises were missed is one hour. Nothing if nobody
 * to whom something was promised sent a request.
 */
export function dayLine(rows: HoursOf[]): { tone: "ok" | "warn"; text: string } | null {
  const asked = new Set<number>();
  const missed = new Set<number>();
  for (const hour of rows.flatMap((row) => row.hours)) {
    if (hour.part !== null) asked.add(hour.startMs);
    if (hour.verdict === "missed") missed.add(hour.startMs);
  }
  if (asked.size === 0) return null;
  if (missed.size === 0) return { tone: "ok", text: `the last day: every promise was kept, in ${count(asked.size, "hour")} with requests` };
  return { tone: "warn", text: `the last day: a promise was missed in ${missed.size} of ${count(asked.size, "hour")} with requests` };
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
