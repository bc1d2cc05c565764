import assert from "node:assert/strict";
import { test } from "node:test";
import { apart, fitting, short } from "../../src/model/labels.ts";

test("labels of lines that are near each other do not lie on each other, and stay in the chart", () => {
  assert.deepEqual(apart([40, 80], 14, 10, 140), [40, 80]);
  assert.deepEqual(apart([50, 48, 52], 14, 10, 140), [62, 48, 76]);
  assert.deepEqual(apart([138, 139], 14, 10, 140), [126, 140]);
  assert.deepEqual(apart([2], 14, 10, 140), [10]);
});

test("a label that would reach into the next one, or out of the chart, is not told", () => {
  assert.deepEqual(fitting([{ x: 0, width: 50 }, { x: 40, width: 50 }, { x: 60, width: 30 }], 100), [true, false, true]);
  assert.deepEqual(fitting([{ x: 80, width: 50 }], 100), [false]);
  assert.deepEqual(fitting([{ x: 60, width: 30 }, { x: 0, width: 50 }], 100), [true, true]);
});

test("a long label ends where it has to", () => {
  assert.equal(short("move to nas", 20), "move to nas");
  assert.equal(short("move to nas completed", 12), "move to nas…");
});
