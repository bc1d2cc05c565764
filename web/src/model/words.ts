// States and guards in the words of the command line.
import type { BindingLimit, Class, Goal, Guard, Guarding, Migration, Policy, Predicted } from "../api/wire.ts";
import { guardOptions } from "./commands.ts";
import { end, ended, type Bar } from "./progress.ts";
import { command } from "./quote.ts";
import { BY_HAND } from "./told.ts";
import { day, moment, shortClock } from "./time.ts";
import { bytes, iops, NOTHING, percent, rate, response, span, wholePercent } from "./units.ts";

/** How a state is shown: its shape and colour go with the word, never without. */
export type Tone = "ok" | "busy" | "warn" | "bad" | "quiet";

/** The state of a move, as `migration list` has it. */
export function moveState(move: Migration): { word: string; tone: Tone } {
  if (move.state === "copying" && move.guard?.state === "closed") return { word: "closed", tone: "quiet" };
  const word = move.state.replaceAll("-", " ");
  switch (move.state) {
    case "completed":
      return { word, tone: "ok" };
    case "cancelled":
      return { word, tone: move.unclear ? "bad" : "quiet" };
    case "paused":
      return { word, tone: move.hint ? "warn" : "quiet" };
    default:
      return { word, tone: "busy" };
  }
}

/** What a guard was asked for: `keep 97%, by 06:00`. */
export function asked(guard: Guard, nowMs: number): string {
  const parts = [];
  if (guard.keep) parts.push(`keep ${percent(guard.keep)}`);
  if (guard.p99_us) parts.push(`p99 below ${response(guard.p99_us)}`);
  if (guard.idle_only) parts.push("only while the disk is idle");
  if (guard.window) parts.push(`only ${guard.window}`);
  if (guard.finish_by) parts.push(`by ${moment(guard.finish_by * 1e3, nowMs)}`);
  return parts.join(", ");
}

/** How a guard fares: `holding: 98.2% of 4120 IO/s, copy up to 212 MiB/s`. */
export function fares(guard: Guarding): string {
  const parts = [];
  const { kept, baseline_iops: baseline } = guard;
  if (typeof kept === "number" && typeof baseline === "number") parts.push(`${percent(kept)} of ${iops(baseline)} IO/s`);
  else if (typeof baseline === "number") parts.push(`${iops(baseline)} IO/s by itself`);
  if (guard.p99_us) parts.push(`p99 ${response(guard.p99_us)}`);
  if (guard.allowance === 0 && guard.state !== "closed") parts.push("copy only while idle");
  if (guard.allowance) parts.push(`the copy may do ${rate(guard.allowance)} at most`);
  if ((guard.late_s ?? 0) >= 1) parts.push(`${span(guard.late_s!)} late`);
  if (guard.reason) parts.push(guard.reason);
  const state = guard.state === "learning" ? "still measuring the application" : (guard.state ?? "");
  return parts.length === 0 ? state : `${state}${state ? ": " : ""}${parts.join(", ")}`;
}

/** Why a move stands, if it does: in the words of `migration show`. */
export function waitsFor(move: Migration): string | null {
  if (move.state === "paused") return move.reason && move.reason !== BY_HAND ? move.reason : "an operator paused it, and it goes on when somebody resumes it";
  const guard = move.guard;
  if (guard?.state === "closed") return `its window ${guard.asked.window ?? ""} is closed`;
  const rateNow = move.progress?.rate ?? 0;
  if (move.state !== "copying" || rateNow > 0) return null;
  if (guard?.state === "unreachable") return guard.reason ?? "its guard is unreachable";
  if (guard?.asked.idle_only) return "the application is busy, and the copy runs only while it is idle";
  if (guard?.allowance === 0) return guard.reason ?? "the guard lets it copy only while the disk is idle";
  return move.reason ?? guard?.reason ?? "its turn among the copies";
}

/** What keeps a move that is at work from its end, if somebody can do something about it. */
export function hinders(move: Migration): string | null {
  const isOver = move.state === "completed" || move.state === "cancelled";
  return !isOver && move.hint ? (move.reason ?? null) : null;
}

/** `held to 1.00 MiB/s for policy 2 of class gold`, or `… by policy 9`. */
export function copiesHeld({ limit, policy, target_of: of }: BindingLimit): string {
  return `held to ${goal(limit)} ${of ? `for policy ${policy} of class ${of}` : `by policy ${policy}`}`;
}

/** From here on a guard asks for so little that it is no promise. */
const LEAST_KEPT = 0.05;
/** The room above what requests take now. */
const SLACK = 1.2;

