import assert from "node:assert/strict";
import { test } from "node:test";
import { moments, points, readRange, scaled, writeRange, zoomed } from "../../src/model/ranges.ts";
import { ago, ahead, axisLabels, clock, everywhere, minuteOfWeek, moment } from "../../src/model/time.ts";

test("a range that is written to the address is read again", () => {
  const params = (values: Record<string, string | null>) => new URLSearchParams(Object.entries(values).filter((one): one is [string, string] => one[1] !== null));
  for (const range of [{ lastS: 600 }, { lastS: 3600 }, { fromMs: 1000, toMs: 9000 }]) assert.deepEqual(readRange(params(writeRange(range))), range);
  assert.deepEqual(readRange(new URLSearchParams("from=9&to=1")), { lastS: 600 });
  assert.deepEqual(readRange(new URLSearchParams("span=never")), { lastS: 600 });
});

test("a closer look is never too close, and may be dragged leftwards", () => {
  assert.deepEqual(zoomed(9000, 1000), { fromMs: 1000, toMs: 9000 });
  assert.equal(zoomed(1000, 1500), null);
});

test("what is live stays live when it is scaled", () => {
  assert.deepEqual(scaled({ lastS: 600 }, 2, 0), { lastS: 3600 });
  assert.deepEqual(scaled({ lastS: 86_400 }, 2, 0), { lastS: 86_400 });
  assert.deepEqual(scaled({ fromMs: 0, toMs: 10_000 }, 0.5, 99_999), { fromMs: 2500, toMs: 7500 });
  assert.deepEqual(moments({ lastS: 10 }, 50_000), { fromMs: 40_000, toMs: 50_000 });
});

const AT = 1_795_205_558_000;

test("moments are told in the zone that is asked for", () => {
  assert.equal(clock(AT, "UTC"), "20:12:38");
  assert.equal(clock(AT, "Europe/Berlin"), "21:12:38");
  assert.equal(moment(AT, AT + 1000, "UTC"), "20:12:38");
  assert.equal(moment(AT, AT + 86_400_000, "UTC"), "2026-11-20 20:12");
  assert.match(everywhere(AT, "Europe/Berlin"), /21:12:38 Europe\/Berlin/);
  assert.match(everywhere(AT, "Not/AZone"), /UTC/);
});

test("how long ago and how far ahead have two units at most", () => {
  assert.deepEqual([ago(AT, AT), ago(AT, AT + 47_000), ago(AT, AT + 200_000)], ["just now", "47 s ago", "3 min 20 s ago"]);
  assert.deepEqual([ahead(AT, AT), ahead(AT + 7_500_000, AT)], ["now", "in 2 h 05 min"]);
});

test("an axis tells the day where it changes", () => {
  const midnight = 1_795_219_200;
  assert.deepEqual(axisLabels([midnight - 3600, midnight, midnight + 3600], 3600, "UTC"), ["23:00", "11-21\n00:00", "01:00"]);
  assert.deepEqual(axisLabels([midnight + 5], 5, "UTC"), ["00:00:05"]);
});

test("the minute of the week is that of the zone", () => {
  assert.equal(minuteOfWeek(0, "UTC"), 3 * 1440);
  assert.equal(minuteOfWeek(0, "Europe/Berlin"), 3 * 1440 + 60);
});

test("a day has fewer points than an hour", () => {
  assert.equal(points({ lastS: 86_400 }), 225);
  assert.equal(points({ fromMs: 0, toMs: 86_400_000 }), 225);
  assert.equal(points({ lastS: 3_600 }), 600);
});
