// The options of a uPlot: axes in our words, colours of the theme, a cursor that all charts of
// a group share, and marks of what happened.
import type uPlot from "uplot";
import { place, short as cut, type Box, type Curve, type Limit } from "../model/labels.ts";
import { axisLabels } from "../model/time.ts";
import { colour } from "../state/theme.svelte.ts";

/** A line of a chart. */
export interface Line {
  label: string;
  values: (number | null)[];
  /** The custom property of its colour. */
  colour: string;
  /** Fills down to the line before (`band`), or to the ground. */
  fill?: "band" | "ground";
  dashed?: boolean;
}

/** Something that happened, or began. */
export interface Mark {
  atMs: number;
  text: string;
  tone: "busy" | "warn" | "quiet";
}

export interface Look {
  lines: Line[];
  format: (value: number) => string;
  log: boolean;
  /** Whether the axis goes by powers of two, as bytes do. */
  binary: boolean;
  height: number;
  group: string;
  marks: () => Mark[];
  limits: () => Limit[];
  onCursor: (index: number | null) => void;
  onZoom: (fromMs: number, toMs: number) => void;
}

const FONT = "11px system-ui, sans-serif";
/** A chart that is lower than this has no room for what its marks say. */
const ROOMY = 150;
const LABEL = 14;
/** The longest that a mark says in a chart; the cursor tells all of it. */
const MARK_MOST = 30;
/** A logarithm has no zero: what is less is drawn here. */
const LEAST = 0.01;

/** Steps of an axis of bytes. */
const POWERS = Array.from({ length: 50 }, (_, at) => 2 ** at);

/** A label without zeros that say nothing: `10 ms`, `5 ms`, `0.25 ms`. */
function short(label: string): string {
  return label.replace(/(\.\d*?)0+(?=\D|$)/, "$1").replace(/\.(?=\D|$)/, "");
}

/** Values as they are drawn. */
export function drawn(line: Line, log: boolean): (number | null)[] {
  return log ? line.values.map((value) => (value === null ? null : Math.max(LEAST, value))) : line.values;
}

function opaque(name: string, part: number): string {
  return colour(name).replace(/^rgb\((.*)\)$/, (_, inside: string) => `rgb(${inside} / ${part})`.replaceAll(",", ""));
}

/** The options of a chart of this width. */
export function options(look: Look, width: number): uPlot.Options {
  const grid: uPlot.Axis.Grid = { stroke: () => colour("--grid"), width: 1 };
  const text = { stroke: () => colour("--muted"), font: FONT, grid, ticks: { show: false } };
  return {
    width,
    height: look.height,
    padding: [6, 8, 0, 0],
    legend: { show: false },
    scales: {
      x: { time: true },
      y: look.log
        ? { distr: 3, log: 10, range: (_, low, high) => logRange(...withLimits(low, high, look.limits())) }
        : { range: (_, __, high) => [0, (withLimits(0, high, look.limits())[1] ?? 0) * 1.08 || 1] },
    },
    axes: [
      // A day that changes has a line of its own below the hour.
      { ...text, size: (_, values) => (values?.some((value) => value?.includes("\n")) ? 40 : 26), space: 72, values: (_, splits, __, ___, step) => axisLabels(splits, step) },
      {
        ...text,
        size: 66,
        ...(look.binary ? { incrs: POWERS } : {}),
        values: (_, splits) => splits.map((value) => (value === null || (look.log && !isDecade(value)) ? "" : short(look.format(value)))),
      },
    ],
    series: [
      {},
      ...look.lines.map((line): uPlot.Series => ({
        label: line.label,
        stroke: () => colour(line.colour),
        width: 1.25,
        ...(line.dashed ? { dash: [4, 3] } : {}),
        ...(line.fill === "ground" ? { fill: () => opaque(line.colour, 0.16) } : {}),
        fillTo: (plot) => (look.log ? (plot.scales.y?.min ?? LEAST) : 0),
        points: { show: false },
        spanGaps: false,
      })),
    ],
    bands: look.lines.flatMap((line, at) =>
      line.fill === "band" && at > 0 ? [{ series: [at, at + 1] as [number, number], fill: () => opaque(line.colour, 0.16) }] : [],
    ),
    cursor: {
      sync: { key: look.group, setSeries: false },
      drag: { x: true, y: false, setScale: false },
      points: { size: 5 },
      y: false,
    },
    hooks: {
      setCursor: [(plot) => look.onCursor(plot.cursor.idx ?? null)],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select;
          if (width < 4) return;
          look.onZoom(plot.posToVal(left, "x") * 1e3, plot.posToVal(left + width, "x") * 1e3);
          plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
        },
      ],
      draw: [(plot) => drawAround(plot, look)],
    },
  };
}

/** A range in which the limits are to be seen, too. */
function withLimits(low: number | null, high: number | null, limits: Limit[]): [number | null, number | null] {
  if (limits.length === 0) return [low, high];
  const values = limits.map((one) => one.value);
  return [Math.min(low ?? Infinity, ...values), Math.max(high ?? 0, ...values)];
}

function logRange(low: number | null, high: number | null): [number, number] {
  const from = 10 ** Math.floor(Math.log10(Math.max(LEAST, low ?? 0.1)));
  const to = 10 ** Math.ceil(Math.log10(Math.max(LEAST * 10, high ?? 10)));
  return [from, Math.max(to, from * 10)];
}

function isDecade(value: number): boolean {
  return Math.abs(Math.log10(value) - Math.round(Math.log10(value))) < 1e-6;
}

