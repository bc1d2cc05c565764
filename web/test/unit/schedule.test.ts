import assert from "node:assert/strict";
import { test } from "node:test";
import type { Class, Columns, Policy } from "../../src/api/wire.ts";
import { empty } from "../../src/model/timeline.ts";
import { aimOf, commandOf, contradictions, parseGoal, rehearse, rehearsed, type Draft } from "../../src/model/draft.ts";
import { classesOfWeek, dayLine, dayWords, lastDay, nothingPromised, overall, promises, week, weekWords } from "../../src/model/kept.ts";
import { isOpen, minuteWords, overlap, parse, WEEK } from "../../src/model/schedule.ts";

const at = (day: number, hour: number) => day * 1440 + hour * 60;

test("schedules of the manual are read as it says", () => {
  assert.ok(isOpen("Mon-Fri 22:00-06:00", at(4, 23)), "Friday night");
  assert.ok(isOpen("Mon-Fri 22:00-06:00", at(5, 5)), "Saturday morning belongs to Friday");
  assert.ok(!isOpen("Mon-Fri 22:00-06:00", at(5, 23)), "Saturday night");
  assert.ok(isOpen("22:00-06:00", at(6, 23)) && isOpen("22:00-06:00", at(0, 5)), "Sunday night goes on on Monday");
  assert.deepEqual(parse("Sat,Sun"), [{ from: at(5, 0), to: WEEK }]);
  assert.ok(isOpen("Mon,Wed 08:00-12:00", at(0, 9)) && isOpen("Mon,Wed 08:00-12:00", at(2, 9)));
  assert.ok(!isOpen("Mon,Wed 08:00-12:00", at(1, 9)) && !isOpen("Mon,Wed 08:00-12:00", at(0, 13)));
  assert.ok(isOpen("Mon 08:00-12:00, 14:00-18:00", at(0, 15)) && !isOpen("Mon 08:00-12:00, 14:00-18:00", at(1, 15)));
  assert.ok(isOpen("Mon 08:00-12:00, Wed-Thu 20:00-02:00", at(4, 1)));
  assert.ok(isOpen("22:00-24:00", at(0, 23)) && !isOpen("22:00-24:00", at(1, 0)));
  assert.ok(isOpen(null, 0));
});

test("what is no schedule is none", () => {
  for (const wrong of ["", "3-4", "Foo 08:00-12:00", "25:00-26:00", "Mon 08:00", "08:00-08:00"]) assert.equal(parse(wrong), null, wrong);
});

test("two schedules overlap in their first common minute", () => {
  assert.equal(overlap("Sat,Sun", "06:00-22:00"), at(5, 6));
  assert.equal(minuteWords(at(5, 6)), "Sat 06:00");
  assert.equal(overlap("Mon 08:00-12:00", "Tue 08:00-12:00"), null);
  assert.equal(overlap(null, null), 0);
});

test("a goal needs its unit, and may not stop a guest", () => {
  assert.deepEqual(["20M", "100iops", "5ms", "20M/s", "20", "x"].map(parseGoal), [{ bytes_per_second: 20 * 2 ** 20 }, { iops: 100 }, { response_ms: 5 }, { bytes_per_second: 20 * 2 ** 20 }, null, null]);
  const draft: Draft = { class: "oltp", kind: "limit", goal: "1iops", tolerance: "10%", schedule: "" };
  for (const goal of ["1iops", "100K", "11s", "20"]) assert.ok("wrong" in aimOf({ ...draft, goal }), goal);
  assert.ok("wrong" in aimOf({ ...draft, kind: "cruise", goal: "5ms", tolerance: "60%" }));
  assert.equal(commandOf({ ...draft, kind: "cruise", goal: "5ms", schedule: "Sat,Sun" }), "sterna policy cruise oltp 5ms --tolerance 10% --schedule Sat,Sun");
});

const oltp = { name: "oltp", built_in: false, reservation: { iops: 500 }, disks: [], in_force: { reservation: { iops: 500 }, shares: 1000 } } as unknown as Class;
const cruise = (id: number, schedule: string | null) => ({ id, class: "oltp", aim: { kind: "cruise", goal: { response_ms: 5 }, tolerance_percent: 20 }, schedule, standing: "binds" }) as Policy;

