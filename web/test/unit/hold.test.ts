import assert from "node:assert/strict";
import { test } from "node:test";
import type { Class } from "../../src/api/wire.ts";
import { hold, rateOf, type Around } from "../../src/model/hold.ts";

const MIB = 2 ** 20;
const cls = (name: string, disks: string[], limit: number | null = null) => ({ name, disks, built_in: false, in_force: { bytes_per_second: limit }, reservation: null }) as unknown as Class;
const around = (more: Partial<Around>): Around => ({ disk: "mail", class: null, neighbour: "etl", its: null, now: 300 * MIB, classes: ["gold", "batch"], policies: [], load: null, help: null, ...more });
const advised = { text: "hold etl to 19.0 MiB/s; requests of mail then take about 2.0 ms, now 7.9 ms", command: "sterna policy limit batch 19M" };

test("a neighbour in another class is held by a limit on its class, as the daemon foresees", () => {
  const made = hold(around({ its: cls("batch", ["etl", "tape"]), help: advised }));
  assert.equal(made.command, "sterna policy limit batch 19M");
  assert.equal(made.rate, 19 * MIB);
  assert.deepEqual(made.steps.map((step) => [step.method, step.path.join("/"), step.body]), [["POST", "policies", { class: "batch", aim: { kind: "limit", goal: { bytes_per_second: 19 * MIB } } }]]);
  assert.match(made.consequence, /Predicted: requests of mail then take about 2\.0 ms, now 7\.9 ms\./);
  assert.match(made.consequence, /for class batch as a whole, so 1 other disk shares it: tape/);
});

test("a neighbour in no class gets one of its own, and half of what it does now", () => {
  const made = hold(around({}));
  assert.equal(made.command, "sterna class create etl-limited etl && sterna policy limit etl-limited 150M");
  assert.match(made.consequence, /What that brings to mail is not predicted/);
  assert.deepEqual(made.steps[0]?.undo, { method: "DELETE", path: ["classes", "etl-limited"] });
  assert.match(hold(around({ classes: ["etl-limited"] })).command, /class create limited etl/);
  assert.match(hold(around({ neighbour: "x".repeat(63), classes: ["limited"] })).command, /class create limited-2 x/);
});

test("a neighbour in the same class leaves it first, so that the limit does not hold the disk that suffers", () => {
  const made = hold(around({ class: "gold", its: cls("gold", ["mail", "etl"]) }));
  assert.equal(made.command, "sterna class remove-disk gold etl && sterna class create etl-limited etl && sterna policy limit etl-limited 150M");
  assert.match(made.consequence, /it leaves class gold/);
  assert.deepEqual(made.steps[0]?.undo, { method: "PATCH", path: ["classes", "gold"], body: { add: ["etl"] } });
});

test("a limit that holds already is halved, and advice of another kind is no prediction", () => {
  const moved = { text: "move mail to datastore fast", command: "sterna migrate mail --to fast" };
  const made = hold(around({ its: cls("batch", ["etl"], 100 * MIB), help: moved }));
  assert.equal(made.rate, 50 * MIB);
  assert.match(made.consequence, /not predicted/);
  assert.equal(hold(around({ now: 1000 })).rate, 2 ** 18, "not less than the daemon permits");
});

test("a rate is read from the command that the daemon advises", () => {
  assert.equal(rateOf("sterna class create a-limited a && sterna policy limit a-limited 19M"), 19 * MIB);
  assert.equal(rateOf("sterna policy limit batch 256K"), 2 ** 18);
  assert.equal(rateOf("sterna policy limit batch 1048577"), 1048577);
  assert.equal(rateOf("sterna migrate mail --to fast"), null);
});

test("a limit that breaks a reservation of another metric says so", () => {
  const its = { ...cls("bulk", ["etl"]), reservation: { iops: 1200 } } as unknown as Class;
  const load = { iops: 600, bytes: 600 * 32768 };
  const made = hold(around({ its, now: 28 * MIB, load }));
  assert.match(made.consequence, /But this breaks the reservation of class bulk: .* leaves it 448 of 1200 IO\/s\./);
  assert.doesNotMatch(hold(around({ its, now: 100 * MIB, load })).consequence, /breaks/);
  const told = { text: "hold etl to 19.0 MiB/s; requests of mail then take about 2.0 ms; this breaks the reservation of class bulk, 1200 IO/s", command: "sterna policy limit bulk 19M" };
  const once = hold(around({ its, load, help: told })).consequence;
  assert.equal(once.split("breaks").length, 2, once);
});
