// What is asked before the page is there (`early.ts`), for those who take it over.
import type { Session } from "./wire.ts";

/** The lock whose holder has the stream of all tabs. */
export const LOCK = "sterna-stream";
/** What a stream says. */
export const EVENTS = ["hello", "status", "top", "migrations", "activity", "tick"];

/** A stream that is open, and the lock that goes with it. */
export interface Lead {
  address: string;
  release: () => void;
  source: EventSource;
  /** What it has said so far; nothing once somebody listens. */
  said: { name: string; text: string }[] | null;
}

export interface Early {
  /** Who is here; nothing if that has to be asked again. */
  session: Promise<Session | null> | null;
  lead: Promise<Lead | null> | null;
}

declare global {
  var sternaEarly: Early | undefined;
}

/** What was asked before, once. */
export function taken<K extends keyof Early>(what: K): Early[K] {
  const early = globalThis.sternaEarly;
  const found = early?.[what] ?? null;
  if (early) early[what] = null as Early[K];
  return found as Early[K];
}