/** A text in a box on the colour of the panel, so that no grid runs through its letters. */
function write(context: CanvasRenderingContext2D, text: string, box: Box, tone: string): void {
  const scale = devicePixelRatio;
  context.fillStyle = colour("--panel");
  context.fillRect(box.x, box.y, box.width, box.height);
  context.fillStyle = colour(tone);
  context.fillText(text, box.x + 2 * scale, box.y + 10 * scale);
}

/** How wide the box of a text is. */
function wide(context: CanvasRenderingContext2D, text: string): number {
  return context.measureText(text).width + 4 * devicePixelRatio;
}

/** The lines as they are drawn. */
function curves(plot: uPlot): Curve[] {
  const [x, ...ys] = plot.data;
  const xs = [...x].map((value) => plot.valToPos(value, "x", true));
  return ys.map((values) => ({ xs, ys: [...values].map((value) => (value === null || value === undefined ? null : plot.valToPos(value, "y", true))) }));
}

/** Marks and limits with what they are, where there is room for it beside what was measured. */
function drawAround(plot: uPlot, look: Look): void {
  const [marks, limits] = [look.marks(), look.limits()];
  if (marks.length + limits.length === 0) return;
  const context = plot.ctx;
  const { left, top, width, height } = plot.bbox;
  context.save();
  context.beginPath();
  context.rect(left, top, width, height);
  context.clip();
  drawMarks(plot, marks);
  drawLimits(plot, limits);
  context.font = FONT.replace("11px", `${11 * devicePixelRatio}px`);
  context.textAlign = "left";
  context.textBaseline = "alphabetic";
  const [lines, taken] = [curves(plot), [] as Box[]];
  writeLimits(plot, limits, look.format, lines, taken);
  if (look.height >= ROOMY) writeMarks(plot, marks, lines, taken);
  context.restore();
}

/** Dashed lines across. */
function drawLimits(plot: uPlot, limits: Limit[]): void {
  const context = plot.ctx;
  const scale = devicePixelRatio;
  const { left, width } = plot.bbox;
  context.lineWidth = 1.5 * scale;
  context.strokeStyle = colour("--warn");
  context.setLineDash([5 * scale, 4 * scale]);
  for (const one of limits) {
    const y = plot.valToPos(one.value, "y", true);
    context.beginPath();
    context.moveTo(left, y);
    context.lineTo(left + width, y);
    context.stroke();
  }
  context.setLineDash([]);
}

/** What each line across is, and its value: above the line or below it, on the right or on the left. */
function writeLimits(plot: uPlot, limits: Limit[], format: (value: number) => string, lines: Curve[], taken: Box[]): void {
  const context = plot.ctx;
  const scale = devicePixelRatio;
  const { left, top, width, height } = plot.bbox;
  const room = width - 8 * scale;
  for (const one of limits) {
    let text = `${one.label}: ${format(one.value)}`;
    // In a narrow chart the value stays, whatever else goes.
    for (let most = one.label.length; wide(context, text) > room && most > 4; most -= 2) text = `${cut(one.label, most)}: ${format(one.value)}`;
    const y = plot.valToPos(one.value, "y", true);
    const size = { width: wide(context, text), height: (LABEL - 1) * scale };
    const xs = [left + Math.max(4 * scale, width - size.width - 4 * scale), left + 4 * scale];
    const ys = [y - LABEL * scale, y + 2 * scale].filter((at) => at >= top && at + size.height <= top + height);
    // Where it would cover what was measured, only the legend says it.
    const box = place(xs.flatMap((x) => ys.map((y) => ({ x, y, ...size }))), lines, taken);
    if (!box) continue;
    taken.push(box);
    write(context, text, box, "--warn");
  }
}

function toneOf(mark: Mark): string {
  return mark.tone === "warn" ? "--warn" : mark.tone === "busy" ? "--accent" : "--muted";
}

/** Dashed lines upright. */
function drawMarks(plot: uPlot, marks: Mark[]): void {
  const context = plot.ctx;
  const { left, top, width, height } = plot.bbox;
  context.lineWidth = devicePixelRatio;
  context.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
  for (const mark of marks) {
    const x = plot.valToPos(mark.atMs / 1e3, "x", true);
    if (x < left || x > left + width) continue;
    context.strokeStyle = colour(toneOf(mark));
    context.beginPath();
    context.moveTo(x, top);
    context.lineTo(x, top + height);
    context.stroke();
  }
  context.setLineDash([]);
}

/** What happened, where there is room for it: below or above. The rest is told at the cursor. */
function writeMarks(plot: uPlot, marks: Mark[], lines: Curve[], taken: Box[]): void {
  const context = plot.ctx;
  const scale = devicePixelRatio;
  const { left, top, width, height } = plot.bbox;
  const seen = marks.filter((mark) => mark.tone !== "quiet").sort((a, b) => a.atMs - b.atMs);
  for (const mark of seen) {
    const text = cut(mark.text, MARK_MOST);
    const size = { width: wide(context, text), height: (LABEL - 1) * scale };
    const x = plot.valToPos(mark.atMs / 1e3, "x", true) + 2 * scale;
    if (x < left || x + size.width > left + width) continue;
    const ys = [top + height - LABEL * scale, top + 2 * scale];
    const box = place(ys.map((y) => ({ x, y, ...size })), lines, taken);
    if (!box) continue;
    taken.push(box);
    write(context, text, box, toneOf(mark));
  }
}
