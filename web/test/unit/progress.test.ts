import assert from "node:assert/strict";
import { test } from "node:test";
import type { Migration } from "../../src/api/wire.ts";
import { end, Reached, REGION } from "../../src/model/progress.ts";
import { shortClock } from "../../src/model/time.ts";
import { atRate, endWords, pauses, phases, hinders, resumes, waitsFor } from "../../src/model/words.ts";

const GIB = 2 ** 30;

function move(synced: number, more: Partial<Migration> = {}, progress: object = {}): Migration {
  return {
    id: 1,
    disk: "db",
    state: "copying",
    verify: true,
    progress: { total: 10 * GIB, synced: synced * GIB, copied: synced * GIB, to_copy: (10 - synced) * GIB, to_compare: 10 * GIB, late_regions: 0, rate: 1e8, patience_ms: 20, undone: 0, ...progress },
    application: {},
    ...more,
  } as Migration;
}

test("a bar never runs backwards, whatever the guest rewrites", () => {
  const reached = new Reached();
  let most = 0;
  let total = 0;
  for (let seed = 1; seed < 2000; seed += 1) {
    const noise = Math.sin(seed * 12.9898) * 43_758.5453;
    const synced = Math.max(0, Math.min(10, (seed / 200) * (1 - Math.abs(noise % 1) * 0.3)));
    const bar = reached.bar(move(synced));
    assert.ok(bar.percent !== null && bar.percent >= most, `${bar.percent} after ${most}`);
    assert.ok(bar.equal + bar.again >= total - 1e-9);
    assert.ok(bar.equal >= 0 && bar.again >= 0 && bar.equal + bar.again <= 1 + 1e-9);
    most = bar.percent;
    total = bar.equal + bar.again;
  }
});

test("what is to be copied again is apart from what is equal", () => {
  const reached = new Reached();
  reached.bar(move(5));
  const bar = reached.bar(move(4));
  assert.equal(bar.equal, 0.4);
  assert.ok(Math.abs(bar.again - 0.1) < 1e-9);
  assert.equal(bar.percent, 50);
});

test("regions that are behind show as again from the start", () => {
  const bar = new Reached().bar(move(5, {}, { late_regions: GIB / REGION }));
  assert.ok(Math.abs(bar.again - 0.1) < 1e-9);
  assert.ok(Math.abs(bar.equal - 0.4) < 1e-9);
});

test("100 % is for what has ended", () => {
  const reached = new Reached();
  assert.equal(reached.bar(move(10)).percent, 99);
  assert.equal(reached.bar(move(10, { state: "completed", progress: null })).percent, 100);
});

test("a comparison has a bar of its own", () => {
  const bar = new Reached().bar(move(10, { state: "verifying" }, { verified: 4 * GIB }));
  assert.equal(bar.verified, 0.4);
  assert.equal(bar.percent, 40);
});

test("a comparison that is paused shows the part that was compared, not what is equal", () => {
  const reached = new Reached();
  reached.bar(move(9.3, { state: "verifying" }, { verified: 7.8 * GIB }));
  const paused = move(9.3, { state: "paused" }, { verified: 7.8 * GIB });
  const bar = reached.bar(paused);
  assert.equal(bar.percent, 78);
  assert.equal(phases(paused, bar, 0), "comparison 78 %");
  assert.equal(new Reached().bar(paused).percent, 78, "also where the page begins with it");
});

test("what was copied before a restart of the daemon is not known, and is not 0 %", () => {
  const paused = move(0, { state: "paused", progress: null });
  const bar = new Reached().bar(paused);
  assert.equal(bar.percent, null);
  assert.equal(phases(paused, bar, 0), null);
  const reached = new Reached();
  reached.bar(move(2));
  assert.equal(reached.bar(paused).percent, 20, "what was seen before stays");
});

test("moves do not mix", () => {
  const reached = new Reached();
  reached.bar(move(8));
  assert.equal(reached.bar(move(1, { id: 2 })).percent, 10);
});

