// What happened, as a sentence: who did what to what, and why. The daemon tells a request by its
// name in the API and by its fields, and its own decisions as it logs them; here both become words.
import type { Activity, Migration } from "../api/wire.ts";
import { percent } from "./units.ts";

/** A move that an event is about. */
export type Moved = Pick<Migration, "id" | "disk" | "from" | "to">;

/** Moves by their numbers, as far as the page knows them. */
export type Moves = ReadonlyMap<number, Moved>;

/** What the daemon itself did. */
const DAEMON = "sterna";
/** An operator's pause has no other reason. */
export const BY_HAND = "asked for";

/** Requests: what somebody did, and what somebody wanted if it was refused. `{}` is what it is about. */
const REQUESTS: Record<string, [done: string, wanted: string]> = {
  "start migration": ["began to move {}", "wanted to move {}"],
  "change migration": ["changed the rate of {}", "wanted to change the rate of {}"],
  "guard migration": ["set what must hold during {}", "wanted to set what must hold during {}"],
  "pause migration": ["paused {}", "wanted to pause {}"],
  "resume migration": ["resumed {}", "wanted to resume {}"],
  "cancel migration": ["cancelled {}", "wanted to cancel {}"],
  "create disk": ["created {}", "wanted to create {}"],
  "import disk": ["imported an image as {}", "wanted to import an image as {}"],
  "remove disk": ["removed {}", "wanted to remove {}"],
  "attach disk": ["attached {} to a socket", "wanted to attach {} to a socket"],
  "detach disk": ["detached {} from its socket", "wanted to detach {} from its socket"],
  "recover disks": ["recovered disks", "wanted to recover disks"],
  "add datastore": ["added {}", "wanted to add {}"],
  "remove datastore": ["removed {} from Sterna", "wanted to remove {} from Sterna"],
  "remove image": ["removed an image from {}", "wanted to remove an image from {}"],
  "plan evacuation": ["planned to empty a datastore", "wanted to plan to empty a datastore"],
  "apply plan": ["began {}", "wanted to begin {}"],
  "pause plan": ["paused {}", "wanted to pause {}"],
  "resume plan": ["resumed {}", "wanted to resume {}"],
  "cancel plan": ["cancelled {}", "wanted to cancel {}"],
  "remove plan": ["removed {}", "wanted to remove {}"],
  "create class": ["made {}", "wanted to make {}"],
  "change class": ["changed {}", "wanted to change {}"],
  "delete class": ["deleted {}", "wanted to delete {}"],
  "create policy": ["made a policy for {}", "wanted to make a policy for {}"],
  "remove policy": ["removed {}", "wanted to remove {}"],
  "create pool": ["made {}", "wanted to make {}"],
  "change pool": ["changed {}", "wanted to change {}"],
  "delete pool": ["deleted {}", "wanted to delete {}"],
  "add rule": ["made {}", "wanted to make {}"],
  "remove rule": ["removed {}", "wanted to remove {}"],
  "create storage rule": ["made {} for Storage DRS", "wanted to make {} for Storage DRS"],
  "remove storage rule": ["removed {} from Storage DRS", "wanted to remove {} from Storage DRS"],
  "change storage drs": ["changed the settings of Storage DRS", "wanted to change the settings of Storage DRS"],
  "change drs": ["changed the settings of DRS", "wanted to change the settings of DRS"],
  "add host": ["added {}", "wanted to add {}"],
  "remove host": ["removed {}", "wanted to remove {}"],
  "set host program": ["set the program that starts VMs on {}", "wanted to set the program that starts VMs on {}"],
  "add vm": ["added {}", "wanted to add {}"],
  "remove vm": ["removed {} from Sterna", "wanted to remove {} from Sterna"],
  "sleep vm": ["had the memory of {} go to swap", "wanted the memory of {} to go to swap"],
  "wake vm": ["had the memory of {} come back", "wanted the memory of {} to come back"],
  "change memory": ["changed when the host counts as short of memory", "wanted to change when the host counts as short of memory"],
  "change memory terms": ["changed what {} is promised of memory", "wanted to change what {} is promised of memory"],
  "add swap tier": ["added a swap tier", "wanted to add a swap tier"],
  "remove swap tier": ["removed {}", "wanted to remove {}"],
  "place vm": ["assigned {} to a host", "wanted to assign {} to a host"],
  "adopt vm disk": ["put a disk of {} behind Sterna", "wanted to put a disk of {} behind Sterna"],
  "release vm disk": ["gave a disk back to {}", "wanted to give a disk back to {}"],
  "move vm disk": ["began to have QEMU move a disk of {}", "wanted to have QEMU move a disk of {}"],
  "start transfer": ["began to migrate {}", "wanted to migrate {}"],
  "cancel transfer": ["cancelled a VM migration", "wanted to cancel a VM migration"],
};

