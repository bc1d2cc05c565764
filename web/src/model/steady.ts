// A word that does not flicker: it changes once what it says has changed for a while.

/** So long something has to be so before it is said, ... */
const RISES_MS = 3_000;
/** ... and so long it has to be over. */
const FALLS_MS = 10_000;
/** What was not seen for so long begins anew. */
const FORGOTTEN_MS = 15_000;

interface Kept {
  atMs: number;
  says: boolean;
  /** Since when it is otherwise than is said. */
  otherwise: number | null;
}

/** What is said of each thing. */
export class Steady {
  private readonly all = new Map<string, Kept>();

  /** Whether it is to be said of a thing, which is so or not at this moment. */
  see(key: string, atMs: number, isSo: boolean): boolean {
    const kept = this.all.get(key);
    if (!kept || atMs - kept.atMs > FORGOTTEN_MS || atMs < kept.atMs) {
      this.all.set(key, { atMs, says: isSo, otherwise: null });
      return isSo;
    }
    if (atMs === kept.atMs) return kept.says;
    kept.atMs = atMs;
    kept.otherwise = isSo === kept.says ? null : (kept.otherwise ?? atMs);
    const needed = kept.says ? FALLS_MS : RISES_MS;
    if (kept.otherwise !== null && atMs - kept.otherwise >= needed) {
      kept.says = isSo;
      kept.otherwise = null;
    }
    return kept.says;
  }
}