/**
 * The command that asks a guard for less: as much as it keeps now, or no deadline if that is what
 * cannot be met. What else it asks for stays. Without figures, the guard is taken away.
 */
export function lessAsked(move: Migration, zone?: string): string {
  const { asked: was, kept, p99_us: p99, state } = move.guard ?? { asked: { idle_only: false } };
  const isLate = state === "late";
  const lower = !isLate && was.keep && typeof kept === "number" && kept < was.keep ? Math.floor(kept * 100) / 100 : null;
  const higher = !isLate && was.p99_us && p99 && p99 > was.p99_us ? Math.ceil((p99 * SLACK) / 1e3) * 1e3 : null;
  const keep = lower ?? was.keep ?? null;
  const by = was.finish_by && !isLate ? `${day(was.finish_by * 1e3, zone)} ${shortClock(was.finish_by * 1e3, zone)}` : null;
  const isLess = isLate || lower !== null || higher !== null;
  const left = isLess && (keep === null || keep >= LEAST_KEPT);
  const options = left ? guardOptions({ keep, p99_us: higher ?? was.p99_us ?? null, finish_by: by, window: was.window ?? null, idle_only: was.idle_only ?? false }) : [];
  return command("migration", "set", move.id, ...(options.length > 0 ? options : ["--no-guard"]));
}

/** When a move ends, as a range, in clock times. */
export function endWords(move: Migration, nowMs: number): string {
  const found = end(move);
  if (!found) return "not known yet";
  const guard = move.guard;
  const by = guard?.asked.finish_by;
  const isLate = (guard?.late_s ?? 0) > 0 || guard?.state === "late" || guard?.state === "unreachable";
  if (by && !isLate && found.likely > by - nowMs / 1e3) return "in time";
  const at = (seconds: number) => shortClock(nowMs + seconds * 1e3);
  const range = found.most - found.least < 60 ? "" : `, ${at(found.least)} to ${at(found.most)}`;
  return `${at(found.likely)} (in ${span(found.likely)}${range})`;
}

/**
 * The phases of a move, each with its end: `copy 13 %, until 14:05; then comparison, until 14:20`.
 * The copy's end is its part of the bytes that are to be copied and compared.
 */
export function phases(move: Migration, bar: Bar, nowMs: number): string | null {
  const progress = move.progress;
  if (!progress || ended(move)) return null;
  const found = end(move);
  const until = (seconds: number | null) => (seconds === null ? "" : `, until ${shortClock(nowMs + seconds * 1e3)}`);
  const all = found?.likely ?? null;
  if (move.state === "switching-over") return "switch-over";
  if (bar.verified !== null) return `comparison ${bar.percent} %${until(all)}`;
  const part = progress.to_copy / Math.max(1, progress.to_copy + progress.to_compare);
  if (bar.percent === null) return null;
  const copy = `copy ${bar.percent} %${until(all === null ? null : all * part)}`;
  return move.verify ? `${copy}; then comparison${until(all)}` : copy;
}

/** Which image is the truth while a disk moves, and what a cancel would lose. */
export function safety(move: Migration): string | null {
  if (ended(move)) return null;
  if (move.state === "switching-over") return `The image on ${move.from} is the truth until the switch-over is recorded, and the one on ${move.to} from then on: each write that was answered is in it.`;
  return `The image on ${move.from} has all data and stays the truth until the switch-over. A cancel, a crash or a failure of ${move.to} before that loses nothing.`;
}

/** What a pause does to a move. */
export function pauses(move: Migration): string {
  const rateNow = move.progress?.rate ?? 0;
  const gives = rateNow > 0 ? `, which frees ${rate(rateNow)} of reading on ${move.from} and of writing on ${move.to}` : "";
  return `The copy stops at once${gives}. What is copied stays; what the guest writes meanwhile is copied after the resume. The move ends later by as long as the pause.`;
}

/** What resuming a move does. */
export function resumes(move: Migration): string {
  const left = move.progress?.to_copy;
  const toCopy = left === undefined ? "The copy goes on where it was" : `The copy goes on: ${bytes(left)} are to be copied${move.verify ? ", then compared" : ""}`;
  const kept = move.predicted?.kept ?? null;
  const cost = kept !== null && kept < 1 ? `; the application is predicted to keep ${wholePercent(kept)} of its IO/s` : "";
  return `${toCopy}${cost}. If the cause of the pause is still there, Sterna refuses and says so.`;
}