/** What a guard does in each of its states. */
const GUARDS: Record<string, string> = {
  "": "The guard of {} has nothing to judge now: nothing is being copied",
  learning: "The guard of {} measures what the application does by itself, before it lets more be copied",
  converging: "The guard of {} looks for the fastest copy that keeps the promise",
  holding: "The guard of {} keeps the promise to the application",
  late: "{} will end later than was asked for",
  unreachable: "The guard of {} cannot keep the promise to the application",
  closed: "{} waits until its window opens",
};

/** How the target of a class fares. */
const CRUISES: Record<string, string> = {
  "not started": "{} is not held yet",
  converging: "{} is not reached yet: Sterna slows other classes until it is",
  holding: "{} is kept",
  unreachable: "{} is out of reach",
};

/** The daemon's other decisions about a move. */
const MOVES: Record<string, string> = {
  "migration started": "{} has begun",
  "migration completed": "{} is completed",
  "migration cancelled": "{} is cancelled",
  "migration ended by the operator": "{} was ended, as an operator asked",
  "migration paused": "{} is paused",
  "the migration is paused": "{} is paused",
  "paused by the operator": "{} is paused, as an operator asked",
  "kept paused by the operator": "{} stays paused, as an operator asked",
  "resumed by the operator": "{} goes on, as an operator asked",
  "cancelled by the operator": "{} is being cancelled, as an operator asked",
  "migration continues": "{} goes on",
  "first pass done": "{}: everything was copied once; what the guest has written since is copied again",
  verifying: "{}: Sterna compares both images",
  "switched over": "{}: the guest uses the new image",
  "switch-over undone": "{}: the switch-over took too long and was undone; Sterna tries again",
  "verification found differences": "{}: the comparison found differences",
  "patience raised": "{}: writes wait longer for the new image",
  "rate changed": "{} may copy at another rate",
  "guard changed": "{} has another guard",
  "copying has ended": "{}: copying has ended",
  "a commit was found and settled": "{}: the daemon found a switch-over of its predecessor and completed the record of it",
  "Storage DRS moves it": "Storage DRS has begun {}",
  // What QEMU copies.
  "QEMU moves a disk": "{} has begun: QEMU copies",
  "move completed": "{} is completed",
  "move cancelled": "{} is cancelled",
  "the move's end is unclear": "{}: it is unclear how it ended",
  "a move halts": "{} halts",
  "a switch-over is called off": "{}: the switch-over was called off",
};

/** The daemon's decisions about the migration of a VM. */
const TRANSFERS: Record<string, string> = {
  transfer: "The migration of {} has begun",
  "transfer Completed": "The migration of {} is completed",
  "transfer Cancelled": "The migration of {} is cancelled",
  "transfer Lost": "The migration of {} has ended, and it may run nowhere",
};

/** `the move of disk db from fast to slow (migration 4)`, as far as that is known. */
function moveWords(id: number, moves: Moves): string {
  const its = moves.get(id);
  return its ? `the move of disk ${its.disk} from ${its.from} to ${its.to} (migration ${id})` : `migration ${id}`;
}

/** What an event is about, in a sentence. */
function aboutWords(about: string | null | undefined, moves: Moves): string {
  const id = /^migration (\d+)$/.exec(about ?? "")?.[1];
  if (id) return moveWords(Number(id), moves);
  return (about ?? "the daemon").replace(/^vm /, "VM ");
}

const upper = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

/** Of a class, the daemon's log names the policy last. */
const POLICIES: Record<string, string> = {
  "policy made": "{} was made for",
  "policy in force": "{} is in force for",
  "policy removed": "{} was removed, and holds no more for",
  "policy ended with its job": "{} has ended with its move, and holds no more for",
};

