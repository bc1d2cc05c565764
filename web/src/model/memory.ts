// Memory in words: how short the host is, and what a VM does.
import type { HostMemory, MemoryTop, VmMemory } from "../api/wire.ts";
import { bytes, span } from "./units.ts";
import type { Tone } from "./words.ts";

/** How the host is, in one line. */
export function hostSays(host: Pick<HostMemory, "state" | "short">): { tone: Tone; text: string } {
  if (host.short > 0) return { tone: "bad", text: `${bytes(host.short)} are lacking that no VM here gives` };
  switch (host.state) {
    case "high":
      return { tone: "ok", text: "the host has its reserve" };
    case "soft":
      return { tone: "quiet", text: "state soft: less than the reserve is available" };
    case "hard":
      return { tone: "warn", text: "state hard: less than 64 % of the reserve is available" };
    case "low":
      return { tone: "bad", text: "state low: less than 32 % of the reserve is available" };
  }
}

/** What a VM does with its memory, and how far it is. */
export function vmSays(vm: VmMemory): { tone: Tone; text: string } {
  const word = vm.state.replaceAll("-", " ");
  if (vm.problem && vm.size === null) return { tone: "bad", text: "not known" };
  if (!vm.work) return { tone: vm.state === "awake" ? "ok" : "quiet", text: word };
  const { done, total, eta_s: eta } = vm.work;
  const left = typeof eta === "number" && done < total ? `, ${span(eta)} left` : "";
  return { tone: "busy", text: `${word}: ${bytes(done)} of ${bytes(total)}${left}` };
}

/** How long a wake would take: what is needed at once, and all. */
export function wakesIn(vm: VmMemory): string {
  if (typeof vm.wake_hot_s !== "number" || typeof vm.wake_all_s !== "number") return "-";
  return `${span(vm.wake_hot_s)}, all in ${span(vm.wake_all_s)}`;
}

/** A VM with what the kernel counts of it, which is newer. */
export interface Row {
  vm: VmMemory;
  resident: number | null;
  out: number | null;
  faults: number | null;
}

/** The VMs that the daemon knows, in its order, each with what the kernel counts. */
export function rows(host: HostMemory | null, top: MemoryTop | null): Row[] {
  const counted = new Map((top?.vms ?? []).map((one) => [one.vm, one]));
  return (host?.vms ?? []).map((vm) => {
    const its = counted.get(vm.vm);
    // While a VM wakes, the kernel counts as out what is back.
    const isWaking = vm.work?.kind === "wake";
    return { vm, resident: vm.resident ?? its?.resident ?? null, out: (isWaking ? vm.out : its?.out) ?? vm.out ?? null, faults: its?.faults_per_s ?? null };
  });
}