test("contradictions are told before anything is saved", () => {
  const draft: Draft = { class: "oltp", kind: "limit", goal: "400iops", tolerance: "20%", schedule: "" };
  assert.match(contradictions(draft, oltp, [])[0] ?? "", /below the reservation/);
  assert.deepEqual(contradictions({ ...draft, goal: "600iops" }, oltp, []), []);
  const both = contradictions({ ...draft, kind: "cruise", goal: "4ms", schedule: "Sat,Sun" }, oltp, [cruise(3, "06:00-22:00")]);
  assert.match(both[0] ?? "", /policy 3 holds too, on Sat 06:00/);
  assert.deepEqual(contradictions({ ...draft, kind: "cruise", goal: "4ms", schedule: "Sat,Sun" }, oltp, [cruise(3, "Mon-Fri")]), []);
});

function day(service: (row: number) => number | null): Columns {
  const made = empty();
  for (let row = 0; row < 120; row += 1) {
    made.start_ms.push(row * 60_000);
    made.end_ms.push((row + 1) * 60_000);
    for (const name of ["read_iops", "write_iops", "read_bytes_s", "write_bytes_s", "p50_us", "p99_us", "max_us", "outstanding"] as const) made[name].push(100);
    made.queue_us.push(service(row) === null ? null : 0);
    made.service_us.push(service(row));
  }
  return made;
}

const nowMs = Date.UTC(2026, 10, 24, 12, 30);
const recorded = (policy: number | null, hoursAgo: number, kept_s: number, missed_s: number) => ({ policy, at: nowMs / 1e3 - 1800 - hoursAgo * 3600, kept_s, missed_s, quiet_s: 10 });

test("an hour is kept, missed, or nothing was asked in it", () => {
  const its = { class: "oltp", hours: [recorded(1, 40, 0, 9), recorded(1, 2, 96, 4), recorded(1, 1, 90, 10), recorded(1, 0, 0, 0)] };
  const [row, ...more] = lastDay(its, promises({ ...oltp, reservation: null } as Class, [cruise(1, null)]), nowMs);
  assert.deepEqual(more, []);
  assert.deepEqual(row?.hours.map((hour) => [hour.verdict, hour.part]), [["kept", 0.96], ["missed", 0.9], ["quiet", null]]);
});

test("the hours are of the same records as the week, with those of promises that were removed", () => {
  const its = { class: "oltp", hours: [recorded(null, 0, 50, 50), recorded(1, 0, 0, 100), recorded(2, 0, 100, 0), recorded(3, 0, 80, 20)] };
  const rows = lastDay(its, promises(oltp, [cruise(1, null)]), nowMs);
  assert.deepEqual(rows.map((row) => [row.promise.split(" ").slice(-2).join(" "), row.hours[0]?.part]), [["(policy 1)", 0], ["500 IO/s", 0.5], ["were removed", 0.9]]);
  assert.equal(week(its.hours, nowMs, "UTC").at(-1)?.part, 230 / 400, "all of them together");
  assert.deepEqual(dayLine(rows), { tone: "warn", text: "the last day: a promise was missed in 1 of 1 hour with requests" });
  assert.deepEqual(dayLine(rows.slice(0, 0)), null);
});

test("the hours of a floor are of a promise that is there", () => {
  const its = { class: "oltp", hours: [recorded(null, 0, 50, 50), recorded(1, 0, 100, 0)] };
  const floored = { ...cruise(1, null), aim: { kind: "cruise", goal: { response_ms: 5 }, tolerance_percent: 20, floor: { iops: 300 } } } as Policy;
  const free = { ...oltp, reservation: null } as Class;
  assert.deepEqual(lastDay(its, promises(free, [floored]), nowMs).map((row) => row.promise.split(" ").slice(-4).join(" ")), ["20 % (policy 1)", "floor of policy 1"]);
  assert.deepEqual(promises(oltp, [floored]).map((one) => one.text).slice(1), ["reservation of 500 IO/s"]);
  assert.deepEqual(promises(free, [{ ...floored, class: "bulk" }]), [], "it is another class's");
});

