import assert from "node:assert/strict";
import { test } from "node:test";
import type { Class, Policy } from "../../src/api/wire.ts";
import { outOfReach } from "../../src/model/words.ts";

const gold = { name: "gold" } as Class;
const target = (phase: string, standing = "binds") =>
  ({ id: 1, class: "gold", standing, aim: { kind: "cruise", goal: { response_ms: 2 }, tolerance_percent: 20 }, cruise: { phase } }) as Policy;

test("a class that has its reservation and not its target says both, each of its own", () => {
  assert.equal(outOfReach(gold, [target("unreachable")]), "its target of a mean of 2.0 ms ± 20 % is out of reach");
});

test("of a target that holds, is closed, or is another class's nothing is said", () => {
  assert.equal(outOfReach(gold, [target("holding"), target("unreachable", "closed")]), null);
  assert.equal(outOfReach({ name: "batch" } as Class, [target("unreachable")]), null);
});
