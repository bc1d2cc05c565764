// How far a move is. A bar never runs backwards: what the guest rewrites after it was copied
// is shown as "again", apart from what was reached.
import type { Migration } from "../api/wire.ts";

/** The unit of the mirror's map. */
export const REGION = 65_536;

/** The parts of a bar, of one. */
export interface Bar {
  /** The part that is equal on both sides now. */
  equal: number;
  /** The part that was equal and is to be copied again. */
  again: number;
  /** The part that was compared, once that has begun. */
  verified: number | null;
  /** What the figure beside the bar says: the largest that was reached; nothing if that is not known. */
  percent: number | null;
}

/** What was reached, move by move. */
export class Reached {
  private readonly most = new Map<number, { equal: number; verified: number }>();

  /** The bar of a move, after all that was seen of it. */
  bar(move: Migration): Bar {
    if (move.state === "completed" || move.state === "cleaning-up") {
      this.most.delete(move.id);
      return { equal: 1, again: 0, verified: move.verify ? 1 : null, percent: 100 };
    }
    const progress = move.progress;
    const known = this.most.get(move.id);
    const before = known ?? { equal: 0, verified: 0 };
    // A daemon that was restarted does not know yet what was copied before.
    if (!progress || progress.total === 0) {
      return { equal: before.equal, again: 0, verified: null, percent: known ? whole(before.equal) : null };
    }
    const equal = clamp(progress.synced / progress.total);
    const verified = clamp((progress.verified ?? 0) / progress.total);
    const most = { equal: Math.max(before.equal, equal), verified: Math.max(before.verified, verified) };
    this.most.set(move.id, most);
    const late = clamp((progress.late_regions * REGION) / progress.total);
    const again = Math.max(most.equal - equal, Math.min(late, most.equal));
    // A comparison that is paused is one still: its figure is the part that was compared.
    const verifying = move.state === "verifying" || (move.state === "paused" && (progress.verified ?? 0) > 0);
    return {
      equal: most.equal - again,
      again,
      verified: verifying ? most.verified : null,
      percent: whole(verifying ? most.verified : most.equal),
    };
  }
}

/** The end of a move as a range, in seconds from now. */
export interface End {
  likely: number;
  least: number;
  most: number;
}

/**
 * When a move ends, or nothing if that is not known yet. The range is as wide as the
 * prediction's, for what remains.
 */
export function end(move: Migration): End | null {
  const eta = move.progress?.eta_s;
  if (move.state === "paused" || eta === null || eta === undefined) return null;
  const told = move.predicted;
  if (!told || told.likely_s <= 0) return { likely: eta, least: eta, most: eta };
  return {
    likely: eta,
    least: eta * Math.min(1, told.least_s / told.likely_s),
    most: eta * Math.max(1, told.most_s / told.likely_s),
  };
}

/** Whether a move has ended. */
export function ended(move: Migration): boolean {
  return move.state === "completed" || move.state === "cancelled";
}

function whole(part: number): number {
  // 100 % is for what has ended.
  return Math.min(99, Math.floor(part * 100));
}

function clamp(part: number): number {
  return Math.min(1, Math.max(0, part));
}
