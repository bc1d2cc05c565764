// Short notes about what was done or refused; a screen reader hears them.
import { Refusal } from "../api/client.ts";

export interface Note {
  id: number;
  ok: boolean;
  text: string;
  hint: string;
}

const SHOWN_MS = 8_000;
let next = 0;
let all = $state.raw<Note[]>([]);

export const notes = {
  get all() {
    return all;
  },
};

/** Shows a note for a while; a refusal stays until it is dismissed. */
export function tell(text: string, ok = true, hint = ""): void {
  next += 1;
  const note = { id: next, ok, text, hint };
  all = [...all.slice(-3), note];
  if (ok) setTimeout(() => dismiss(note.id), SHOWN_MS);
}

/** Shows a refusal in the daemon's words. */
export function tellRefusal(error: unknown): void {
  if (error instanceof Refusal) tell(error.message, false, error.hint);
  else tell(String(error), false);
}

/** Takes a note away. */
export function dismiss(id: number): void {
  all = all.filter((note) => note.id !== id);
}
