import assert from "node:assert/strict";
import { test } from "node:test";
import type { VmDisk } from "../../src/api/wire.ts";
import { doneByQemu } from "../../src/model/vms.ts";

const disk = (iops: number, its: string | null = null) => ({ disk: its, now: { iops, bytes_per_second: iops * 10, latency_us: null, window_s: 0.25 } }) as VmDisk;

test("what QEMU serves of a VM is the sum of the disks that are not Sterna's", () => {
  assert.deepEqual(doneByQemu([disk(100), disk(20), disk(5_000, "web-vda")]), { iops: 120, bytes: 1_200 });
});

test("nothing is said of disks of which QEMU tells nothing", () => {
  assert.equal(doneByQemu([{ disk: null, now: null } as VmDisk, disk(9, "web-vda")]), null);
});
