// Room of datastores: how fast one fills up, who shares its room, and what would help.
import type { Datastore, Disk, JudgedDatastore, SpaceTrend } from "../api/wire.ts";
import { command } from "./quote.ts";
import { bytes, count, grouped, span } from "./units.ts";

/** What is full within a day is something to look at, whatever part is taken. */
const PRESSING_S = 86_400;
/** What is full within an hour is for now: a larger disk takes as long to be moved away. */
const SOON_S = 3_600;
/** Bytes per hour below which a datastore counts as even. */
const LITTLE = 2 ** 20;

/** `fills up by 2.00 GiB an hour (over the last 3 h 00 min): full in 9 h 30 min`; nothing while that is not known. */
export function fills(trend: SpaceTrend | null | undefined): string | null {
  if (!trend) return null;
  const hourly = trend.bytes_per_second * 3600;
  const over = `over the last ${span(trend.over_s)}`;
  if (Math.abs(hourly) < LITTLE) return `neither fills up nor empties (${over})`;
  if (hourly < 0) return `empties by ${bytes(-hourly)} an hour (${over})`;
  const full = typeof trend.full_in_s === "number" ? `: full in ${span(trend.full_in_s)}` : "";
  return `fills up by ${bytes(hourly)} an hour (${over})${full}`;
}

/** Whether it will be full within a day. */
export function isPressing(one: JudgedDatastore): boolean {
  return fullIn(one) < PRESSING_S;
}

/** Whether its room is all one image's: it is full by design, and no bound judges that. */
export function holdsOne(one: Pick<Datastore, "kind">): boolean {
  return one.kind === "device" || one.kind === "nbd";
}

/** What a datastore holds, as far as it has disks. */
type Holds = Pick<Datastore, "disks" | "vm_disks">;

/** How many disks it has, and how many QEMU serves from there itself: `3`, `0, 2 of VMs`. */
export function disksOn(one: Holds): string {
  const ofVms = one.vm_disks?.length ?? 0;
  return ofVms > 0 ? `${grouped(one.disks)}, ${grouped(ofVms)} of VMs` : grouped(one.disks);
}

/** What stays on a datastore in maintenance. */
export function stays(one: Holds): string {
  const ofVms = one.vm_disks?.length ?? 0;
  const own = `${count(one.disks, "disk stays", "disks stay")} there and served`;
  return ofVms > 0 ? `${own}, and ${count(ofVms, "disk")} of VMs, which no plan moves` : own;
}

/** In how many seconds it is full. */
export function fullIn(one: JudgedDatastore): number {
  return one.trend?.full_in_s ?? Infinity;
}

/** Whether it will be full within an hour. */
export function isSoon(one: JudgedDatastore): boolean {
  return fullIn(one) < SOON_S;
}

/**
 * Datastores that are something to look at for their room, one for each file system: what the
 * others share with it is said once. What is wrong with them besides stays.
 */
export function oneEach(judged: JudgedDatastore[]): JudgedDatastore[] {
  const told = new Set<string>();
  const first = [...judged].sort((a, b) => fullIn(a) - fullIn(b));
  const kept = new Map<string, JudgedDatastore>();
  for (const one of first) {
    const isRoom = one.over.includes("space") || isPressing(one);
    const isTold = isRoom && (one.shares_room_with ?? []).some((mate) => told.has(mate));
    if (isRoom) told.add(one.datastore);
    kept.set(one.datastore, isTold ? { ...one, over: one.over.filter((bound) => bound !== "space"), trend: null } : one);
  }
  return judged.map((one) => kept.get(one.datastore) ?? one);
}

/** `shares the file system of old and new`; nothing if its room is its own. */
export function shared(one: Pick<JudgedDatastore, "shares_room_with">): string | null {
  const mates = one.shares_room_with ?? [];
  if (mates.length === 0) return null;
  const names = mates.length === 1 ? mates[0] : `${mates.slice(0, -1).join(", ")} and ${mates.at(-1)}`;
  return `shares the file system of ${names}: what one takes is gone for all`;
}