test("the end is a range as wide as the prediction", () => {
  const predicted = { likely_s: 100, least_s: 80, most_s: 150 } as Migration["predicted"];
  assert.deepEqual(end(move(5, { predicted }, { eta_s: 50 })), { likely: 50, least: 40, most: 75 });
  assert.deepEqual(end(move(5, {}, { eta_s: 50 })), { likely: 50, least: 50, most: 50 });
});

test("an end that is not known is said to be so", () => {
  assert.equal(end(move(5)), null);
  assert.equal(end(move(5, { state: "paused" }, { eta_s: 50 })), null);
  assert.equal(endWords(move(5), 0), "not known yet");
});

test("a guard that will be in time says so although today's rate would not do", () => {
  const guard = { asked: { finish_by: 1000, idle_only: false }, state: "holding" } as Migration["guard"];
  assert.equal(endWords(move(5, { guard }, { eta_s: 5000 }), 0), "in time");
  assert.notEqual(endWords(move(5, { guard: { ...guard!, state: "late" } }, { eta_s: 5000 }), 0), "in time");
});

test("what keeps a move at work from its end is said with what to do about it", () => {
  const reason = "another program has changed the image of disk db on here 3 times";
  assert.equal(hinders(move(5, { state: "verifying", reason, hint: "stop it" })), reason);
  assert.equal(hinders(move(5, { state: "verifying", reason })), null);
  assert.equal(hinders(move(5, { state: "completed", reason, hint: "stop it" })), null);
});

test("a move that stands names what it waits for", () => {
  assert.equal(waitsFor(move(5)), null);
  assert.equal(waitsFor(move(5, { state: "paused", reason: "the destination is full (ENOSPC)" })), "the destination is full (ENOSPC)");
  const closed = { asked: { window: "22:00-06:00", idle_only: false }, state: "closed" } as Migration["guard"];
  assert.equal(waitsFor(move(5, { guard: closed }, { rate: 0 })), "its window 22:00-06:00 is closed");
  assert.equal(waitsFor(move(5, {}, { rate: 0 })), "its turn among the copies");
});

test("copy and comparison are two phases, each with its end", () => {
  const at = (seconds: number) => shortClock(seconds * 1e3);
  const words = (it: Migration) => phases(it, new Reached().bar(it), 0);
  // 5 GiB are to be copied, and 10 compared.
  assert.equal(words(move(5, {}, { eta_s: 5400, verified: 0 })), `copy 50 %, until ${at(1800)}; then comparison, until ${at(5400)}`);
  assert.equal(words(move(5, { verify: false }, { eta_s: 1800, to_compare: 0 })), `copy 50 %, until ${at(1800)}`);
  assert.equal(words(move(10, { state: "verifying" }, { eta_s: 600, verified: 4 * GIB })), `comparison 40 %, until ${at(600)}`);
  assert.equal(words(move(5)), "copy 50 %; then comparison");
  assert.equal(words(move(10, { state: "completed", progress: null })), null);
});

test("what a pause, a resume and another rate do is said before", () => {
  const its = move(5, { from: "fast", to: "slow", predicted: { kept: 0.97 } as Migration["predicted"] }, { rate: 100 * 2 ** 20, eta_s: 3000 });
  assert.match(pauses(its), /which frees 100 MiB\/s of reading on fast and of writing on slow/);
  assert.match(resumes(its), /5\.00 GiB are to be copied, then compared; the application is predicted to keep 97%/);
  // 15 GiB at 50 MiB/s.
  assert.equal(atRate(its, 50 * 2 ** 20, 0), `At 50.0 MiB/s at most the 15.0 GiB that are left take 5 min 07 s or longer: until ${shortClock(307_200)} at the earliest, now ${shortClock(3_000_000)}.`);
  assert.match(atRate(its, null, 0)!, /as fast as the storage and the guard let it/);
});
