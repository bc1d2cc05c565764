import assert from "node:assert/strict";
import { test } from "node:test";
import { DaemonClock, stage } from "../../src/model/age.ts";

test("a figure is grey after 3 s and crossed out after 10 s", () => {
  const ages = [0, 2900, 3100, 9900, 10_100].map((age) => stage(100_000, 100_000 + age));
  assert.deepEqual(ages, ["fresh", "fresh", "old", "old", "dead"]);
  assert.equal(stage(null, 0), "dead");
});

test("time goes by the daemon's clock, however wrong the browser's is", () => {
  const clock = new DaemonClock();
  assert.equal(clock.now(5, 777), 777);
  clock.said(1_000_000, 500);
  assert.equal(clock.now(1700, 777), 1_001_200);
  assert.equal(clock.silence(1700), 1200);
});
