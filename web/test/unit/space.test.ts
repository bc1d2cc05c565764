import assert from "node:assert/strict";
import { test } from "node:test";
import type { Datastore, Disk, JudgedDatastore } from "../../src/api/wire.ts";
import { attention } from "../../src/model/attention.ts";
import { disksOn, fills, helps, isPressing, remedy, shared, stays } from "../../src/model/space.ts";

const GIB = 2 ** 30;
const store = (name: string, free: number, more = {}) => ({ name, capacity: 1000 * GIB, free: free * GIB, maintenance: false, problem: null, ...more }) as Datastore;
const disk = (name: string, gib: number, datastore = "slow") => ({ name, datastore, size: gib * GIB, allocated: gib * GIB, migration: null }) as Disk;
const judged = (datastore: string, more = {}) => ({ datastore, load: { taken: 0.9, p95_us: null }, outstanding: 0, over: [], settling: false, maintenance: false, shares_room_with: [], trend: null, ...more }) as JudgedDatastore;

test("a datastore says how fast it fills up, and when it is full", () => {
  const trend = { bytes_per_second: (2 * GIB) / 3600, over_s: 10_800, full_in_s: 34_200 };
  assert.equal(fills(trend), "fills up by 2.00 GiB an hour (over the last 3 h 00 min): full in 9 h 30 min");
  assert.equal(fills({ ...trend, bytes_per_second: -GIB / 3600, full_in_s: null }), "empties by 1.00 GiB an hour (over the last 3 h 00 min)");
  assert.equal(fills({ ...trend, bytes_per_second: 3, full_in_s: null }), "neither fills up nor empties (over the last 3 h 00 min)");
  assert.equal(fills(null), null);
  assert.ok(isPressing(judged("slow", { trend })) && !isPressing(judged("slow")));
});

test("a datastore with disks of VMs is not empty", () => {
  const of = (disks: number, vm_disks?: string[]) => ({ disks, vm_disks });
  assert.deepEqual([of(3), of(3, []), of(0, ["web/vda", "web/vdb"])].map(disksOn), ["3", "3", "0, 2 of VMs"]);
  assert.equal(stays(of(1)), "1 disk stays there and served");
  assert.equal(stays(of(0, ["web/vda", "web/vdb"])), "0 disks stay there and served, and 2 disks of VMs, which no plan moves");
});

test("datastores on one file system say so", () => {
  assert.equal(shared({ shares_room_with: ["old"] }), "shares the file system of old: what one takes is gone for all");
  assert.match(shared({ shares_room_with: ["a", "b", "c"] })!, /of a, b and c:/);
  assert.equal(shared({ shares_room_with: [] }), null);
});

test("the smallest disk that is enough goes where there is most room, and not to what shares the room", () => {
  const datastores = [store("slow", 100), store("twin", 900), store("fast", 600), store("away", 950, { problem: "gone" }), store("shut", 950, { maintenance: true })];
  const places = { datastores, disks: [disk("small", 50), disk("right", 120), disk("large", 300), disk("there", 1, "fast")], judged: [judged("slow", { shares_room_with: ["twin"] })], space: 0.8 };
  assert.deepEqual(remedy("slow", places), { disk: "right", bytes: 120 * GIB, to: "fast", isEnough: true });
  const little = { ...places, disks: [disk("small", 50)] };
  assert.equal(remedy("slow", little)?.isEnough, false);
  assert.equal(remedy("slow", { ...places, disks: [disk("huge", 800)] }), null);
  const known = new Map(places.disks.map((one) => [one.name, one]));
  assert.equal(helps("slow", { ...places, disks: known.values() }).link, "#/whatif?disk=right&to=fast");
});

test("where no disk fits elsewhere, the command that says why is one that exists", () => {
  const places = { datastores: [store("slow", 100), store("fast", 600)], disks: [disk("huge", 800)], judged: [judged("slow")], space: 0.8 };
  const help = helps("slow", places);
  assert.match(help.text, /^no disk of it fits on another datastore; .*: `sterna plan evacuate slow`$/);
  assert.equal(help.link, "#/plans");
  const leaves = { ...disk("huge", 800), migration: 4 } as Disk;
  assert.match(helps("slow", { ...places, disks: [leaves] }).text, /each of its disks is being moved already/);
});

test("a full datastore that holds no disk is not told that no disk of it fits elsewhere", () => {
  const places = { datastores: [store("tiny", 10), store("fast", 600)], disks: [disk("there", 1, "fast")], judged: [judged("tiny")], space: 0.8 };
  const help = helps("tiny", places);
  assert.equal(help.text, "none of Sterna's disks is on it: other files, or copies that are on their way to it, take its room");
  assert.equal(help.link, "#/datastore/tiny");
});

test("a full file system is relieved by the disks of all its datastores", () => {
  const twins = [judged("first", { shares_room_with: ["second"] }), judged("second", { shares_room_with: ["first"] })];
  const places = { datastores: [store("first", 100), store("second", 100), store("fast", 600)], disks: [disk("db", 120, "second")], judged: twins, space: 0.8 };
  assert.deepEqual(remedy("first", places), { disk: "db", bytes: 120 * GIB, to: "fast", isEnough: true });
  assert.match(helps("first", places).text, /^move db/);
  const huge = { ...places, disks: [disk("db", 800, "second")] };
  assert.match(helps("first", huge).text, /`sterna plan evacuate second`$/);
});

test("room that is gone within a day is something to look at before the bound is reached", () => {
  const trend = { bytes_per_second: GIB, over_s: 3600, full_in_s: 3600 };
  const items = attention([], [], [judged("slow", { trend }), judged("fast")], 0, new Map(), (name) => ({ text: `plan for ${name}`, link: "#/plans" }));
  assert.deepEqual(items.map((item) => item.about), ["datastore slow"]);
  assert.match(items[0]!.text, /90% of its room is taken; fills up by .*: full in 1 h 00 min/);
  assert.equal(items[0]!.remedy?.link, "#/plans");
});

test("what is full first comes first, once for each file system", () => {
  const trend = (full_in_s: number) => ({ bytes_per_second: GIB, over_s: 3600, full_in_s });
  const all = [
    judged("old", { trend: trend(2_300), over: ["space", "latency"], shares_room_with: ["new"] }),
    judged("new", { trend: trend(2_100), over: ["space"], shares_room_with: ["old"] }),
    judged("small", { trend: trend(1_300) }),
    judged("even", { over: ["space"] }),
  ];
  const items = attention([{ about: "policy 3", message: "its target is out of reach", hint: "" }], [], all, 20_000, new Map());
  assert.deepEqual(items.map((item) => [item.about, item.tone]), [
    ["datastore small", "bad"], ["datastore new", "bad"], ["policy 3", "warn"], ["datastore old", "warn"], ["datastore even", "warn"],
  ]);
  const old = items.find((item) => item.about === "datastore old")!;
  assert.match(old.text, /^p95/);
  assert.doesNotMatch(old.text, /full in/, "that is said of new");
});
