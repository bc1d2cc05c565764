import assert from "node:assert/strict";
import { test } from "node:test";
import type { Columns, Load, RawTimeline, Timeline } from "../../src/api/wire.ts";
import { withPauses } from "../../src/model/pauses.ts";
import { append, empty, median, pointMeans, sum } from "../../src/model/timeline.ts";

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

test("no line is drawn across a pause, in which the rates are zero", () => {
  const raw = { of: "all", from_ms: 0, to_ms: 20_000, now_ms: 20_000, columns: { ...columns(4, () => 5), windows: [1, 1, 1, 1] } } as unknown as RawTimeline;
  raw.columns.start_ms = [0, 1000, 9000, 10_000];
  raw.columns.end_ms = [1000, 2000, 10_000, 11_000];
  const made = withPauses(raw);
  assert.deepEqual(made.columns.p99_us, [5, 5, null, null, 5, 5, null, null]);
  assert.deepEqual(made.columns.read_iops, [0, 1, 0, 0, 2, 3, 0, 0]);
  assert.deepEqual(made.columns.end_ms, [1000, 2000, 2001, 9000, 10_000, 11_000, 11_001, 20_000]);
  assert.ok(made.columns.end_ms.every((end, at) => at === 0 || end > made.columns.end_ms[at - 1]!));
});

test("a timeline knows how many windows its points join", () => {
  const raw = { of: "all", from_ms: 0, to_ms: 12_000, now_ms: 12_000, columns: { ...columns(2, () => 5), windows: [6, 6] } } as unknown as RawTimeline;
  raw.columns.start_ms = [0, 6000];
  raw.columns.end_ms = [6000, 12_000];
  const made = withPauses(raw);
  assert.deepEqual([made.joined, made.finest_ms, made.columns.p99_us.length], [6, 1000, 2]);
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
