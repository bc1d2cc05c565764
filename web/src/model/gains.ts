// Who gains and who loses: by a policy that is not made yet, and by a move.
import type { DatastoreLoad, Disk, Recommendations } from "../api/wire.ts";
import type { Draft } from "./draft.ts";
import { count, response, wholePercent } from "./units.ts";

/** So many disks are named. */
const NAMED = 3;

function names(all: string[]): string {
  const named = all.slice(0, NAMED).join(", ");
  return all.length > NAMED ? `${named} and ${all.length - NAMED} more` : named;
}

/** The disks of a class, and those that share a datastore with one of them. */
function sides(name: string, disks: Disk[]): { own: string[]; others: string[]; places: string[] } {
  const own = disks.filter((disk) => disk.class === name);
  const places = new Set(own.map((disk) => disk.datastore));
  const others = disks.filter((disk) => disk.class !== name && places.has(disk.datastore));
  return { own: own.map((disk) => disk.name), others: others.map((disk) => disk.name), places: [...places] };
}

/**
 * Who gains and who loses by a policy: a limit is at the cost of its class, and a target at the cost
 * of the others. By how much, nobody can tell before.
 */
export function whoGains(draft: Draft, disks: Iterable<Disk>): string | null {
  const { own, others, places } = sides(draft.class, [...disks]);
  if (draft.class === "migration") return "Copies of moves lose: each takes longer. The disks of the datastores that are copied from and to gain. By how much, cannot be told before.";
  if (own.length === 0) return `Class ${draft.class} has no disk: nobody gains or loses.`;
  const where = `datastore${places.length === 1 ? "" : "s"} ${names(places)}`;
  const its = `${count(own.length, "disk")} of class ${draft.class} (${names(own)})`;
  if (others.length === 0) return `${draft.kind === "cruise" ? "Would gain" : "Lose"}: the ${its}. No other disk is on ${where}, so nobody ${draft.kind === "cruise" ? "can be slowed for them: the target is met only if the storage can" : "gains"}.`;
  const rest = `${count(others.length, "other disk")} of ${where} (${names(others)})`;
  const [gain, lose] = draft.kind === "cruise" ? [its, rest] : [rest, its];
  return `Gain: the ${gain}. Lose: the ${lose}. By how much, cannot be told before: after the policy is made, each disk that recovers, or does not, is told of.`;
}

/** Who gains and who loses by a move, as far as that is known. */
export function moveGains(disk: string, from: string, to: string, advice: Recommendations | null): string {
  const move = advice?.moves.find((one) => one.disk === disk && one.to === to);
  const on = (name: string, [before, after]: DatastoreLoad[]) => {
    const taken = typeof before?.taken === "number" && typeof after?.taken === "number" ? `, ${wholePercent(before.taken)} to ${wholePercent(after.taken)} of its room` : "";
    return `${name}: p95 ${response(before?.p95_us)} to ${response(after?.p95_us)}${taken}`;
  };
  if (move) return `Gain: the disks that stay on ${on(from, move.source)}. Lose: those on ${on(to, move.destination)}.`;
  return `The disks that stay on ${from} get faster, because the load of ${disk} leaves them. Those on ${to} get slower, because it comes to them. By how much is known only for moves that Storage DRS recommends, and this is none of them.`;
}
