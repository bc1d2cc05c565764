// Moments in words. Figures are drawn by the daemon's clock, in the browser's zone; a hover
// tells the daemon's zone and UTC.
import { span } from "./units.ts";

const formats = new Map<string, Intl.DateTimeFormat>();

function format(zone: string | undefined, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = `${zone ?? ""}|${JSON.stringify(options)}`;
  let made = formats.get(key);
  if (!made) {
    try {
      made = new Intl.DateTimeFormat("sv-SE", { ...options, timeZone: zone });
    } catch {
      // A zone that this browser does not know.
      made = new Intl.DateTimeFormat("sv-SE", { ...options, timeZone: "UTC" });
    }
    formats.set(key, made);
  }
  return made;
}

const DATE: Intl.DateTimeFormatOptions = { year: "numeric", month: "2-digit", day: "2-digit" };
const CLOCK: Intl.DateTimeFormatOptions = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };

/** `14:31:21` */
export function clock(atMs: number, zone?: string): string {
  return format(zone, CLOCK).format(atMs);
}

/** `14:31` */
export function shortClock(atMs: number, zone?: string): string {
  return clock(atMs, zone).slice(0, 5);
}

/** `2026-11-21` */
export function day(atMs: number, zone?: string): string {
  return format(zone, DATE).format(atMs);
}

/** `14:31:21` if that is today, else `2026-11-21 14:31`. */
export function moment(atMs: number, nowMs: number, zone?: string): string {
  if (day(atMs, zone) === day(nowMs, zone)) return clock(atMs, zone);
  return `${day(atMs, zone)} ${shortClock(atMs, zone)}`;
}

/** All zones of a moment, for a hover: the browser's, the daemon's, UTC. */
export function everywhere(atMs: number, daemonZone?: string | null): string {
  const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const zones = [...new Set([here, daemonZone ?? "UTC", "UTC"])];
  return zones.map((zone) => `${day(atMs, zone)} ${clock(atMs, zone)} ${zone}`).join("\n");
}

/** How long ago something was: `just now`, `3 min 20 s ago`. */
export function ago(atMs: number, nowMs: number): string {
  const seconds = Math.round((nowMs - atMs) / 1e3);
  if (seconds < 1) return "just now";
  return `${seconds < 60 ? `${seconds} s` : span(seconds)} ago`;
}

/** How far ahead something is: `in 3 min 20 s`. */
export function ahead(atMs: number, nowMs: number): string {
  const seconds = Math.round((atMs - nowMs) / 1e3);
  if (seconds < 1) return "now";
  return `in ${seconds < 60 ? `${seconds} s` : span(seconds)}`;
}

/** The labels of a time axis: hours, with the day where it changes and seconds where it matters. */
export function axisLabels(seconds: number[], stepS: number, zone?: string): string[] {
  let before = "";
  return seconds.map((second) => {
    const at = second * 1e3;
    const label = stepS < 60 ? clock(at, zone) : shortClock(at, zone);
    const today = day(at, zone);
    const changed = before !== "" && today !== before;
    before = today;
    return changed || stepS >= 86_400 ? `${today.slice(5)}\n${label}` : label;
  });
}

/** Minutes since Monday 00:00, in a zone. */
export function minuteOfWeek(atMs: number, zone?: string): number {
  const weekday = format(zone, { weekday: "short" });
  const name = new Intl.DateTimeFormat("en-GB", { weekday: "short", timeZone: weekday.resolvedOptions().timeZone });
  const at = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"].indexOf(name.format(atMs));
  const [hours, minutes] = clock(atMs, zone).split(":").map(Number);
  return at * 1440 + hours! * 60 + minutes!;
}
