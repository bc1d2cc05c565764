// Holding a neighbour: a limit on the disk that takes the time of another one, as steps that can be
// taken back, with the command that does the same and what is foreseen.
import type { Class, CreateClass, CreatePolicy, HurtDisk, Policy } from "../api/wire.ts";
import { sizeOption } from "./commands.ts";
import { breaks, contradictions } from "./draft.ts";
import { command } from "./quote.ts";
import { count, rate as rateWords } from "./units.ts";

/** What is known when somebody asks. */
export interface Around {
  /** The disk that suffers, and its class. */
  disk: string;
  class: string | null;
  /** The neighbour, its class, and what it transfers now. */
  neighbour: string;
  its: Class | null;
  now: number;
  /** All classes by name: a new one needs a name of its own. */
  classes: readonly string[];
  policies: readonly Policy[];
  /** What the neighbour does now: how long its requests are. */
  load: { iops: number; bytes: number } | null;
  /** What the daemon says that would help. */
  help: HurtDisk["help"] | null;
}

/** A request, and the one that takes it back. */
export interface Step {
  method: "POST" | "PATCH";
  /** The parts of the path after `/v1`. */
  path: string[];
  body: object;
  command: string;
  undo: { method: "DELETE" | "PATCH"; path: string[]; body?: object } | null;
}

export interface Hold {
  rate: number;
  steps: Step[];
  command: string;
  consequence: string;
}

const MIB = 2 ** 20;
/** Less would stop a guest: the daemon refuses it. */
const LEAST = 2 ** 18;
const NAME_MOST = 63;
const NAMED = 3;

/** The rate of a command that limits a class: `… && sterna policy limit batch 19M`. */
export function rateOf(line: string | null | undefined): number | null {
  const found = /(?:^|&& )sterna policy limit \S+ (\d+)([KMGT]?)(?= |$)/.exec(line ?? "");
  if (!found) return null;
  return Number(found[1]) * 1024 ** ("KMGT".indexOf(found[2] || "-") + 1);
}

/** A rate that is said in few digits. */
function rounded(rate: number): number {
  const step = rate >= 2 * MIB ? MIB : LEAST;
  return Math.max(LEAST, Math.floor(rate / step) * step);
}

/** What the daemon foresees of holding this neighbour, if that is what it advises. */
function foreseen(help: Around["help"], neighbour: string): string | null {
  const begin = `hold ${neighbour} to `;
  if (!help?.text.startsWith(begin)) return null;
  const at = help.text.indexOf("; ");
  return at < 0 ? null : help.text.slice(at + 2);
}

/** What holds the neighbour. A disk in the same class is taken out of it first, so that nobody else is held. */
export function hold(around: Around): Hold {
  const { disk, neighbour, its, help } = around;
  // A limit that holds already is no help: only less is.
  const had = its && its.name !== around.class ? (its.in_force.bytes_per_second ?? Infinity) : Infinity;
  const told = rateOf(help?.command);
  const effect = told !== null && told < had ? foreseen(help, neighbour) : null;
  const rate = effect !== null && told !== null ? told : rounded(Math.min(around.now, had) / 2);
  const shared = its !== null && !its.built_in && its.name !== around.class;
  const steps: Step[] = [];
  let target = its?.name ?? "";
  if (!shared) {
    if (its) {
      const change = (how: "add" | "remove") => ({ method: "PATCH" as const, path: ["classes", its.name], body: { [how]: [neighbour] } });
      steps.push({ ...change("remove"), command: command("class", "remove-disk", its.name, neighbour), undo: change("add") });
    }
    target = newName(neighbour, around.classes);
    const made: CreateClass = { name: target, disks: [neighbour] };
    steps.push({ method: "POST", path: ["classes"], body: made, command: command("class", "create", target, neighbour), undo: { method: "DELETE", path: ["classes", target] } });
  }
  const policy: CreatePolicy = { class: target, aim: { kind: "limit", goal: { bytes_per_second: rate } } };
  steps.push({ method: "POST", path: ["policies"], body: policy, command: command("policy", "limit", target, sizeOption(rate)), undo: null });

  const others = shared ? its.disks.filter((one) => one !== neighbour) : [];
  const against = shared ? contradictions({ class: target, kind: "limit", goal: sizeOption(rate), tolerance: "", schedule: "" }, its, [...around.policies]) : [];
  const broken = shared ? breaks({ bytes_per_second: rate }, its, around.load) : null;
  const said = [
    effect === null
      ? `${neighbour} transfers ${rateWords(around.now)} now and may transfer ${rateWords(rate)} then. What that brings to ${disk} is not predicted: Sterna does not know the device well enough.`
      : `${neighbour} transfers ${rateWords(around.now)} now and may transfer ${rateWords(rate)} then. Predicted: ${effect}.`,
    `${neighbour} becomes slower: its requests wait for their turn.`,
    ...(others.length > 0 ? [`The limit is for class ${target} as a whole, so ${count(others.length, "other disk")} share${others.length === 1 ? "s" : ""} it: ${others.slice(0, NAMED).join(", ")}${others.length > NAMED ? ` and ${others.length - NAMED} more` : ""}.`] : []),
    ...(shared ? [] : [`${neighbour} gets the class ${target}, so that the limit holds no other disk${its ? `; it leaves class ${its.name} and what is promised there` : ""}.`]),
    ...against.map((one) => `But ${one}.`),
    ...(broken && !effect?.includes("breaks the reservation") ? [`But ${broken}.`] : []),
    "It takes effect at once, and ends when the policy is removed.",
  ];
  return { rate, steps, command: steps.map((step) => step.command).join(" && "), consequence: said.join(" ") };
}

function newName(neighbour: string, taken: readonly string[]): string {
  const wanted = [`${neighbour}-limited`, "limited", ...Array.from({ length: 99 }, (_, at) => `limited-${at + 2}`)];
  const good = (name: string) => name.length <= NAME_MOST && /^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(name) && !taken.includes(name);
  return wanted.find(good) ?? "limited";
}
