// Draws a sparkline: the last minutes of a figure, in the colours of the theme.
import { colour } from "../state/theme.svelte.ts";

export interface Spark {
  values: (number | null)[];
  width: number;
  height: number;
  /** A line that values should stay below. */
  bound: number | null;
  /** How many values fit; fewer are drawn at the right. */
  kept: number;
}

/** Gives a canvas this size, in pixels of the page, and wipes it. */
export function wiped(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D | null {
  const context = canvas.getContext("2d");
  if (!context) return null;
  const scale = devicePixelRatio || 1;
  const [wide, high] = [Math.round(width * scale), Math.round(height * scale)];
  // A new size is a new canvas, which takes longer than to wipe the old one.
  if (canvas.width !== wide) canvas.width = wide;
  if (canvas.height !== high) canvas.height = high;
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

/** Draws one with its upper left corner at `left` and `top`. */
export function drawSpark(context: CanvasRenderingContext2D, spark: Spark, left = 0, top = 0): void {
  const { values, width, height, bound, kept } = spark;
  let most = Math.max((bound ?? 0) * 1.05, 1e-9);
  let known = false;
  for (const value of values) {
    if (value === null) continue;
    known = true;
    if (value > most) most = value;
  }
  if (!known) return;
  const count = Math.max(kept, values.length);
  const step = (width - 3) / Math.max(1, count - 1);
  const first = left + 1 + (count - values.length) * step;
  const y = (value: number) => top + height - 2 - (value / most) * (height - 4);
  if (bound !== null) {
    context.strokeStyle = colour("--warn");
    context.lineWidth = 1;
    context.setLineDash([2, 3]);
    context.beginPath();
    context.moveTo(left, y(bound));
    context.lineTo(left + width, y(bound));
    context.stroke();
    context.setLineDash([]);
  }
  context.strokeStyle = colour("--line-1");
  context.lineWidth = 1.25;
  context.lineJoin = "round";
  context.beginPath();
  let drawn = false;
  values.forEach((value, at) => {
    if (value === null) drawn = false;
    else if (drawn) context.lineTo(first + at * step, y(value));
    else context.moveTo(first + at * step, y(value));
    if (value !== null) drawn = true;
  });
  context.stroke();
  const last = values.at(-1);
  if (last === null || last === undefined) return;
  context.fillStyle = colour(bound !== null && last > bound ? "--warn" : "--line-1");
  context.beginPath();
  context.arc(first + (values.length - 1) * step, y(last), 1.75, 0, 7);
  context.fill();
}
