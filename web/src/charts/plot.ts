// The options of a uPlot: axes in our words, colours of the theme, a cursor that all charts of
// a group share, and marks of what happened.
import type uPlot from "uplot";
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
  onCursor: (index: number | null) => void;
  onZoom: (fromMs: number, toMs: number) => void;
}

const FONT = "11px system-ui, sans-serif";
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
        ? { distr: 3, log: 10, range: (_, low, high) => logRange(low, high) }
        : { range: (_, __, high) => [0, high > 0 ? high * 1.08 : 1] },
    },
    axes: [
      { ...text, size: 26, space: 72, values: (_, splits, __, ___, step) => axisLabels(splits, step) },
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
      draw: [(plot) => drawMarks(plot, look.marks())],
    },
  };
}

function logRange(low: number | null, high: number | null): [number, number] {
  const from = 10 ** Math.floor(Math.log10(Math.max(LEAST, low ?? 0.1)));
  const to = 10 ** Math.ceil(Math.log10(Math.max(LEAST * 10, high ?? 10)));
  return [from, Math.max(to, from * 10)];
}

function isDecade(value: number): boolean {
  return Math.abs(Math.log10(value) - Math.round(Math.log10(value))) < 1e-6;
}

function drawMarks(plot: uPlot, marks: Mark[]): void {
  const context = plot.ctx;
  const { left, top, width, height } = plot.bbox;
  context.save();
  context.beginPath();
  context.rect(left, top, width, height);
  context.clip();
  context.lineWidth = devicePixelRatio;
  context.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
  for (const mark of marks) {
    const x = plot.valToPos(mark.atMs / 1e3, "x", true);
    if (x < left || x > left + width) continue;
    context.strokeStyle = colour(mark.tone === "warn" ? "--warn" : mark.tone === "busy" ? "--accent" : "--muted");
    context.beginPath();
    context.moveTo(x, top);
    context.lineTo(x, top + height);
    context.stroke();
  }
  context.restore();
}
