import assert from "node:assert/strict";
import { test } from "node:test";
import { place, short } from "../../src/model/labels.ts";

const box = (x: number, y: number) => ({ x, y, width: 50, height: 13 });
const flat = (y: number) => ({ xs: [0, 100, 200], ys: [y, y, y] });

test("a label stands at the first place at which it covers no curve", () => {
  assert.deepEqual(place([box(0, 40), box(0, 80)], [flat(20)], []), box(0, 40));
  assert.deepEqual(place([box(0, 40), box(0, 80)], [flat(20), flat(45)], []), box(0, 80));
  const rises = { xs: [0, 100, 200], ys: [100, 100, 0] };
  assert.deepEqual(place([box(120, 40), box(20, 40)], [rises], []), box(20, 40), "what rises through it counts, too");
});

test("where a label has no place that is free, it is not told", () => {
  assert.equal(place([box(0, 40)], [flat(45)], []), null);
  assert.equal(place([box(0, 40)], [], [box(30, 45)]), null, "another label is in its way");
  assert.deepEqual(place([box(0, 40)], [], [box(50, 40)]), box(0, 40), "they may touch");
});

test("a gap of a curve has room for a label", () => {
  const broken = { xs: [0, 10, 90, 100], ys: [45, 45, null, 45] };
  assert.deepEqual(place([box(30, 40)], [broken], []), box(30, 40));
  assert.equal(place([box(5, 40)], [broken], []), null);
});

test("a long label ends where it has to", () => {
  assert.equal(short("move to nas", 20), "move to nas");
  assert.equal(short("move to nas completed", 12), "move to nas…");
});
