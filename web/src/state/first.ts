// What is on screen first. The rows of the first screen are asked for together with the session,
// and whatever else is asked for waits until they are drawn: a browser has six connections, and
// a daemon that answers other questions answers this one later.
import { WORST } from "../api/wants.ts";
import { route } from "./route.svelte.ts";

export { WORST };

/** After so long, what else there is to ask is asked all the same. */
const PATIENCE_MS = 400;

/** The rows of the screen that the page opens with, if they are known before it is drawn. */
export const firstRows = route.screen === "now" ? WORST : null;

let resolve: () => void;
/** The first rows are drawn, or no rows come. */
export const drawn = new Promise<void>((done) => (resolve = done));
if (firstRows) setTimeout(() => resolve(), PATIENCE_MS);
else resolve!();

/** So long the first screen waits for its rows: to draw it with them takes half as long as twice. */
const WAITS_MS = 80;
let arrive: () => void;
const rowsAreHere = new Promise<void>((done) => (arrive = done));

/** The rows of the first screen are here, or it does not wait for them any more. */
export function ready(): Promise<void> | null {
  if (!firstRows) return null;
  return Promise.race([rowsAreHere, new Promise<void>((done) => setTimeout(done, WAITS_MS))]);
}

/** The first rows have come, and are drawn in the next frame. */
export function came(): void {
  arrive();
  requestAnimationFrame(() => setTimeout(resolve));
}
