// What the requests of a disk should take at most, and whose word that is: the guard of its
// move, the target of its class, or the bound of Storage DRS for its datastore.
import { get } from "../api/client.ts";
import type { Policy, StorageDrs } from "../api/wire.ts";
import type { Bound } from "../model/late.ts";
import { inventory } from "./inventory.svelte.ts";
import { live } from "./live.svelte.ts";

let targets = $state.raw<Map<string, Bound>>(new Map());
let storage = $state.raw<StorageDrs | null>(null);
let guards = $derived.by(() => {
  const found = new Map<string, Bound>();
  for (const move of live.migrations) {
    const us = move.guard?.asked.p99_us;
    if (us && !move.ended) found.set(move.disk, { us, of: "p99", whose: `the guard of its move ${move.id}`, promised: true });
  }
  return found;
});
let latency = $derived(storage?.settings.latency_us ?? null);

export const storageDrs = {
  get value() {
    return storage;
  },
};

/** The bound of a disk or a datastore, if there is one. */
export function bound(name: string, by: "disk" | "class" | "datastore"): Bound | null {
  if (by === "class") return targets.get(name) ?? null;
  if (by === "disk") {
    const its = guards.get(name) ?? targets.get(inventory.disk(name)?.class ?? "");
    if (its) return its;
  }
  return latency === null ? null : { us: latency, of: "p95", whose: "the bound of Storage DRS", promised: false };
}

/** Asks for targets and bounds again. */
export async function refreshBounds(): Promise<void> {
  try {
    const [policies, drs] = await Promise.all([get<Policy[]>("/v1/policies"), get<StorageDrs>("/v1/storage-drs")]);
    const found = new Map<string, Bound>();
    for (const policy of policies) {
      if (policy.standing === "closed" || policy.aim.kind !== "cruise" || !("response_ms" in policy.aim.goal)) continue;
      const us = policy.aim.goal.response_ms * 1e3 * (1 + policy.aim.tolerance_percent / 100);
      found.set(policy.class, { us, of: "mean", whose: `the target of class ${policy.class} (policy ${policy.id})`, promised: true });
    }
    targets = found;
    storage = drs;
  } catch {
    // The banner says that the daemon is away; what was known stays.
  }
}
