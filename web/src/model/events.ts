// Events: which are shown, and how they are saved.
import type { Activity } from "../api/wire.ts";
import { aboutWhat, told, type Moves } from "./told.ts";

/** What people did, as against what Sterna did by itself. */
function byPeople(one: Activity): boolean {
  return one.who !== "sterna";
}

/** The events that are shown. */
export function matching(all: Activity[], filter: string, only: "all" | "people" | "failed", moves: Moves = new Map()): Activity[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  return all.filter((one) => {
    if (only === "people" && !byPeople(one)) return false;
    if (only === "failed" && one.ok) return false;
    if (words.length === 0) return true;
    // What is read on the page is found, and what the daemon calls it, too.
    const text = `${one.who} ${one.about ? aboutWhat(one.about, moves) : ""} ${told(one, moves)} ${one.text} ${one.command ?? ""}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** A cell of CSV. What a spreadsheet would take for a formula is made text. */
function cell(value: string): string {
  const harmless = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\n\r']/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}

/** Events as CSV, as the page tells them, with times in UTC. */
export function asCsv(all: Activity[], moves: Moves = new Map()): string {
  const rows = all.map((one) => [String(one.seq), new Date(one.at_ms).toISOString(), one.who, one.about ?? "", one.ok ? "yes" : "no", told(one, moves), one.command ?? ""]);
  return [["seq", "at", "who", "about", "ok", "text", "command"], ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

/** Events as JSON, one a line, as the daemon tells them. */
export function asJson(all: Activity[]): string {
  return all.map((one) => JSON.stringify(one)).join("\n") + "\n";
}
