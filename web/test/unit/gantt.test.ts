import assert from "node:assert/strict";
import { test } from "node:test";
import type { Plan } from "../../src/api/wire.ts";
import { critical, layout, place, ticks } from "../../src/model/gantt.ts";
import { answer } from "../../src/model/plans.ts";

function plan(more: Partial<Plan> = {}): Plan {
  const move = (disk: string, wave: number, begins_s: number, ends_s: number, rest = {}) => ({ disk, wave, begins_s, ends_s, state: "waiting", ...rest });
  return {
    id: 1,
    state: "planned",
    started: null,
    ends: null,
    deadline: null,
    datastores: [
      { datastore: "a", bytes: 100, speed: 10, moves: 1 },
      { datastore: "b", bytes: 100, speed: 5, moves: 1 },
    ],
    estimate: { bytes: 200, unknown: 0 },
    moves: [move("late", 2, 60, 90), move("first", 1, 0, 60, { state: "moved", began: 1010, ended: 1075 })],
    ...more,
  } as unknown as Plan;
}

test("moves are in the order of their waves, and a plan that was not applied begins now", () => {
  const laid = layout(plan({ moves: plan().moves.map((move) => ({ ...move, began: null, ended: null })) }), 5_000_000);
  assert.deepEqual(laid.rows.map((row) => row.label), ["first", "late"]);
  assert.equal(laid.tiles[0]?.predictedFrom, 5_000_000);
  assert.deepEqual(laid.waves.map((wave) => wave.wave), [1, 2]);
  assert.equal(laid.toMs, 5_090_000);
});

test("what is done is where it was, and what is under way reaches now", () => {
  const laid = layout(plan({ state: "running", started: 1000 }), 1_080_000);
  assert.equal(laid.tiles[0]?.from, 1_010_000);
  assert.equal(laid.tiles[0]?.to, 1_075_000);
  const moving = plan({ state: "running", started: 1000 });
  moving.moves[0] = { ...moving.moves[0]!, state: "moving", began: 1076 };
  assert.equal(layout(moving, 1_080_000).tiles[1]?.to, 1_080_000);
});

test("the deadline and the predicted end are on the axis", () => {
  const laid = layout(plan({ state: "running", started: 1000, ends: 1500, deadline: { by: 2000, state: "likely" } }), 1_080_000);
  assert.equal(laid.toMs, 2_000_000);
  assert.equal(place(1_000_000, laid), 0);
  assert.equal(place(9_000_000, laid), 1);
});

test("ticks are round, and no more than wanted", () => {
  const found = ticks(0, 3_600_000, 6);
  assert.ok(found.length <= 7 && found.length >= 3);
  assert.ok(found.every((tick) => tick.atMs % (tick.stepS * 1000) === 0));
});

test("the datastore whose copies take longest decides", () => {
  assert.deepEqual(critical(plan()), { datastore: "b", seconds: 20 });
});

test("the answer to the deadline is in the first words", () => {
  const by = (state: "met" | "missed" | "unknown") => answer(plan({ state: "running", ends: 1500, deadline: { by: 2000, state } }), 1_080_000);
  assert.match(by("met").text, /^Yes/);
  assert.match(by("missed").text, /^No/);
  assert.match(by("unknown").text, /not known/);
  assert.equal(answer(plan({ state: "incomplete" }), 0).tone, "bad");
});
