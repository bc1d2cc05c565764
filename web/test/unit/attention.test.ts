import assert from "node:assert/strict";
import { test } from "node:test";
import type { Activity, Bucket, Load, Migration, TopRow } from "../../src/api/wire.ts";
import { older, stage } from "../../src/model/age.ts";
import { attention, linkTo, talks, verdict } from "../../src/model/attention.ts";
import { asCsv, matching } from "../../src/model/events.ts";
import { between, both, cropped, edges } from "../../src/model/heat.ts";
import { hangs, isAbove, isLate } from "../../src/model/late.ts";
import { why } from "../../src/model/why.ts";

const side = { iops: 100, bytes_per_second: 1 };
const load = { window_s: 1, read: side, write: side, outstanding: 1, in_flight: 1, p50_us: 1, p95_us: 5000, p99_us: 8000, max_us: 9000, queue_us: 100, service_us: 900 } as Load;

test("what was promised of the mean is held against the mean", () => {
  const bound = (of: "mean" | "p95" | "p99", us: number) => ({ of, us, whose: "", promised: true });
  assert.ok(!isLate(load, bound("mean", 2000)));
  assert.ok(isLate(load, bound("p99", 2000)) && isLate(load, bound("p95", 2000)));
  assert.ok(!isLate(load, null));
});

test("late is only what was promised", () => {
  const bound = { of: "p95" as const, us: 2000, whose: "the bound of Storage DRS", promised: false };
  assert.ok(isAbove(load, bound) && !isLate(load, bound));
  assert.ok(isLate(load, { ...bound, promised: true }));
});

test("a disk says why it answers as it does", () => {
  const slow = why({ load: { ...load, queue_us: 9000 }, class: undefined, bound: { of: "p99", us: 5000, whose: "the guard of its move 3", promised: true } });
  assert.match(slow.headline, /p99 8.0 ms is above 5.0 ms, the guard of its move 3/);
  assert.match(slow.because, /wait for their turn 91% of their time/);
  assert.match(why({ load }).because, /at the device/);
});

test("a disk that hangs and one that is idle are told apart", () => {
  const still = { ...load, read: { iops: 0, bytes_per_second: 0 }, write: { iops: 0, bytes_per_second: 0 }, p99_us: null };
  assert.ok(hangs({ ...still, in_flight: 3 }));
  assert.equal(why({ load: { ...still, in_flight: 3 } }).tone, "bad");
  assert.equal(why({ load: { ...still, in_flight: 0 } }).headline, "It is idle");
});

test("the worst comes first, and nothing comes twice", () => {
  const paused = { id: 4, disk: "db", state: "paused", reason: "full", hint: "make room" } as Migration;
  const warnings = [
    { about: "policy 3", message: "its target is out of reach", hint: "" },
    { about: "datastore fast", message: "it is offline", hint: "" },
    { about: "migration 4", message: "full", hint: "" },
  ];
  const talkers = new Map([["slow", { row: { name: "web-7", load: { ...load, write: { iops: 9, bytes_per_second: 310 * 2 ** 20 } } } as TopRow, usual: 40 * 2 ** 20 }]]);
  const judged = [{ datastore: "slow", load: { p95_us: 41_000, taken: 0.5 }, over: ["latency" as const], maintenance: false, outstanding: 1, settling: false }];
  const items = attention(warnings, [paused], judged, 20_000, talkers);
  assert.deepEqual(items.map((item) => item.about), ["datastore fast", "migration 4", "policy 3", "datastore slow"]);
  assert.equal(items[3]?.text, "p95 41.0 ms, bound 20.0 ms; web-7 writes 310 MiB/s (its usual, the median of a day: 40.0 MiB/s)");
});

