// A plan as a timeline: a bar for each move, in rows by datastore pair or tile, and the time
// axis below. Predicted bars are where the plan put them; done ones where they were.
import type { Plan, PlannedMove } from "../api/wire.ts";

/** A bar of the timeline. Times are milliseconds since 1970. */
export interface Tile {
  move: PlannedMove;
  row: number;
  predictedFrom: number;
  predictedTo: number;
  /** When it really began and ended or, while it is under way, where it is now. */
  from: number | null;
  to: number | null;
  /** How far it is, of one. */
  done: number;
}

export interface Layout {
  tiles: Tile[];
  rows: { label: string; tile: string | null }[];
  fromMs: number;
  toMs: number;
  waves: { wave: number; fromMs: number; toMs: number }[];
}

/** Lays a plan out. A plan that was not applied yet begins now. */
export function layout(plan: Plan, nowMs: number): Layout {
  const startMs = plan.started ? plan.started * 1e3 : Math.max(nowMs, (plan.opens ?? 0) * 1e3);
  const rows: Layout["rows"] = [];
  const moves = [...plan.moves].sort((a, b) => a.wave - b.wave || a.begins_s - b.begins_s);
  const tiles = moves.map((move): Tile => {
    rows.push({ label: move.disk, tile: move.tile ?? null });
    const from = move.began ? move.began * 1e3 : null;
    return {
      move,
      row: rows.length - 1,
      predictedFrom: startMs + move.begins_s * 1e3,
      predictedTo: startMs + move.ends_s * 1e3,
      from,
      to: from === null ? null : move.ended ? move.ended * 1e3 : Math.max(from, nowMs),
      done: move.state === "moved" ? 1 : (move.done ?? 0),
    };
  });
  const ends = tiles.flatMap((tile) => [tile.predictedTo, tile.to ?? 0]);
  const known = [plan.ends, plan.deadline?.by].map((at) => (at ?? 0) * 1e3);
  const running = plan.state === "running" ? nowMs : 0;
  const begins = tiles.flatMap((tile) => [tile.predictedFrom, tile.from ?? Infinity]);
  return {
    tiles,
    rows,
    fromMs: Math.min(startMs, ...begins),
    toMs: Math.max(startMs + 1_000, running, ...ends, ...known),
    waves: waves(tiles),
  };
}

function waves(tiles: Tile[]): Layout["waves"] {
  const found = new Map<number, { wave: number; fromMs: number; toMs: number }>();
  for (const tile of tiles) {
    const wave = tile.move.wave;
    const one = found.get(wave) ?? { wave, fromMs: Infinity, toMs: 0 };
    one.fromMs = Math.min(one.fromMs, tile.predictedFrom);
    one.toMs = Math.max(one.toMs, tile.predictedTo);
    found.set(wave, one);
  }
  return [...found.values()].sort((a, b) => a.wave - b.wave);
}

/** Where a moment is, of one. */
export function place(atMs: number, layout: Layout): number {
  const part = (atMs - layout.fromMs) / (layout.toMs - layout.fromMs);
  return Math.min(1, Math.max(0, part));
}

/** Moments at which the axis has a mark: round ones, about `wanted` of them. */
export function ticks(fromMs: number, toMs: number, wanted: number): { atMs: number; stepS: number }[] {
  const STEPS = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21_600, 43_200, 86_400, 172_800, 604_800];
  const seconds = (toMs - fromMs) / 1e3;
  const step = STEPS.find((one) => seconds / one <= wanted) ?? STEPS.at(-1)!;
  // Steps of hours are hours of the browser's zone.
  const shift = new Date(fromMs).getTimezoneOffset() * 60;
  const first = Math.ceil((fromMs / 1e3 - shift) / step) * step + shift;
  const found = [];
  for (let at = first; at * 1e3 <= toMs; at += step) found.push({ atMs: at * 1e3, stepS: step });
  return found;
}

/** The datastore that decides how long a plan takes: the one whose copies take longest. */
export function critical(plan: Plan): { datastore: string; seconds: number } | null {
  let most: { datastore: string; seconds: number } | null = null;
  for (const one of plan.datastores) {
    if (!one.speed || !one.bytes) continue;
    const seconds = one.bytes / one.speed;
    if (!most || seconds > most.seconds) most = { datastore: one.datastore, seconds };
  }
  return most;
}