/** The name of the request at the beginning of a text. */
function requestOf(text: string): string | undefined {
  return Object.keys(REQUESTS)
    .filter((name) => text === name || text.startsWith(`${name}:`) || text.startsWith(`${name};`))
    .sort((a, b) => b.length - a.length)[0];
}

/** What a request asked for, as people say it. */
function details(request: string, text: string): string {
  if (request === "guard migration") {
    // `--no-guard` has no fields.
    if (text === "") return "nothing any more, it has no guard";
    return text
      .split(", ")
      .map((part) => part.replace(/^keep (0?\.\d+|1)$/, (_, number: string) => `keep ${percent(Number(number))}`).replace(/^p99 (?=\d)/, "p99 below ").replace(/^idle only true$/, "only while the disk is idle").replace(/^window /, "only ").replace(/^finish by /, "by "))
      .join(", ");
  }
  if (request === "change migration") return text === "" ? "no limit any more" : text.replace(/^rate /, "at most ");
  return text.replace(/(^|, )skip bad sectors true/, "$1bad sectors are skipped").replace(/(^|, )keep source true/, "$1the old image is kept");
}

/** A request, answered or refused. */
function asked(request: string, one: Activity, moves: Moves): string {
  const rest = one.text.slice(request.length).replace(/^: /, "");
  const at = rest.search(OUTCOME);
  const why = at < 0 ? null : rest.slice(at);
  const given = at < 0 ? rest : rest.slice(0, at);
  const [done, wanted] = REQUESTS[request]!;
  const what = details(request, given);
  const sentence = (one.ok ? done : wanted).replace("{}", () => aboutWords(one.about, moves));
  return finish(`${sentence}${what ? `: ${what}` : ""}`, why);
}

/** What came of a request that was not done, in the daemon's words: `; refused: no room`. */
const OUTCOME = /(?:^|; )(refused|failed): ?/;

/** What an event that is not well is, in a word: what the daemon finds by itself is a warning. */
export function outcome(one: Activity): "refused" | "failed" | "warning" | null {
  if (one.ok) return null;
  if (one.who === DAEMON) return "warning";
  return OUTCOME.exec(one.text)?.[1] === "refused" ? "refused" : "failed";
}

/** A sentence, with why it was refused or has failed; what has no reason says that. */
function finish(sentence: string, came: string | null): string {
  if (came === null) return sentence;
  const why = came.replace(OUTCOME, "").trim();
  // A request that has failed may have been done in part.
  if (OUTCOME.exec(came)?.[1] === "failed") return `${sentence}. That has failed${why ? `: ${why}` : ", and Sterna gave no reason"}`;
  return `${sentence}. Sterna refused${why ? `: ${why}` : " and gave no reason"}`;
}

/** What the daemon says beside its message: `migration 4, to slow, why even a copy …`. */
interface Beside {
  /** The reason, whatever the daemon calls it; nothing where there is none. */
  why: string;
  /** All else. */
  rest: string[];
}

const REASON = /(?:^|, )(?:why|reason|error|problem|note)(?: (.*))?$/s;

function beside(text: string): Beside {
  const found = REASON.exec(text);
  const rest = (found ? text.slice(0, found.index) : text).split(", ").filter(Boolean);
  return { why: (found?.[1] ?? "").trim(), rest };
}

