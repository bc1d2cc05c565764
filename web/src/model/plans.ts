// Plans in words.
import type { Plan, PlannedMove } from "../api/wire.ts";
import type { Tone } from "./words.ts";
import { critical } from "./gantt.ts";
import { moment } from "./time.ts";
import { span } from "./units.ts";

/** How a plan's state is shown. */
export function planState(plan: Plan): Tone {
  const tones: Record<Plan["state"], Tone> = {
    planned: "quiet",
    running: "busy",
    paused: "warn",
    cancelling: "busy",
    completed: "ok",
    incomplete: "bad",
    cancelled: "quiet",
  };
  return tones[plan.state];
}

/** How a move's state is shown. */
export function plannedState(move: PlannedMove): { word: string; tone: Tone } {
  const tones: Record<PlannedMove["state"], Tone> = {
    waiting: "quiet",
    starting: "busy",
    moving: "busy",
    standing: "warn",
    leaving: "busy",
    moved: "ok",
    failed: "bad",
    skipped: "warn",
    cancelled: "quiet",
  };
  return { word: move.state, tone: tones[move.state] };
}

/** The answer: will it be done in time? */
export function answer(plan: Plan, nowMs: number): { tone: Tone; text: string } {
  const ended = plan.ended ? ` at ${moment(plan.ended * 1e3, nowMs)}` : "";
  if (plan.state === "completed") return { tone: "ok", text: `It is done${ended}` };
  if (plan.state === "incomplete") return { tone: "bad", text: `It ended incomplete${ended}: not all disks have moved` };
  if (plan.state === "cancelled") return { tone: "quiet", text: `It was cancelled${ended}` };
  const ends = plan.ends ? `ends ${moment(plan.ends * 1e3, nowMs)} by the prediction` : "its end is not known yet";
  const by = plan.deadline ? moment(plan.deadline.by * 1e3, nowMs) : null;
  if (by === null) return { tone: plan.ends ? "ok" : "warn", text: `No deadline; ${ends}` };
  switch (plan.deadline!.state) {
    case "met":
      return { tone: "ok", text: `Yes: it will be done by ${by}, even if moves are slow; ${ends}` };
    case "likely":
      return { tone: "ok", text: `Likely done by ${by}; ${ends}` };
    case "unlikely":
      return { tone: "warn", text: `Unlikely to be done by ${by}; ${ends}` };
    case "missed":
      return { tone: "bad", text: `No: it will not be done by ${by}; ${ends}` };
    case "unknown":
      return { tone: "warn", text: `It is not known yet whether it will be done by ${by}` };
  }
}

/** The time that a plan takes, as it was predicted when it was made. */
export function estimate(plan: Plan): string {
  const told = plan.estimate;
  if (typeof told.likely_s !== "number") return `unknown: ${told.unknown} moves have no prediction. Move a small disk without a limit first.`;
  const range = `range ${span(told.least_s ?? told.likely_s)} to ${span(told.most_s ?? told.likely_s)}`;
  return `${span(told.likely_s)} (${range})`;
}

/** The lower bound, and what decides it. */
export function decides(plan: Plan): string | null {
  const most = critical(plan);
  const bound = plan.estimate.bound_s;
  const gap = plan.estimate.gap;
  const said = [];
  if (most) said.push(`${most.datastore} decides: its copies alone take ${span(most.seconds)}`);
  if (typeof bound === "number") said.push(`no order of the moves takes less than ${span(bound)}`);
  if (typeof gap === "number") said.push(`the plan is ${(gap * 100).toFixed(0)}% above that`);
  return said.length === 0 ? null : said.join("; ");
}