/** A disk that would better be elsewhere. */
export interface Remedy {
  disk: string;
  to: string;
  bytes: number;
  /** Whether its going is enough for the bound. */
  isEnough: boolean;
}

/** What there is, as a remedy needs it. */
export interface Places {
  disks: Iterable<Disk>;
  datastores: Datastore[];
  judged: JudgedDatastore[];
  /** The part of a datastore's room that may be taken. */
  space: number;
}

/** The datastores that have their room from where this one has it, and it itself. */
function roomOf(name: string, judged: JudgedDatastore[]): Set<string> {
  return new Set([name, ...(judged.find((one) => one.datastore === name)?.shares_room_with ?? [])]);
}

/**
 * The smallest disk whose going is enough, else the largest that fits anywhere, and where it fits
 * best below the bound. A disk of any datastore that shares the room makes room; such a datastore
 * takes nothing off it.
 */
export function remedy(name: string, { disks, datastores, judged, space }: Places): Remedy | null {
  const its = datastores.find((one) => one.name === name);
  if (!its?.capacity || typeof its.free !== "number") return null;
  const room = roomOf(name, judged);
  const needed = its.capacity * (1 - space) - its.free;
  const rooms = datastores
    .filter((one) => !room.has(one.name) && !one.maintenance && !one.problem && one.capacity && typeof one.free === "number")
    .map((one) => ({ to: one.name, room: one.free! - one.capacity! * (1 - space) }))
    .sort((a, b) => b.room - a.room);
  const [best] = rooms;
  if (!best) return null;
  const fitting = [...disks]
    .filter((disk) => room.has(disk.datastore) && !disk.migration)
    .map((disk) => ({ disk: disk.name, bytes: disk.allocated ?? disk.size }))
    .filter((one) => one.bytes > 0 && one.bytes <= best.room)
    .sort((a, b) => a.bytes - b.bytes);
  const enough = fitting.find((one) => one.bytes >= needed);
  const found = enough ?? fitting.at(-1);
  return found ? { ...found, to: best.to, isEnough: enough !== undefined } : null;
}

/** What would help, and the page on which it is tried. */
export interface Help {
  text: string;
  link: string;
}

/** What would help a datastore that is full, or soon will be. */
export function helps(name: string, places: Places): Help {
  // What gives the disks one by one may give them once.
  const disks = [...places.disks];
  const room = roomOf(name, places.judged);
  const held = disks.filter((disk) => room.has(disk.datastore));
  // The plan is of a datastore that has disks: the first of a file system may have none.
  const emptied = held.find((disk) => disk.datastore === name) ?? held[0];
  return remedyWords(emptied?.datastore ?? name, remedy(name, { ...places, disks }), held);
}

/** The words of a remedy, or why there is none for the disks that the datastore holds. */
export function remedyWords(name: string, found: Remedy | null, held: Pick<Disk, "migration">[]): Help {
  if (!found && held.length === 0) {
    const text = "none of Sterna's disks is on it: other files, or copies that are on their way to it, take its room";
    return { text, link: `#/datastore/${encodeURIComponent(name)}` };
  }
  if (!found && held.every((disk) => disk.migration)) {
    return { text: "nothing more: each of its disks is being moved already", link: "#/moves" };
  }
  if (!found) {
    // A plan that is made moves nothing, and names each disk that stays with the reason.
    const plan = command("plan", "evacuate", name);
    return { text: `no disk of it fits on another datastore; a plan, which moves nothing before it is applied, says what holds each: \`${plan}\``, link: "#/plans" };
  }
  const enough = found.isEnough ? "then it is within its bound" : "that is not enough for its bound, but no other disk that fits is larger";
  return { text: `move ${found.disk} (${bytes(found.bytes)}) to ${found.to}: ${enough}`, link: `#/whatif?disk=${encodeURIComponent(found.disk)}&to=${encodeURIComponent(found.to)}` };
}