/** What the daemon did or found by itself. */
function decided(one: Activity, moves: Moves): string {
  const at = one.text.indexOf(": ");
  const message = (at < 0 ? one.text : one.text.slice(0, at)).replace(/:$/, "");
  const said = beside(at < 0 ? "" : one.text.slice(at + 2));
  if (message === "guard") return guarded(one, moves);
  if (message === "cruise") return cruised(one);
  const policy = POLICIES[message];
  if (policy && one.about?.startsWith("class ") && said.rest.length === 1) return `${upper(policy.replace("{}", () => said.rest[0]!))} ${one.about}`;
  const move = MOVES[message];
  if (move) {
    const own = said.rest.find((part) => /^migration \d+$/.test(part));
    const id = own ?? (one.about?.startsWith("migration ") ? one.about : undefined);
    const what = id ? aboutWords(id, moves) : `the move of ${one.about ?? "a disk"}`;
    const named = moves.has(Number(/\d+/.exec(id ?? "")?.[0]));
    // What the move is called by already is not said twice.
    const rest = said.rest.filter((part) => part !== own && !(named && /^(from|to|device) /.test(part)));
    if (message === "rate changed" && rest.length === 0) return upper(`${what} may copy as fast as the storage and its guard let it`);
    if (message === "guard changed" && rest[0] === "guard nothing is asked") return upper(`${what} has no guard any more`);
    if (/ changed$/.test(message)) rest.splice(0, 1, ...rest.slice(0, 1).map((part) => part.replace(/^(rate|guard) /, "")));
    const why = said.why === BY_HAND ? ["an operator asked for that"] : said.why ? [said.why.replace(/^kept: /, "the old image is kept: ")] : [];
    return upper(joined(move.replace("{}", () => what), [...rest, ...why]));
  }
  const transfer = TRANSFERS[message];
  if (transfer) {
    const rest = said.rest.filter((part) => !/^(transfer \d+|resumed false)$/.test(part));
    return joined(transfer.replace("{}", () => aboutWords(one.about, moves)), [...rest, ...(said.why ? [said.why] : [])]);
  }
  if (at < 0 || (said.why === "" && !REASON.test(one.text))) return upper(one.text);
  return upper(joined(message, [...said.rest, ...(said.why ? [said.why] : [])]));
}

function joined(sentence: string, more: string[]): string {
  if (more.length === 0) return sentence;
  return `${sentence}${sentence.includes(": ") ? "; " : ": "}${more.join(", ")}`;
}

function guarded(one: Activity, moves: Moves): string {
  const found = /^guard: ?([a-z]*)(?:: (.*))?$/s.exec(one.text);
  const words = GUARDS[found?.[1] ?? ""];
  if (!found || words === undefined) return upper(one.text);
  const { why } = beside(found[2] ?? "");
  return upper(joined(words.replace("{}", () => aboutWords(one.about, moves)), why ? [why] : []));
}

function cruised(one: Activity): string {
  const found = /^cruise: ([a-z ]+?)(?:: (.*))?$/s.exec(one.text);
  const words = CRUISES[found?.[1]?.replaceAll("_", " ") ?? ""];
  if (!found || words === undefined) return upper(one.text);
  const { why, rest } = beside(found[2] ?? "");
  const goal = rest.find((part) => part.startsWith("target "))?.slice("target ".length);
  const policy = rest.find((part) => part.startsWith("policy "));
  const named = [policy, goal].filter(Boolean).join(", ");
  return joined(words.replace("{}", () => `The target of ${one.about ?? "a class"}${named ? ` (${named})` : ""}`), why ? [why] : []);
}

/** What happened, as a sentence without its subject if that is a person, who stands beside it. */
export function told(one: Activity, moves: Moves = new Map()): string {
  const maintenance = /^set maintenance: (on|off)(; (?:refused|failed): .*)?$/s.exec(one.text);
  if (maintenance) {
    const verb = maintenance[1] === "on" ? ["put", "in maintenance"] : ["took", "out of maintenance"];
    const wanted = maintenance[1] === "on" ? ["wanted to put", "in maintenance"] : ["wanted to take", "out of maintenance"];
    const [first, last] = one.ok ? verb : wanted;
    return finish(`${first} ${aboutWords(one.about, moves)} ${last}`, one.ok ? null : (maintenance[2] ?? "; refused: "));
  }
  const request = one.who === DAEMON ? undefined : requestOf(one.text);
  if (request) return asked(request, one, moves);
  return one.who === DAEMON ? decided(one, moves) : one.text;
}

/** What an event is about, for its column: a move is named by its disk. */
export function aboutWhat(about: string, moves: Moves): string {
  const its = moves.get(Number(/^migration (\d+)$/.exec(about)?.[1] ?? NaN));
  return its ? `${about}, of disk ${its.disk}` : about;
}

/** Who paused a move last, if an event that the page has tells it. */
export function pausedBy(all: readonly Activity[], id: number): Activity | undefined {
  return all.filter((one) => one.ok && one.about === `migration ${id}` && one.text === "pause migration").sort((a, b) => b.at_ms - a.at_ms)[0];
}
