import assert from "node:assert/strict";
import { test } from "node:test";
import type { HurtDisk } from "../../src/api/wire.ts";
import { verdict } from "../../src/model/attention.ts";
import { hangsFirst, headline, since, slowed, slower, slowerLine, takes, withinBounds } from "../../src/model/hurt.ts";
import { day, shortClock } from "../../src/model/time.ts";
import { learning, usually } from "../../src/model/usual.ts";

const nowMs = Date.UTC(2026, 10, 24, 12, 30);
const db: HurtDisk = {
  disk: "db", datastore: "array", since: nowMs / 1e3 - 1620, response_us: 7900, usual_us: 500, promised_us: null, by: "neighbour", neighbour: "etl",
  why: "Its neighbour etl does 90% of the work of datastore array", help: { text: "hold etl to 10.0 MiB/s", command: "sterna policy limit batch 10M" },
};
const others = ["mail", "web", "log", "shop"].map((disk) => ({ ...db, disk }));

test("one disk is named with what its requests take, and since when", () => {
  assert.equal(headline([db], 1, nowMs), `db: requests take 7.9 ms, usually 0.50 ms, since ${shortClock(nowMs - 1_620_000)}. Its neighbour etl does 90% of the work of datastore array`);
  assert.equal(takes({ ...db, promised_us: 5000 }), "requests take 7.9 ms, promised 5.0 ms");
  assert.equal(takes({ ...db, response_us: null }), "requests hang");
});

test("where a disk hangs, what Storage DRS does not judge is said first", () => {
  const stuck: HurtDisk = { ...db, by: "hangs", response_us: null, neighbour: null, why: "Datastore array answers none of its requests" };
  const at = shortClock(nowMs - 1_620_000);
  assert.match(hangsFirst(stuck, nowMs), new RegExp(`^Datastore array answers none of its requests: disk db hangs since ${at}\\.`));
  assert.match(withinBounds(db), /But disk db on array is hurt: requests take 7\.9 ms, usually 0\.50 ms\.$/);
});

test("of several disks three are named, and the others counted", () => {
  assert.equal(headline([db, ...others.slice(0, 1)], 2, nowMs), "db and mail are hurt");
  assert.equal(headline([db, ...others], 7, nowMs), "db, mail, web and 4 more are hurt");
});

test("what began on another day says on which", () => {
  const at = nowMs - 3 * 86_400_000;
  assert.equal(since({ ...db, since: at / 1e3 }, nowMs), `since ${day(at)} ${shortClock(at)}`);
});

test("who is hurt comes before what there is to look at", () => {
  const item = { key: "k", tone: "bad" as const, about: "datastore x", text: "", hint: "", link: null };
  const seen = { hurt: [db], count: 1, items: [item], late: 0, lateIsMore: false, nowMs };
  assert.match(verdict(seen).text, /^db: requests take 7\.9 ms/);
  assert.equal(verdict({ ...seen, hurt: [], count: 0 }).text, "1 thing to look at");
  const warning = { ...item, tone: "warn" as const };
  assert.equal(verdict({ ...seen, hurt: [], count: 0, items: [warning] }).text, "No disk is hurt; 1 thing to look at");
  assert.equal(verdict({ ...seen, items: [] }).tone, "warn");
});

test("a disk that is slower than usual says by how much, and for how long", () => {
  const log = { ...db, disk: "log", since: nowMs / 1e3 - 40, response_us: 9900, usual_us: 3300 };
  assert.equal(slower(log, nowMs), "3.0 times its usual 3.3 ms for 40 s");
  assert.equal(slowerLine([log], 1, nowMs), "log is slower than usual: 3.0 times its usual 3.3 ms for 40 s");
  assert.equal(slowerLine([log, log], 2, nowMs), "2 disks are slower than usual");
  const seen = { hurt: [], count: 0, slower: [log], countSlower: 1, items: [], late: 0, lateIsMore: false, nowMs };
  assert.deepEqual(verdict(seen), { tone: "warn", text: "No disk is hurt, but log is slower than usual: 3.0 times its usual 3.3 ms for 40 s" });
  assert.match(verdict({ ...seen, hurt: [db], count: 1 }).text, /^db: requests take/);
});

test("a disk that recovers is not said to be slower by less than once its usual", () => {
  const log = { ...db, disk: "log", since: nowMs / 1e3 - 40, response_us: 1000, usual_us: 1300 };
  assert.equal(slower(log, nowMs), "as quick as usual again, 1.0 ms; it was slower for 40 s");
});

test("what is usual is told, or since when it is learned and what is missing", () => {
  const time = { writes: false, longest: 16_384, response_us: 3300, learned_s: 9_000 };
  const usual = { disk: "db", since: nowMs / 1e3 - 130, needed_s: 300, times: [time, { ...time, writes: true, longest: null, response_us: 500 }], iops: 100 };
  assert.equal(usually(usual), "reads up to 16.0 KiB take 3.3 ms, longer writes 0.50 ms");
  assert.match(learning(usual, nowMs), /^learned since \d\d:\d\d:\d\d$/);
  const young = { ...usual, times: [{ ...time, response_us: null, learned_s: 120 }] };
  assert.equal(usually(young), null);
  assert.match(learning(young, nowMs), /^learned since .*; not known yet: 2 min 00 s of 5 min 00 s of load are seen$/);
  assert.equal(learning({ ...young, since: null, times: [] }, nowMs), "not known: the disk was asked for nothing yet");
});

test("a disk that recovers says so, and one that a policy slows that it is on purpose", () => {
  assert.equal(takes({ ...db, recovers: true, response_us: 600 }), "recovering: requests take 0.60 ms, usually 0.50 ms");
  const held = { ...db, since: nowMs / 1e3 - 40, response_us: 244_000, usual_us: 20_000 };
  assert.equal(slowed(held, nowMs), "requests take 244.0 ms, usually 20.0 ms, on purpose for 40 s");
});
