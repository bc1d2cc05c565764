// Where labels in a chart stand, so that none lies on another, or on what is drawn.

/** A line across a chart: what should not be exceeded, or what should be reached. */
export interface Limit {
  value: number;
  label: string;
}

/** Where a label may stand: its corner above on the left, and its size. */
export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** A line as it is drawn, from the left to the right; nothing where it has a gap. */
export interface Curve {
  xs: number[];
  ys: (number | null)[];
}

/** The first of these places, the best first, that lies on no curve and on no other label. */
export function place(wanted: Box[], curves: Curve[], taken: Box[]): Box | null {
  return wanted.find((box) => !taken.some((other) => overlaps(box, other)) && curves.every((curve) => isClear(box, curve))) ?? null;
}

function overlaps(a: Box, b: Box): boolean {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

/** Whether no part of a curve lies in a box. A steep part counts as all of its height. */
function isClear({ x, y, width, height }: Box, { xs, ys }: Curve): boolean {
  for (let at = 0; at < xs.length; at += 1) {
    const here = ys[at];
    if (here === null || here === undefined) continue;
    const isJoined = at + 1 < xs.length && typeof ys[at + 1] === "number";
    const [right, there] = isJoined ? [xs[at + 1]!, ys[at + 1]!] : [xs[at]!, here];
    if (right < x || xs[at]! > x + width) continue;
    if (Math.max(here, there) >= y && Math.min(here, there) <= y + height) return false;
  }
  return true;
}

/** A label of so many letters at most. */
export function short(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1).trimEnd()}…`;
}
