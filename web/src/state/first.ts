// What is on screen first. The rows of the first screen are asked for together with the session,
// and whatever else is asked for waits until they are drawn: a browser has six connections, and
// a daemon that answers other questions answers this one later.
import type { Query } from "../api/wants.ts";
import { route } from "./route.svelte.ts";

/** The slowest disks, as `Now` shows them. */
export const WORST: Query = { by: "disk", sort: "-p99", filter: "", from: 0, count: 10 };

/** After so long, what else there is to ask is asked all the same. */
const PATIENCE_MS = 400;

/** The rows of the screen that the page opens with, if they are known before it is drawn. */
export const firstRows = route.screen === "now" ? WORST : null;

let resolve: () => void;
/** The first rows are drawn, or no rows come. */
export const drawn = new Promise<void>((done) => (resolve = done));
if (firstRows) setTimeout(() => resolve(), PATIENCE_MS);
else resolve!();

/** The first rows have come, and are drawn in the next frame. */
export function came(): void {
  requestAnimationFrame(() => setTimeout(resolve));
}
