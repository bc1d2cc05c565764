// The span of time that a screen shows. It is in the address, so that a link is a report.

/** What is shown: the last so many seconds, or from one moment to another. */
export type Range = { lastS: number } | { fromMs: number; toMs: number };

/** The spans that can be chosen. The daemon keeps a day; of a disk it keeps the hours of a quarter. */
export const SPANS = [
  { name: "10m", label: "10 min", seconds: 600 },
  { name: "1h", label: "1 h", seconds: 3_600 },
  { name: "6h", label: "6 h", seconds: 21_600 },
  { name: "24h", label: "24 h", seconds: 86_400 },
  { name: "7d", label: "7 days", seconds: 604_800 },
  { name: "90d", label: "90 days", seconds: 7_776_000 },
] as const;

const DAY_MS = 86_400_000;
/** The daemon keeps a little more than a day. */
const SLACK_MS = 600_000;

/** The least that can be shown: below it there are no windows. */
export const LEAST_MS = 2_000;

/** Reads a range from the address. What makes no sense is the last 10 minutes. */
export function readRange(params: URLSearchParams): Range {
  const from = Number(params.get("from"));
  const to = Number(params.get("to"));
  if (from > 0 && to > from) return { fromMs: from, toMs: to };
  const known = SPANS.find((span) => span.name === params.get("span"));
  return { lastS: known?.seconds ?? SPANS[0].seconds };
}

/** What of the address says a range. */
export function writeRange(range: Range): Record<string, string | null> {
  if ("lastS" in range) {
    const known = SPANS.find((span) => span.seconds === range.lastS);
    return { from: null, to: null, span: !known || known === SPANS[0] ? null : known.name };
  }
  return { span: null, from: String(Math.round(range.fromMs)), to: String(Math.round(range.toMs)) };
}

/** The two moments of a range. */
export function moments(range: Range, nowMs: number): { fromMs: number; toMs: number } {
  return "lastS" in range ? { fromMs: nowMs - range.lastS * 1e3, toMs: nowMs } : range;
}

/** Whether only the hours of a disk reach back so far. */
export function isLong(range: Range, nowMs: number): boolean {
  return moments(range, nowMs).fromMs < nowMs - DAY_MS - SLACK_MS;
}

/** How many points a chart of a range has: of a day so many that they are less than 40 kB. */
export function points(range: Range): number {
  const seconds = "lastS" in range ? range.lastS : (range.toMs - range.fromMs) / 1e3;
  return seconds > SPANS[2].seconds ? 225 : 600;
}

/** A part of what is shown, for a closer look; nothing if it is too little to see anything. */
export function zoomed(fromMs: number, toMs: number): Range | null {
  const [from, to] = fromMs < toMs ? [fromMs, toMs] : [toMs, fromMs];
  return to - from < LEAST_MS ? null : { fromMs: from, toMs: to };
}

/** Twice as much or half as much, about the middle; what is live stays live. */
export function scaled(range: Range, factor: number, nowMs: number): Range {
  if ("lastS" in range) {
    // A look from further away ends at the day that everything has.
    const spans = SPANS.filter((span) => span.seconds <= Math.max(DAY_MS / 1e3, range.lastS));
    const at = spans.findIndex((span) => span.seconds === range.lastS);
    const next = spans[Math.min(spans.length - 1, Math.max(0, at + (factor > 1 ? 1 : -1)))]!;
    return { lastS: next.seconds };
  }
  const middle = (range.fromMs + range.toMs) / 2;
  const half = Math.max(LEAST_MS, (range.toMs - range.fromMs) * factor) / 2;
  return { fromMs: middle - half, toMs: Math.min(nowMs, middle + half) };
}
