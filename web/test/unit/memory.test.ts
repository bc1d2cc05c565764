import assert from "node:assert/strict";
import { test } from "node:test";
import type { HostMemory, MemoryTop, VmMemory } from "../../src/api/wire.ts";
import { hostSays, rows, vmSays, wakesIn } from "../../src/model/memory.ts";

const GIB = 2 ** 30;
const vm = (more: Partial<VmMemory>) => ({ vm: "db", state: "awake", size: GIB, resident: GIB, out: 0, work: null, problem: null, ...more }) as VmMemory;

test("a host says what it lacks before it says its state", () => {
  assert.deepEqual(hostSays({ state: "high", short: 0 }), { tone: "ok", text: "the host has its reserve" });
  assert.equal(hostSays({ state: "hard", short: 0 }).tone, "warn");
  assert.deepEqual(hostSays({ state: "low", short: GIB }), { tone: "bad", text: "1.00 GiB are lacking that no VM here gives" });
});

test("a VM that does something says how far it is", () => {
  assert.deepEqual(vmSays(vm({ state: "falling-asleep", work: { kind: "sleep", total: 2 * GIB, done: GIB, bytes_per_s: GIB, eta_s: 1, held: false } })), { tone: "busy", text: "falling asleep: 1.00 GiB of 2.00 GiB, 1.0 s left" });
  assert.deepEqual(vmSays(vm({ state: "asleep" })), { tone: "quiet", text: "asleep" });
  assert.deepEqual(vmSays(vm({ size: null, problem: "gone" })), { tone: "bad", text: "not known" });
  assert.equal(wakesIn(vm({})), "-");
  assert.equal(wakesIn(vm({ wake_hot_s: 0.77, wake_all_s: 3.4 })), "770 ms, all in 3.4 s");
});

test("what the kernel counts is newer, but while a VM wakes", () => {
  const top = { vms: [{ vm: "db", resident: 5, out: 7, faults_per_s: 3 }] } as unknown as MemoryTop;
  const of = (one: VmMemory) => rows({ vms: [one] } as HostMemory, top)[0]!;
  assert.deepEqual([of(vm({})).out, of(vm({})).faults], [7, 3]);
  const waking = vm({ state: "waking", out: 2, work: { kind: "wake", total: 9, done: 7, bytes_per_s: null, eta_s: null, held: false } });
  assert.equal(of(waking).out, 2);
  assert.equal(rows({ vms: [vm({ out: null })] } as HostMemory, null)[0]!.out, null);
});
