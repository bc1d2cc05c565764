// What somebody should look at now, worst first: the daemon's warnings, moves that stand, and
// datastores over a bound with the disks that load them.
import type { HurtDisk, Migration, StorageDrs, TopRow, Warning } from "../api/wire.ts";
import { headline, slowerLine } from "./hurt.ts";
import { fills, fullIn, isPressing, isSoon, oneEach, type Help, shared } from "./space.ts";
import type { Tone } from "./words.ts";
import { lessAsked, waitsFor } from "./words.ts";
import type { Stage } from "./age.ts";
import { clock } from "./time.ts";
import { rate, response, wholePercent } from "./units.ts";

/** Something to look at. */
export interface Item {
  key: string;
  tone: Tone;
  about: string;
  text: string;
  /** What to do; may hold commands between backticks. */
  hint: string;
  /** Where more is to be seen. */
  link: string | null;
  /** What would help, and where that is tried without changing anything. */
  remedy?: Help | null;
  /** In how many seconds a datastore is full. */
  fullS?: number;
}

/** Who loads a datastore, and what is usual for it. */
export interface Talker {
  row: TopRow;
  usual: number | null;
}

const SERIOUS = /hang|lost|offline|not served|full|cannot|unreachable|may have|no flush/;

/** What the daemon's warning of a datastore over its bound for response times begins with. */
const TOO_SLOW = /^p95 /;

/** The page about `disk web1`, `datastore fast`, `migration 4` … */
export function linkTo(about: string): string | null {
  const at = about.indexOf(" ");
  const [kind, name] = [about.slice(0, at), about.slice(at + 1)];
  const into: Record<string, string> = {
    disk: `#/disk/${encodeURIComponent(name)}`,
    datastore: `#/datastore/${encodeURIComponent(name)}`,
    migration: `#/moves?id=${encodeURIComponent(name)}`,
    plan: `#/plans?id=${encodeURIComponent(name)}`,
    class: `#/levels?class=${encodeURIComponent(name)}`,
    policy: "#/levels",
    VM: "#/hosts",
    vm: "#/hosts",
    host: "#/hosts",
    pool: "#/hosts",
  };
  return into[kind] ?? null;
}

/** Everything to look at. */
export function attention(
  warnings: Warning[],
  moves: Migration[],
  judged: StorageDrs["datastores"],
  boundUs: number,
  talkers: Map<string, Talker>,
  helps: (datastore: string) => Help | null = () => null,
  zone?: string,
): Item[] {
  // Of a datastore that is too slow this page says the same, and who loads it besides.
  const slow = new Set(judged.filter((one) => one.over.includes("latency")).map((one) => `datastore ${one.datastore}`));
  const items: Item[] = warnings.filter((one) => !(slow.has(one.about) && TOO_SLOW.test(one.message))).map((one) => ({
    key: `warning ${one.about} ${one.message}`,
    tone: SERIOUS.test(one.message) ? "bad" : "warn",
    about: one.about,
    text: one.message,
    hint: complete(one.hint, moves, zone),
    link: linkTo(one.about),
  }));
  const warned = new Set(warnings.map((one) => one.about));
  for (const move of moves) {
    const about = `migration ${move.id}`;
    if (warned.has(about) || !move.hint || move.state !== "paused") continue;
    const text = `the move of ${move.disk} stands: ${waitsFor(move)}`;
    items.push({ key: about, tone: "warn", about, text, hint: move.hint, link: linkTo(about) });
  }
  for (const one of oneEach(judged)) {
    if (one.over.length === 0 && !isPressing(one)) continue;
    const about = `datastore ${one.datastore}`;
    const isSpace = one.over.includes("space") || isPressing(one);
    const tone = isSoon(one) ? "bad" : "warn";
    const help = isSpace ? helps(one.datastore) : null;
    items.push({ key: `over ${about}`, tone, fullS: fullIn(one), about, ...over(one, boundUs, talkers), link: linkTo(about), remedy: help });
  }
  const order: Tone[] = ["bad", "warn", "busy", "quiet", "ok"];
  const full = (item: Item) => item.fullS ?? Infinity;
  // Of what is equally bad, what is full first comes first.
  return items.sort((a, b) => order.indexOf(a.tone) - order.indexOf(b.tone) || (full(a) === full(b) ? 0 : full(a) - full(b)));
}