/** What another rate does to a move: how long the rest takes then. */
export function atRate(move: Migration, wanted: number | null, nowMs: number): string | null {
  const progress = move.progress;
  if (!progress) return null;
  const left = progress.to_copy + progress.to_compare;
  if (wanted === null) return `Without a rate the copy is as fast as the storage and the guard let it; ${bytes(left)} are left to copy and compare.`;
  const seconds = left / Math.max(1, wanted);
  const now = end(move);
  const before = now ? `, now ${shortClock(nowMs + now.likely * 1e3)}` : "";
  return `At ${rate(wanted)} at most the ${bytes(left)} that are left take ${span(seconds)} or longer: until ${shortClock(nowMs + seconds * 1e3)} at the earliest${before}.`;
}

/** The time that a move will take, with its range. */
export function took(told: Predicted): string {
  const [likely, least, most] = [told.likely_s, told.least_s, told.most_s].map(span);
  return told.guess ? `a guess: ${likely} (${least} to ${most})` : `${likely}, and 9 of 10 times ${least} to ${most}`;
}

/** What holds a copy back. */
export function heldBack(told: Predicted, copies: number | null = null): string {
  const share = `the copy has ${wholePercent(Math.max(0.01, told.share))} of its speed`;
  switch (told.weakest) {
    case "storage":
      return "the storage itself";
    case "limit":
      return copies === null ? "the rate that was given" : `the limit on all copies, ${rate(copies)} of this disk`;
    case "promise":
      return `the guard: ${share}`;
    case "application":
      return `the application at the source: ${share}`;
  }
}

/** What was predicted, against what it took. */
export function compared(told: Predicted, seconds: number): string {
  const times = seconds / Math.max(1e-3, told.likely_s);
  const off = (times - 1) * 100;
  if (off >= 100) return `it took ${span(seconds)}, ${times.toFixed(1)} times as long`;
  if (off >= 0.5) return `it took ${off.toFixed(0)}% longer`;
  if (off <= -0.5) return `it took ${(-off).toFixed(0)}% less`;
  return "as predicted";
}

/** A goal: `20.0 MiB/s`, `500 IO/s`, `5.0 ms`. */
export function goal(wanted: Goal): string {
  if ("bytes_per_second" in wanted) return rate(wanted.bytes_per_second);
  if ("iops" in wanted) return `${wanted.iops} IO/s`;
  return response(wanted.response_ms * 1e3);
}

/** What a policy wants: `at most 20.0 MiB/s`, `15.0 MiB/s ± 10 %`, `a mean of 15.0 ms ± 30 %`. */
export function wish(policy: Pick<Policy, "aim">): string {
  const aim = policy.aim;
  switch (aim.kind) {
    case "limit":
      return "response_ms" in aim.goal ? `at least ${goal(aim.goal)} a request` : `at most ${goal(aim.goal)}`;
    case "cruise":
      return `${"response_ms" in aim.goal ? "a mean of " : ""}${goal(aim.goal)} ± ${aim.tolerance_percent} %`;
    case "queue-depth":
      return `${aim.depth} at the device`;
  }
}

/** The state of a policy, as `policy list` has it. */
export function policyState(policy: Policy): { word: string; tone: Tone } {
  if (policy.standing === "closed") return { word: "closed", tone: "quiet" };
  if (policy.cruise) {
    const phase = policy.cruise.phase;
    const tone = { not_started: "quiet", converging: "warn", holding: "ok", unreachable: "bad" } as const;
    return { word: phase.replaceAll("_", " "), tone: tone[phase] };
  }
  return policy.standing === "looser" ? { word: "looser", tone: "quiet" } : { word: "binds", tone: "ok" };
}

/** That a target of a class cannot be had, which its reservation may be all the same. */
export function outOfReach(its: Class, policies: Policy[]): string | null {
  const missed = policies.find((one) => one.class === its.name && one.standing === "binds" && one.cruise?.phase === "unreachable");
  return missed ? `its target of ${wish(missed)} is out of reach` : null;
}

/** A reservation, if a class has one. */
export function reserved(one: Class): string {
  const own = one.in_force.reservation;
  if (!own) return NOTHING;
  return "iops" in own ? `${own.iops} IO/s` : rate(own.bytes_per_second);
}

/** What a class is held to. */
export function limits(one: Class): string {
  const terms = one.in_force;
  const parts = [];
  if (terms.bytes_per_second) parts.push(rate(terms.bytes_per_second));
  if (terms.iops) parts.push(`${terms.iops} IO/s`);
  if (terms.response_ms) parts.push(`at least ${response(terms.response_ms * 1e3)}`);
  if (terms.queue_depth) parts.push(`${terms.queue_depth} at the device`);
  return parts.join(", ") || NOTHING;
}
