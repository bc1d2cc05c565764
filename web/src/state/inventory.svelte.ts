// The disks, classes and datastores that there are: names and places, no figures. Asked for
// again when something may have changed.
import { get } from "../api/client.ts";
import type { Class, Datastore, Disk } from "../api/wire.ts";

let disks = $state.raw<Map<string, Disk>>(new Map());
let classes = $state.raw<Class[]>([]);
let datastores = $state.raw<Datastore[]>([]);
let at = $state<number | null>(null);
let running = false;

export const inventory = {
  get disks() {
    return disks;
  },
  get classes() {
    return classes;
  },
  get datastores() {
    return datastores;
  },
  /** When it was asked for, by the browser's steady clock. */
  get at() {
    return at;
  },
  disk(name: string): Disk | undefined {
    return disks.get(name);
  },
  class(name: string | null | undefined): Class | undefined {
    return classes.find((one) => one.name === name);
  },
};

/** Asks for everything again. */
export async function refresh(): Promise<void> {
  if (running) return;
  running = true;
  try {
    const [all, kinds, places] = await Promise.all([
      get<Disk[]>("/v1/disks"),
      get<Class[]>("/v1/classes"),
      get<Datastore[]>("/v1/datastores"),
    ]);
    disks = new Map(all.map((disk) => [disk.name, disk]));
    classes = kinds;
    datastores = places;
    at = performance.now();
  } catch {
    // The banner says that the daemon is away; what was known stays.
  } finally {
    running = false;
  }
}
