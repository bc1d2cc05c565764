import assert from "node:assert/strict";
import { test } from "node:test";
import type { Activity, Migration } from "../../src/api/wire.ts";
import { complete } from "../../src/model/attention.ts";
import { asCsv, matching } from "../../src/model/events.ts";
import { aboutWhat, outcome, pausedBy, told } from "../../src/model/told.ts";
import { lessAsked, waitsFor } from "../../src/model/words.ts";

const event = (who: string, about: string | null, text: string, more: Partial<Activity> = {}): Activity => ({ seq: 1, at_ms: 0, who, about, text, command: null, ok: true, ...more }) as Activity;
const moves = new Map([[4, { id: 4, disk: "db", from: "fast", to: "slow" }]]);
const move = "the move of disk db from fast to slow (migration 4)";

test("a request says what was done to what", () => {
  assert.equal(told(event("root", "disk db", "start migration: guard keep 97%, to slow")), "began to move disk db: guard keep 97%, to slow");
  assert.equal(told(event("root", "migration 4", "pause migration"), moves), `paused ${move}`);
  assert.equal(told(event("root", "migration 9", "pause migration"), moves), "paused migration 9");
  assert.equal(told(event("root", "class gold", "create policy: limit to 20.0 MiB/s")), "made a policy for class gold: limit to 20.0 MiB/s");
  assert.equal(told(event("root", "datastore fast", "set maintenance: off")), "took datastore fast out of maintenance");
});

test("a request whose fields are all empty says what that means", () => {
  assert.equal(told(event("root", "migration 4", "change migration"), moves), `changed the rate of ${move}: no limit any more`);
  assert.equal(told(event("root", "migration 4", "change migration: rate 200 MiB/s"), moves), `changed the rate of ${move}: at most 200 MiB/s`);
  assert.match(told(event("root", "migration 4", "guard migration"), moves), /: nothing any more, it has no guard$/);
  assert.match(told(event("root", "migration 4", "guard migration: finish by 06:00, idle only true, keep 0.97"), moves), /: by 06:00, only while the disk is idle, keep 97%$/);
});

test("a refusal says what was wanted and why it was refused", () => {
  assert.equal(told(event("root", "disk log", "start migration: to tiny; refused: no room", { ok: false })), "wanted to move disk log: to tiny. Sterna refused: no room");
  assert.equal(told(event("root", "migration 4", "cancel migration; refused: ", { ok: false }), moves), `wanted to cancel ${move}. Sterna refused and gave no reason`);
  assert.equal(told(event("root", "datastore fast", "set maintenance: on; refused: a plan runs", { ok: false })), "wanted to put datastore fast in maintenance. Sterna refused: a plan runs");
});

test("a request that has failed says so once, and is not said to be refused", () => {
  const failed = event("root", "disk log", "remove disk; failed: disk log is removed, but its image stays", { ok: false });
  assert.equal(told(failed), "wanted to remove disk log. That has failed: disk log is removed, but its image stays");
  assert.equal(outcome(failed), "failed");
  const half = event("root", "datastore fast", "set maintenance: on; failed: the state is full", { ok: false });
  assert.equal(told(half), "wanted to put datastore fast in maintenance. That has failed: the state is full");
  assert.equal(outcome(event("root", "disk log", "start migration; refused: no room", { ok: false })), "refused");
  assert.equal(outcome(event("sterna", "disk log", "requests take 15.4 ms", { ok: false })), "warning");
  assert.equal(outcome(event("root", "disk log", "start migration")), null);
});

test("what QEMU moves, and the migration of a VM, have a subject", () => {
  const its = new Map([[4, { id: 4, disk: "web/vda", from: "/vm", to: "new" }]]);
  const name = "The move of disk web/vda from /vm to new (migration 4)";
  assert.equal(told(event("sterna", "vm web", "QEMU moves a disk: migration 4, device vda, to new"), its), `${name} has begun: QEMU copies`);
  assert.equal(told(event("sterna", "migration 4", "move completed: note kept: /vm/web.qcow2"), its), `${name} is completed: the old image is kept: /vm/web.qcow2`);
  assert.equal(told(event("sterna", "migration 4", "move completed: note kept: /vm/web.qcow2")), "Migration 4 is completed: the old image is kept: /vm/web.qcow2");
  assert.equal(told(event("sterna", "vm web", "transfer: transfer 3, to b, resumed false")), "The migration of VM web has begun: to b");
  assert.equal(told(event("sterna", "vm web", "transfer Completed: transfer 3")), "The migration of VM web is completed");
});