test("a datastore that is too slow is said once, with who loads it", () => {
  const warnings = [{ about: "datastore slow", message: "p95 41.0 ms, bound 20.0 ms", hint: "" }, { about: "datastore slow", message: "full", hint: "" }];
  const judged = [{ datastore: "slow", load: { p95_us: 41_000, taken: 0.5 }, over: ["latency" as const], maintenance: false, outstanding: 1, settling: false }];
  const texts = attention(warnings, [], judged, 20_000, new Map()).map((item) => item.text);
  assert.deepEqual(texts, ["full", "p95 41.0 ms, bound 20.0 ms"]);
  assert.equal(attention(warnings, [], [], 20_000, new Map()).length, 2, "until the page knows it");
});

test("the first words of the page answer its question", () => {
  const seen = { hurt: [], count: 0, items: [], late: 0, lateIsMore: false, nowMs: 0 };
  assert.equal(verdict(seen).text, "Nobody is hurt");
  assert.equal(verdict({ ...seen, late: 10, lateIsMore: true }).text, "at least 10 disks are late");
  assert.equal(verdict({ ...seen, late: 1 }).text, "1 disk is late");
});

test("what was well three seconds ago is not said to be well", () => {
  const seen = { hurt: [], count: 0, items: [], late: 0, lateIsMore: false };
  const at = (ageMs: number) => verdict({ ...seen, nowMs: 1e12 + ageMs, atMs: 1e12, age: stage(1e12, 1e12 + ageMs) });
  assert.equal(at(2_900).tone, "ok");
  assert.equal(at(3_100).tone, "quiet");
  assert.match(at(3_100).text, /Not known now: the last figures are from \d\d:/);
  assert.equal(older(null, 5), 5);
  assert.equal(older(7, 5), 5);
});

test("who loads a slow datastore less than usual is named without a remark", () => {
  const row = { name: "db", load: { ...load, read: { iops: 9, bytes_per_second: 3 * 2 ** 20 } } } as TopRow;
  assert.equal(talks({ row, usual: 10 * 2 ** 20 }), "db reads 3.00 MiB/s");
  assert.equal(talks({ row, usual: 2 ** 20 }), "db reads 3.00 MiB/s (its usual, the median of a day: 1.00 MiB/s)");
  const both = { ...row, load: { ...row.load, write: { iops: 9, bytes_per_second: 2 ** 20 } } } as TopRow;
  assert.equal(talks({ row: both, usual: 2 ** 20 }), "db reads 3.00 MiB/s and writes 1.00 MiB/s (its usual, the median of a day: 1.00 MiB/s together)");
});

test("hostile names stay inside their links", () => {
  assert.equal(linkTo('disk a/b?c#d"<script>'), "#/disk/a%2Fb%3Fc%23d%22%3Cscript%3E");
  assert.equal(linkTo("something else"), null);
});

test("a saved table has no formulas", () => {
  const event = { seq: 1, at_ms: 0, who: "=cmd()", about: null, text: 'a "b", c', command: null, ok: true } as Activity;
  assert.equal(asCsv([event]).split("\r\n")[1], `1,1970-01-01T00:00:00.000Z,"'=cmd()",,yes,"a ""b"", c",`);
  assert.equal(matching([event], "B c", "all").length, 1);
  assert.equal(matching([event], "", "failed").length, 0);
});

test("a heat map has what came between two looks", () => {
  const buckets: Bucket[] = [{ to: 10, count: 0 }, { to: 20, count: 0 }, { to: 40, count: 0 }, { count: 0 }];
  assert.deepEqual(edges(buckets), [10, 20, 40, 40]);
  assert.deepEqual(both([{ to: 1, count: 2 }], [{ to: 1, count: 3 }]), [5]);
  const column = between([1, 0, 0, 0], [1, 5, 0, 0], 7)!;
  assert.deepEqual(column.counts, [0, 5, 0, 0]);
  assert.equal(between([5, 0], [1, 0], 7), null);
  assert.deepEqual(cropped([column], edges(buckets)).edges, [10, 20, 40]);
});