test("a draft is held against what was measured", () => {
  const draft: Draft = { class: "oltp", kind: "limit", goal: "150iops", tolerance: "10%", schedule: "" };
  assert.deepEqual(rehearse(draft, day(() => 1000), "UTC"), { windows: 120, beyond: 120 });
  assert.deepEqual(rehearse({ ...draft, goal: "250iops" }, day(() => 1000), "UTC"), { windows: 120, beyond: 0 });
  assert.deepEqual(rehearse({ ...draft, schedule: "Thu 01:00-02:00" }, day(() => 1000), "UTC"), { windows: 60, beyond: 60 });
});

test("a week has seven days, each kept, missed, quiet or without data", () => {
  const now = Date.UTC(2026, 10, 24, 12);
  const hour = (daysAgo: number, kept_s: number, missed_s: number) => ({ policy: 1, at: now / 1e3 - daysAgo * 86_400, kept_s, missed_s, quiet_s: 10 });
  const hours = [hour(9, 0, 9), hour(3, 90, 0), hour(3, 90, 20), hour(2, 0, 0), hour(0, 96, 4)];
  const days = week(hours, now, "UTC");
  assert.deepEqual(days.map((one) => one.verdict), ["none", "none", "none", "missed", "quiet", "none", "kept"]);
  assert.deepEqual([days[0]?.day, days[6]?.day, days[6]?.part, days[3]?.part], ["2026-11-18", "2026-11-24", 0.96, 0.9]);
  assert.deepEqual(overall(days, hours.slice(1)), { part: 276 / 300, verdict: "missed", kept: 1, asked: 2 });
  assert.equal(weekWords(overall(days, hours.slice(1))), "kept on 1 of 2 days, 92%");
  assert.deepEqual([days[6], days[3], days[4], days[0]].map((one) => dayWords(one!)), ["kept 96%", "not kept 90%", "not asked", "no data"]);
  assert.equal(dayWords({ verdict: "kept", part: 0.99996 }), "kept 99.9%", "a miss is not rounded away");
  assert.deepEqual(overall(week([], now, "UTC"), []), { part: null, verdict: "none", kept: 0, asked: 0 });
});

test("a week in which the clock is set back has seven days, too", () => {
  const days = week([], Date.UTC(2026, 9, 27, 0, 30), "Europe/Berlin").map((one) => one.day);
  assert.deepEqual(days, ["2026-10-21", "2026-10-22", "2026-10-23", "2026-10-24", "2026-10-25", "2026-10-26", "2026-10-27"]);
});

test("a limit that was met says that it slows, and a target whom", () => {
  const draft: Draft = { class: "gold", kind: "limit", goal: "20M", tolerance: "10%", schedule: "" };
  const some = { windows: 100, beyond: 19 };
  assert.match(rehearsed(draft, some), /class gold did more than this limit permits in 19% .*it would have been slower/);
  assert.match(rehearsed({ ...draft, goal: "5ms" }, some), /sooner than this limit permits in 19% .*slower/);
  assert.match(rehearsed({ ...draft, kind: "cruise", goal: "5ms" }, some), /missed this target in 19% .*slowed the other classes/);
  assert.match(rehearsed(draft, { windows: 100, beyond: 0 }), /would have changed nothing/);
  assert.match(rehearsed(draft, { windows: 1000, beyond: 1 }), /less than 1%/);
  assert.match(rehearsed(draft, { windows: 0, beyond: 0 }), /asked for nothing/);
});

test("a promise that was removed keeps its week", () => {
  const hour = { at: 0, kept_s: 3600, missed_s: 0, quiet_s: 0 };
  const [gold, bulk] = [{ class: "gold", hours: [hour] }, { class: "bulk", hours: [] }];
  assert.deepEqual(classesOfWeek([], [bulk, gold]), [gold]);
  assert.deepEqual(classesOfWeek([bulk], [gold]), [bulk, gold], "what is promised now is shown without an hour, too");
  assert.match(nothingPromised([gold]), /^No class is promised anything now\. The week above is of promises that have been removed\.$/);
  assert.match(nothingPromised([]), /nothing can be kept or missed/);
});