test("what the daemon decides names the move, and why without the name of a field", () => {
  assert.equal(told(event("sterna", "migration 4", "migration paused: reason the destination is full (ENOSPC)"), moves), "The move of disk db from fast to slow (migration 4) is paused: the destination is full (ENOSPC)");
  assert.match(told(event("sterna", "migration 4", "migration paused: reason asked for"), moves), /is paused: an operator asked for that$/);
  assert.equal(told(event("sterna", "disk db", "migration completed: migration 4, to slow, 10.9 s, guest held 5.4 ms"), moves), "The move of disk db from fast to slow (migration 4) is completed: 10.9 s, guest held 5.4 ms");
  assert.equal(told(event("sterna", "disk db", "migration started: migration 7, from fast, to nas"), moves), "Migration 7 has begun: from fast, to nas");
  assert.equal(told(event("sterna", "datastore nas", "datastore offline: problem connection refused")), "Datastore offline: connection refused");
});

test("a change of a move without a value says what holds now", () => {
  assert.match(told(event("sterna", "migration 4", "rate changed"), moves), /^The move of disk db .* may copy as fast as the storage/);
  assert.match(told(event("sterna", "migration 4", "rate changed: rate 4.00 MiB/s"), moves), /at another rate: 4\.00 MiB\/s$/);
  assert.match(told(event("sterna", "migration 4", "guard changed: guard nothing is asked"), moves), /has no guard any more$/);
  assert.match(told(event("sterna", "migration 4", "guard changed: guard keep 97%, by 06:00"), moves), /another guard: keep 97%, by 06:00$/);
  assert.equal(told(event("sterna", "class gold", "policy in force: policy 1")), "Policy 1 is in force for class gold");
});

test("a guard or a target without a reason has no empty one", () => {
  assert.match(told(event("sterna", "migration 4", "guard: "), moves), /^The guard of .* has nothing to judge now: nothing is being copied$/);
  assert.match(told(event("sterna", "migration 4", "guard: holding"), moves), /keeps the promise to the application$/);
  assert.match(told(event("sterna", "migration 4", "guard: unreachable: why "), moves), /cannot keep the promise to the application$/);
  assert.match(told(event("sterna", "migration 4", "guard: unreachable: why even a copy at 256 KiB/s costs 4 %, which is too much"), moves), /: even a copy at 256 KiB\/s costs 4 %, which is too much$/);
  assert.equal(told(event("sterna", "class gold", "cruise: converging: policy 2, target 5 ms, why ")), "The target of class gold (policy 2, 5 ms) is not reached yet: Sterna slows other classes until it is");
  assert.equal(told(event("sterna", "class gold", "cruise: unreachable: policy 2, target 5 ms, why nobody else is left to slow")), "The target of class gold (policy 2, 5 ms) is out of reach: nobody else is left to slow");
});

test("what is not known is told as it came", () => {
  assert.equal(told(event("sterna", "disk mail", "requests take 15.4 ms, usually 3.1 ms")), "Requests take 15.4 ms, usually 3.1 ms");
  assert.equal(told(event("somebody", "disk mail", "did a thing: with why not")), "did a thing: with why not");
  assert.equal(aboutWhat("migration 4", moves), "migration 4, of disk db");
  assert.equal(aboutWhat("disk db", moves), "disk db");
});

test("events are found by what is read and by what the daemon calls it", () => {
  const all = [event("root", "migration 4", "pause migration")];
  for (const words of ["paused disk db", "pause migration", "root slow"]) assert.equal(matching(all, words, "all", moves).length, 1, words);
  assert.match(asCsv(all, moves), /paused the move of disk db/);
});

test("a move that an operator paused says so, and who it was", () => {
  assert.match(waitsFor({ state: "paused", reason: "asked for" } as Migration) ?? "", /^an operator paused it/);
  assert.equal(waitsFor({ state: "paused", reason: "the destination is full" } as Migration), "the destination is full");
  const all = [event("ann", "migration 4", "pause migration", { at_ms: 1 }), event("bob", "migration 4", "pause migration", { at_ms: 2 })];
  assert.equal(pausedBy(all, 4)?.who, "bob");
  assert.equal(pausedBy(all, 5), undefined);
});

test("a command in a hint is whole: it asks a guard for what it keeps now", () => {
  const held = (guard: object) => ({ id: 4, disk: "db", state: "copying", guard }) as unknown as Migration;
  const hint = "see `sterna migration show 4`; ask for less with `sterna migration set 4`";
  const asked = held({ asked: { keep: 0.97, idle_only: false, window: "22:00-06:00" }, state: "unreachable", kept: 0.914 });
  assert.equal(complete(hint, [asked]), "see `sterna migration show 4`; ask for less with `sterna migration set 4 --keep 91% --window 22:00-06:00`");
  assert.equal(lessAsked(held({ asked: { p99_us: 5000, idle_only: false }, state: "unreachable", p99_us: 8100 })), "sterna migration set 4 --p99 10ms");
  assert.equal(lessAsked(held({ asked: { keep: 0.97, idle_only: false, finish_by: 3600 }, state: "late", kept: 0.98 })), "sterna migration set 4 --keep 97%");
  assert.equal(lessAsked(held({ asked: { keep: 0.97, idle_only: false }, state: "unreachable" })), "sterna migration set 4 --no-guard");
  assert.equal(complete(hint, []), hint);
});
