import assert from "node:assert/strict";
import { test } from "node:test";
import { bytes, count, grouped, iops, mib, ms, parseBytes, parsePercent, parseResponse, percent, rate, response, span } from "../../src/model/units.ts";

test("sizes are written as the command line writes them", () => {
  const written = [0, 512, 1023, 65_536, 1_567_621_120, 999.6 * 1024, 2 ** 50].map(bytes);
  assert.deepEqual(written, ["0 B", "512 B", "1023 B", "64.0 KiB", "1.46 GiB", "0.98 MiB", "1.00 PiB"]);
  assert.equal(rate(210 * 2 ** 20), "210 MiB/s");
  assert.equal(rate(-1), "0 B/s");
});

test("spans have two units at most", () => {
  const written = [0.85, 4, 47.2, 200, 7500, 273_600].map(span);
  assert.deepEqual(written, ["850 ms", "4.0 s", "47 s", "3 min 20 s", "2 h 05 min", "3 d 04 h"]);
});

test("response times are in milliseconds", () => {
  assert.deepEqual([850, 1240, 2.5e6, null].map(response), ["0.85 ms", "1.2 ms", "2.5 s", "-"]);
});

test("milliseconds of a column fit six places", () => {
  for (const us of [0, 85, 99.6, 9996, 99_960, 9e8]) assert.ok(ms(us).length <= 6, ms(us));
  assert.deepEqual([ms(85), ms(853), ms(0), ms(undefined)], ["0.085", "0.85", "0", "-"]);
});

test("requests per second stay short", () => {
  assert.deepEqual([0, 0.4, 9.94, 9.96, 1249.7, 12_340, 250_000, null].map(iops), ["0", "0.4", "9.9", "10", "1250", "12.3k", "250k", "-"]);
  assert.equal(mib(6.5 * 2 ** 20), "6.5");
});

test("parts, counts and large numbers are written plainly", () => {
  assert.deepEqual([0.97, 0.982, 1].map(percent), ["97%", "98.2%", "100%"]);
  assert.deepEqual([count(1, "disk"), count(2, "disk"), count(3, "policy", "policies")], ["1 disk", "2 disks", "3 policies"]);
  assert.equal(grouped(1_482_001), "1,482,001");
});

test("bytes are read as people write them", () => {
  assert.deepEqual(["512", "64K", "10G", "1.5M", "200 MiB"].map(parseBytes), [512, 65_536, 10 * 2 ** 30, 1_572_864, 200 * 2 ** 20]);
  assert.deepEqual(["", "M", "-1", "10X", "1e9"].map(parseBytes), [null, null, null, null, null]);
});

test("a response time needs its unit", () => {
  assert.deepEqual(["5ms", "0.5 s", "800us", "5", "0ms", "fast"].map(parseResponse), [5000, 500_000, 800, null, null, null]);
});

test("a percentage is above 0 and at most 100", () => {
  assert.deepEqual(["97%", "97.5", "100", "0", "101%", "most", ""].map(parsePercent), [0.97, 0.975, 1, null, null, null, null]);
});
