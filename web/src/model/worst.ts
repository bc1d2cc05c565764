// Which disk of a class is worst: what hangs, then what is hurt, then what is later than promised.
import type { TopRow } from "../api/wire.ts";
import { hangs, isLate, measured, type Bound } from "./late.ts";
import { response } from "./units.ts";

/** What is known of disks beside their figures. */
export interface Judged {
  bound: (disk: string) => Bound | null;
  hurt: ReadonlySet<string>;
  slower: ReadonlySet<string>;
}

/** How bad a disk is, in steps; and within a step, how far it is above its bound. */
function rank(row: TopRow, { bound, hurt, slower }: Judged): [number, number, number] {
  const its = bound(row.name);
  const step = hangs(row.load) ? 4 : hurt.has(row.name) ? 3 : isLate(row.load, its) ? 2 : slower.has(row.name) ? 1 : 0;
  const times = its ? (measured(row.load, its.of) ?? 0) / Math.max(1, its.us) : 0;
  return [step, times, row.load.p99_us ?? -1];
}

/** Rows, the worst first. Those that are equally bad go by their names, so that they stay in place. */
export function worstFirst(rows: TopRow[], judged: Judged): TopRow[] {
  const ranked = rows.map((row) => ({ row, rank: rank(row, judged) }));
  ranked.sort((a, b) => {
    for (const at of [0, 1, 2] as const) {
      if (a.rank[at] !== b.rank[at]) return b.rank[at] - a.rank[at];
    }
    return a.row.name < b.row.name ? -1 : 1;
  });
  return ranked.map(({ row }) => row);
}

/** The worst disk in a sentence; nothing if there is none that asks for anything. */
export function worstWords(row: TopRow | undefined, judged: Judged): string | null {
  if (!row) return null;
  if (hangs(row.load)) return `${row.name} is worst: its requests hang`;
  const its = judged.bound(row.name);
  const figure = its ? measured(row.load, its.of) : row.load.p99_us;
  if (figure === null || figure === undefined) return null;
  if (!its) return `${row.name} is worst: p99 ${response(figure)}; nothing is promised to it`;
  const times = figure / Math.max(1, its.us);
  const against = times > 1 ? `${times.toFixed(1)} times` : "within";
  return `${row.name} is worst: its ${its.of} of ${response(figure)} is ${against} the ${response(its.us)} of ${its.whose}`;
}
