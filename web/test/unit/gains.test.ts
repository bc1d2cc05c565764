import assert from "node:assert/strict";
import { test } from "node:test";
import type { Disk, Migration, Recommendations } from "../../src/api/wire.ts";
import { moveGains, whoGains } from "../../src/model/gains.ts";
import { safety } from "../../src/model/words.ts";

const disk = (name: string, its: string | null, datastore = "slow") => ({ name, datastore, class: its }) as Disk;
const disks = [disk("etl", "batch"), disk("db", "gold"), disk("mail", null), disk("far", null, "fast")];
const draft = { class: "batch", kind: "limit" as const, goal: "20M", tolerance: "10%", schedule: "" };

test("a limit is at the cost of its class, and a target at the cost of the others", () => {
  assert.match(whoGains(draft, disks)!, /^Gain: the 2 other disks of datastore slow \(db, mail\)\. Lose: the 1 disk of class batch \(etl\)\. By how much, cannot be told before/);
  assert.match(whoGains({ ...draft, class: "gold", kind: "cruise" }, disks)!, /^Gain: the 1 disk of class gold \(db\)\. Lose: the 2 other disks/);
  assert.equal(whoGains({ ...draft, class: "none" }, disks), "Class none has no disk: nobody gains or loses.");
  assert.match(whoGains(draft, [disk("etl", "batch")])!, /^Lose: .* so nobody gains\.$/);
});

test("a move that Storage DRS recommends says who gains and who loses, and another one that it is not known", () => {
  const advice = { moves: [{ disk: "mail", from: "slow", to: "fast", source: [{ taken: 0.89, p95_us: 41_000 }, { taken: 0.85, p95_us: 18_000 }], destination: [{ taken: 0.57, p95_us: 1800 }, { taken: 0.61, p95_us: 2400 }] }] } as Recommendations;
  assert.equal(moveGains("mail", "slow", "fast", advice), "Gain: the disks that stay on slow: p95 41.0 ms to 18.0 ms, 89% to 85% of its room. Lose: those on fast: p95 1.8 ms to 2.4 ms, 57% to 61% of its room.");
  assert.match(moveGains("etl", "slow", "fast", advice), /^The disks that stay on slow get faster, .* Those on fast get slower, .* By how much is known only for moves that Storage DRS recommends/);
});

test("a move says which image is the truth, and that a cancel loses nothing", () => {
  const move = { from: "slow", to: "fast", state: "copying" } as Migration;
  assert.match(safety(move)!, /^The image on slow has all data and stays the truth until the switch-over\. A cancel, .* loses nothing\.$/);
  assert.equal(safety({ ...move, state: "completed", ended: 5 } as Migration), null);
});
