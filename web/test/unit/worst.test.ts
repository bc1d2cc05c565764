import assert from "node:assert/strict";
import { test } from "node:test";
import type { TopRow } from "../../src/api/wire.ts";
import { worstFirst, worstWords, type Judged } from "../../src/model/worst.ts";

const side = { iops: 100, bytes_per_second: 1 };
const row = (name: string, ms: number | null, more = {}) => ({ name, device: null, load: { window_s: 1, read: side, write: side, outstanding: 1, in_flight: 1, p50_us: 1, p95_us: 1, p99_us: ms === null ? null : ms * 1e3, max_us: 1, queue_us: 0, service_us: ms === null ? null : ms * 1e3, ...more } }) as unknown as TopRow;
const promised = { us: 2000, of: "mean" as const, whose: "the target of class gold (policy 1)", promised: true };
const judged = (more: Partial<Judged> = {}): Judged => ({ bound: () => promised, hurt: new Set(), slower: new Set(), ...more });
const names = (rows: TopRow[]) => rows.map((one) => one.name);

test("the disk that is furthest above what was promised comes first", () => {
  assert.deepEqual(names(worstFirst([row("a", 1), row("b", 5), row("c", 3), row("idle", null)], judged())), ["b", "c", "a", "idle"]);
});

test("what hangs comes first, then what is hurt, although others take longer", () => {
  const none = { iops: 0, bytes_per_second: 0 };
  const hung = row("hung", null, { read: none, write: none, in_flight: 2 });
  assert.deepEqual(names(worstFirst([row("late", 9), row("hurt", 1), hung], judged({ hurt: new Set(["hurt"]) }))), ["hung", "hurt", "late"]);
  assert.match(worstWords(hung, judged()) ?? "", /hung is worst: its requests hang/);
});

test("disks that are equally bad go by their names", () => {
  assert.deepEqual(names(worstFirst([row("b", 1), row("a", 1)], judged())), ["a", "b"]);
});

test("the worst disk is told with its figure and with whose word it is held against", () => {
  assert.equal(worstWords(row("db", 5), judged()), "db is worst: its mean of 5.0 ms is 2.5 times the 2.0 ms of the target of class gold (policy 1)");
  assert.match(worstWords(row("db", 1), judged()) ?? "", /is within the 2\.0 ms/);
  assert.match(worstWords(row("db", 1), judged({ bound: () => null })) ?? "", /nothing is promised/);
  assert.equal(worstWords(row("db", null), judged()), null);
  assert.equal(worstWords(undefined, judged()), null);
});
