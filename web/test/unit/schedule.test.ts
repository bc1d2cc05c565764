import assert from "node:assert/strict";
import { test } from "node:test";
import type { Class, Columns, Policy } from "../../src/api/wire.ts";
import { empty } from "../../src/model/timeline.ts";
import { aimOf, commandOf, contradictions, parseGoal, rehearse, type Draft } from "../../src/model/draft.ts";
import { hours, promises } from "../../src/model/kept.ts";
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

test("an hour is kept, missed, or nothing was asked in it", () => {
  const promise = promises(oltp, [cruise(1, null)])[0]!;
  assert.deepEqual(hours(day((row) => (row < 60 ? 4000 : 9000)), promise, "UTC").map((hour) => hour.verdict), ["kept", "missed"]);
  assert.deepEqual(hours(day(() => null), promise, "UTC").map((hour) => hour.verdict), ["quiet", "quiet"]);
  assert.equal(hours(day((row) => (row === 3 ? 9000 : 4000)), promise, "UTC")[0]?.verdict, "kept");
});

test("nothing is promised while a schedule is closed", () => {
  // 1970-01-01 was a Thursday.
  const promise = promises(oltp, [cruise(1, "Thu 01:00-02:00")])[0]!;
  assert.deepEqual(hours(day(() => 9000), promise, "UTC").map((hour) => hour.verdict), ["none", "missed"]);
});

test("less than was reserved is a miss only if requests waited", () => {
  const reservation = promises(oltp, []).at(-1)!;
  const window = { iops: 200, bytes: 0, meanUs: 1000, queueUs: 0 };
  assert.equal(reservation.held(window), null);
  assert.equal(reservation.held({ ...window, queueUs: 800 }), false);
  assert.equal(reservation.held({ ...window, iops: 600 }), true);
});

test("a draft is held against what was measured", () => {
  const draft: Draft = { class: "oltp", kind: "limit", goal: "150iops", tolerance: "10%", schedule: "" };
  assert.deepEqual(rehearse(draft, day(() => 1000), "UTC"), { windows: 120, beyond: 120 });
  assert.deepEqual(rehearse({ ...draft, goal: "250iops" }, day(() => 1000), "UTC"), { windows: 120, beyond: 0 });
  assert.deepEqual(rehearse({ ...draft, schedule: "Thu 01:00-02:00" }, day(() => 1000), "UTC"), { windows: 60, beyond: 60 });
});