/** A hint whose commands can be run as they are: `migration set` needs to be told what. */
export function complete(hint: string, moves: Migration[], zone?: string): string {
  return hint.replace(/`sterna migration set (\d+)`/, (whole, id: string) => {
    const move = moves.find((one) => one.id === Number(id));
    return move ? `\`${lessAsked(move, zone)}\`` : whole;
  });
}

function over(one: StorageDrs["datastores"][number], boundUs: number, talkers: Map<string, Talker>) {
  const said = [];
  if (one.over.includes("latency")) said.push(`p95 ${response(one.load.p95_us)}, bound ${response(boundUs)}`);
  if (one.over.includes("space") || isPressing(one)) said.push(`${wholePercent(one.load.taken ?? 1)} of its room is taken`, ...[fills(one.trend), shared(one)].filter((text) => text !== null));
  const talker = talkers.get(one.datastore);
  if (talker && one.over.includes("latency")) said.push(talks(talker));
  return { text: said.join("; "), hint: "`sterna storage-drs recommend`" };
}

/** From so many times its usual on, what a disk transfers is worth a remark. */
const MORE = 1.5;
/** Less than this part of what a disk transfers is left out. */
const HARDLY = 0.05;

/**
 * `web-7 reads 20.0 MiB/s and writes 290 MiB/s (its usual, the median of a day: 40.0 MiB/s)`; that is of both
 * together. What is less than usual is no finding.
 */
export function talks({ row, usual }: Talker): string {
  const [reads, writes] = [row.load.read.bytes_per_second, row.load.write.bytes_per_second];
  const now = reads + writes;
  // Of one kind alone the word says it all.
  const [onlyReads, onlyWrites] = [writes < now * HARDLY, reads < now * HARDLY];
  const does = onlyReads ? `reads ${rate(reads)}` : onlyWrites ? `writes ${rate(writes)}` : `reads ${rate(reads)} and writes ${rate(writes)}`;
  const more = usual !== null && now >= usual * MORE ? ` (its usual, the median of a day: ${rate(usual)}${onlyReads || onlyWrites ? "" : " together"})` : "";
  return `${row.name} ${does}${more}`;
}

/** What the first words of the page are about. */
export interface Seen {
  /** Disks that are hurt, the worst first, and how many there are. */
  hurt: HurtDisk[];
  count: number;
  /** Disks that are slower than usual and not hurt, and how many there are. */
  slower?: HurtDisk[];
  countSlower?: number;
  items: Item[];
  /** Disks that are later than was promised; or more than that, if only some are known. */
  late: number;
  lateIsMore: boolean;
  nowMs: number;
  /** When the oldest of the figures was true, and how old that is. */
  atMs?: number | null;
  age?: Stage;
}

/** One sentence for the top of the page: who is hurt, else what there is to look at. */
export function verdict({ hurt, count, slower = [], countSlower = 0, items, late, lateIsMore, nowMs, atMs = null, age = "fresh" }: Seen): { tone: Tone; text: string } {
  // Of what was true some seconds ago nobody knows whether it still is.
  if (age !== "fresh") return { tone: "quiet", text: `Not known now: the last figures are ${atMs === null ? "not there yet" : `from ${clock(atMs)}`}` };
  const things = items.length === 1 ? "1 thing to look at" : `${items.length} things to look at`;
  if (hurt.length > 0) {
    return { tone: hurt.some((one) => one.by === "hangs") ? "bad" : "warn", text: headline(hurt, count, nowMs) };
  }
  if (items.some((item) => item.tone === "bad")) return { tone: "bad", text: things };
  if (slower.length > 0) {
    const more = items.length > 0 ? `; ${things}` : "";
    return { tone: "warn", text: `No disk is hurt, but ${slowerLine(slower, countSlower, nowMs)}${more}` };
  }
  if (items.length > 0) return { tone: "warn", text: late > 0 ? things : `No disk is hurt; ${things}` };
  if (late > 0) return { tone: "warn", text: `${lateIsMore ? "at least " : ""}${late === 1 ? "1 disk is" : `${late} disks are`} late` };
  return { tone: "ok", text: "Nobody is hurt" };
}
