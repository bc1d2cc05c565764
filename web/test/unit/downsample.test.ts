import assert from "node:assert/strict";
import { test } from "node:test";
import type { Columns, Load, Timeline } from "../../src/api/wire.ts";
import { append, empty, median, pointMeans, reduce, sum } from "../../src/model/downsample.ts";

function columns(rows: number, p99: (row: number) => number | null): Columns {
  const made = empty();
  for (let row = 0; row < rows; row += 1) {
    made.start_ms.push(row * 1000);
    made.end_ms.push((row + 1) * 1000);
    for (const name of ["read_iops", "write_iops", "read_bytes_s", "write_bytes_s", "p50_us", "max_us", "queue_us", "service_us", "outstanding"] as const) made[name].push(row);
    made.p99_us.push(p99(row));
  }
  return made;
}

test("percentiles are never averaged: the worst window counts", () => {
  const { columns: made, joined } = reduce(columns(3600, (row) => (row === 1234 ? 90_000 : 1000)), 600);
  assert.equal(joined, 6);
  assert.equal(made.p99_us.length, 600);
  assert.equal(Math.max(...(made.p99_us as number[])), 90_000);
});

test("rates are means", () => {
  const { columns: made } = reduce(columns(10, () => 1), 5);
  assert.deepEqual(made.read_iops, [0.5, 2.5, 4.5, 6.5, 8.5]);
});

test("means are weighted by time", () => {
  const made = columns(2, () => 1);
  made.end_ms[1] = 4000;
  made.start_ms[1] = 1000;
  assert.deepEqual(reduce(made, 1).columns.read_iops, [0.75]);
});

test("where nothing was asked there is no figure, and no zero", () => {
  const { columns: made } = reduce(columns(4, (row) => (row < 2 ? null : 5)), 2);
  assert.deepEqual(made.p99_us, [null, 5]);
});

test("few rows stay as they are", () => {
  const before = columns(10, () => 1);
  assert.equal(reduce(before, 600).columns, before);
});

test("a live window goes to the end, and what is too old is dropped", () => {
  const timeline: Timeline = { of: "all", from_ms: 0, to_ms: 10_000, now_ms: 10_000, columns: columns(10, () => 1), finest_ms: 1000, joined: 1 };
  const side = { iops: 5, bytes_per_second: 10 };
  const load = { window_s: 1, read: side, write: side, outstanding: 1, in_flight: 1, p50_us: 1, p99_us: 7, max_us: 9 } as Load;
  const longer = append(timeline, load, 11_000, 5_000);
  assert.equal(longer.columns.p99_us.at(-1), 7);
  assert.equal(longer.columns.start_ms[0], 6000);
  assert.equal(append(longer, load, 11_000, 5_000), longer);
});

test("the usual is the middle, not the mean", () => {
  assert.equal(median([1, 2, 900, null]), 2);
  assert.equal(median([null]), null);
  assert.deepEqual(sum([1, null, null], [2, 3, null]), [3, 3, null]);
});

test("a chart says what its points are", () => {
  const timeline = { finest_ms: 1000, joined: 1 } as Timeline;
  assert.equal(pointMeans(timeline), "each point is one window of 1 s");
  assert.match(pointMeans({ ...timeline, joined: 6 }), /worst window/);
});
