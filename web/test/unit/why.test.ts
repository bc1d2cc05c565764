import assert from "node:assert/strict";
import { test } from "node:test";
import type { Load } from "../../src/api/wire.ts";
import { underWay } from "../../src/model/late.ts";
import { why } from "../../src/model/why.ts";

const MIB = 1_048_576;

function load(bytes: number, serviceMs: number, queueMs = 0): Load {
  const side = (bytes_per_second: number) => ({ iops: bytes_per_second > 0 ? 40 : 0, bytes_per_second, response_us: null });
  const times = { queue_us: queueMs * 1e3, service_us: serviceMs * 1e3, p50_us: serviceMs * 1e3, p95_us: serviceMs * 2e3, p99_us: serviceMs * 3e3, max_us: serviceMs * 4e3 };
  return { window_s: 1, read: side(bytes), write: side(0), flushes: 0, outstanding: 1, in_flight: 1, ...times };
}

const bound = { us: 20_000, of: "p95" as const, whose: "the bound of Storage DRS", promised: false };

test("a disk that is late names the neighbour that has most of the bytes", () => {
  const said = why({ load: load(MIB / 4, 130), bound, neighbour: { name: "web", load: load(9 * MIB, 200) } });
  assert.equal(said.tone, "quiet");
  assert.match(said.because, /web, on the same datastore, transfers 9\.00 MiB\/s: 97% of the bytes of these two disks/);
});

test("a disk within its bound, or with a quiet neighbour, names nobody", () => {
  const loud = { name: "web", load: load(9 * MIB, 1) };
  assert.doesNotMatch(why({ load: load(MIB, 1), bound, neighbour: loud }).because, /web/);
  const quiet = { name: "web", load: load(MIB / 2, 1) };
  assert.doesNotMatch(why({ load: load(MIB, 130), bound, neighbour: quiet }).because, /web/);
});

test("of a disk that hangs, what is under way is what hangs, wherever it is told", () => {
  const stuck = { ...load(0, 0), p99_us: null, outstanding: 0, in_flight: 6 };
  assert.match(why({ load: stuck }).because, /^6 requests are under way/);
  assert.equal(underWay(stuck), "6");
  assert.equal(underWay({ ...load(MIB, 1), outstanding: 2.5, in_flight: 6 }), "2.5", "while some are answered, the mean");
});
