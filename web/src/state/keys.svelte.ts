// Keys. Single keys act unless somebody types, or has switched them off: a voice that is heard
// as keys would set off anything.
import { go } from "./route.svelte.ts";

/** What a screen does with its rows. */
export interface Rows {
  count: number;
  selected: number;
  select: (index: number) => void;
  open: (index: number) => void;
}

export const PLACES = [
  { key: "n", screen: "now", name: "Now", to: "#/" },
  { key: "d", screen: "disks", name: "Disks", to: "#/disks" },
  { key: "s", screen: "datastores", name: "Datastores", to: "#/datastores" },
  { key: "m", screen: "moves", name: "Moves", to: "#/moves" },
  { key: "p", screen: "plans", name: "Plans", to: "#/plans" },
  { key: "h", screen: "hosts", name: "Hosts, VMs", to: "#/hosts" },
  { key: "y", screen: "memory", name: "Memory", to: "#/memory" },
  { key: "l", screen: "levels", name: "Service levels", to: "#/levels" },
  { key: "w", screen: "whatif", name: "What if", to: "#/whatif" },
  { key: "e", screen: "events", name: "Events", to: "#/events" },
] as const;

const OFF = "sterna.keys";

export const keys = $state({ help: false, off: localStorage.getItem(OFF) === "off" });

let rows: (() => Rows) | null = null;
let going = -Infinity;

/** A screen's rows answer to `j`, `k` and Enter while the screen is there. */
export function answerKeys(of: () => Rows): () => void {
  rows = of;
  return () => {
    if (rows === of) rows = null;
  };
}

/** Switches single keys off, or on again. */
export function switchKeys(off: boolean): void {
  keys.off = off;
  if (off) localStorage.setItem(OFF, "off");
  else localStorage.removeItem(OFF);
}

function types(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.isContentEditable);
}

/** Takes a key; says whether it meant anything. */
export function press(event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  // In a dialog it closes the dialog.
  if (event.key === "Escape" && types(event.target) && !document.querySelector("dialog[open]")) {
    (event.target as HTMLElement).blur();
    // What was typed stays: a browser would clear a field for searches.
    event.preventDefault();
    return;
  }
  if (keys.off || types(event.target) || document.querySelector("dialog[open]")) return;
  if (act(event)) event.preventDefault();
}

function act(event: KeyboardEvent): boolean {
  if (performance.now() - going < 1_500) {
    going = -Infinity;
    const place = PLACES.find((one) => one.key === event.key);
    if (place) go(place.to);
    return place !== undefined;
  }
  switch (event.key) {
    case "?":
      keys.help = true;
      return true;
    case "g":
      going = performance.now();
      return true;
    case "/": {
      const field = document.querySelector<HTMLInputElement>("input[type=search]");
      field?.focus();
      field?.select();
      return field !== null;
    }
    case "j":
    case "k":
      return step(event.key === "j" ? 1 : -1);
    case "Enter":
      return enter(event.target);
    default:
      return false;
  }
}

function step(by: number): boolean {
  const all = rows?.();
  if (!all || all.count === 0) return false;
  const next = all.selected < 0 ? 0 : all.selected + by;
  all.select(Math.min(all.count - 1, Math.max(0, next)));
  return true;
}

function enter(target: EventTarget | null): boolean {
  const all = rows?.();
  const onControl = target instanceof HTMLElement && target.closest("a, button, summary, .canvas") !== null;
  if (!all || all.selected < 0 || onControl) return false;
  all.open(all.selected);
  return true;
}
