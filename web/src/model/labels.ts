// Where labels in a chart stand, so that none lies on another.

/** A line across a chart: what should not be exceeded, or what should be reached. */
export interface Limit {
  value: number;
  label: string;
}

/** Heights of labels, in the order of `wanted`: as near to it as there is room, `gap` apart. */
export function apart(wanted: number[], gap: number, top: number, bottom: number): number[] {
  const order = wanted.map((_, at) => at).sort((a, b) => wanted[a]! - wanted[b]!);
  const placed: number[] = [];
  let least = top;
  for (const at of order) {
    placed[at] = Math.max(least, wanted[at]!);
    least = placed[at] + gap;
  }
  // What was pushed out below goes up again, with those that are in its way.
  let most = bottom;
  for (const at of [...order].reverse()) {
    placed[at] = Math.min(most, placed[at]!);
    most = placed[at] - gap;
  }
  return placed;
}

/** Which labels are told, of those that begin at `x` and are `width` wide: none reaches into the next. */
export function fitting(labels: { x: number; width: number }[], right: number): boolean[] {
  let free = -Infinity;
  const order = labels.map((_, at) => at).sort((a, b) => labels[a]!.x - labels[b]!.x);
  const told = labels.map(() => false);
  for (const at of order) {
    const { x, width } = labels[at]!;
    if (x < free || x + width > right) continue;
    told[at] = true;
    free = x + width;
  }
  return told;
}

/** A label of so many letters at most. */
export function short(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1).trimEnd()}…`;
}
