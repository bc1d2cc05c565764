// Something that is asked for again and again while a screen shows it: each 2 s, unless the
// tab is hidden or the daemon is away.
import { untrack } from "svelte";
import { Refusal } from "../api/client.ts";
import { live } from "./live.svelte.ts";

/** How often is asked. Figures are grey after 3 s. */
export const EVERY_MS = 2_000;

export interface Polled<T> {
  readonly value: T | null;
  /** When the answer came, by the daemon's clock. */
  readonly at: number | null;
  readonly error: Refusal | null;
  /** Asks at once. */
  now(): Promise<void>;
}

/**
 * Asks as long as the component lives. What `ask` reads reactively decides what is asked for:
 * if that changes, the old answer is dropped. `null` asks for nothing.
 */
export function polled<T>(ask: () => (() => Promise<T>) | null, everyMs: number = EVERY_MS): Polled<T> {
  let value = $state.raw<T | null>(null);
  let at = $state<number | null>(null);
  let error = $state.raw<Refusal | null>(null);
  let run = 0;
  let busy = false;

  async function once(ask: () => Promise<T>, mine: number): Promise<void> {
    if (busy) return;
    busy = true;
    try {
      const found = await ask();
      if (mine !== run) return;
      value = found;
      at = live.now;
      error = null;
    } catch (failed) {
      if (mine === run && failed instanceof Refusal && failed.status !== 0) error = failed;
    } finally {
      busy = false;
    }
  }

  let current: (() => Promise<T>) | null = null;
  $effect(() => {
    const wanted = ask();
    // A daemon that was restarted is asked at once.
    void live.generation;
    run += 1;
    const mine = run;
    busy = false;
    value = null;
    at = null;
    error = null;
    current = wanted;
    if (!wanted) return;
    // What an answer is made of is no reason to ask again.
    untrack(() => void once(wanted, mine));
    const timer = setInterval(() => {
      if (!document.hidden && live.awaySince === null) void once(wanted, mine);
    }, everyMs);
    return () => {
      clearInterval(timer);
      run += 1;
    };
  });

  return {
    get value() {
      return value;
    },
    get at() {
      return at;
    },
    get error() {
      return error;
    },
    now: async () => {
      busy = false;
      if (current) await once(current, run);
    },
  };
}
