// How old a figure is, by the daemon's clock. No figure looks fresh that is not.

/** From here on a figure is grey. */
export const OLD_MS = 3_000;
/** From here on a figure is crossed out. */
export const DEAD_MS = 10_000;
/** The daemon says something each second; without a word for so long it is away. */
export const SILENT_MS = 2_400;

export type Stage = "fresh" | "old" | "dead";

/** How a figure of this moment is shown now. */
export function stage(atMs: number | null, nowMs: number): Stage {
  if (atMs === null) return "dead";
  const age = nowMs - atMs;
  return age > DEAD_MS ? "dead" : age > OLD_MS ? "old" : "fresh";
}

/** The older of two moments: what is said of both is as old as that. One that is not known yet counts for nothing. */
export function older(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.min(one, other);
}

/**
 * The daemon's clock between two words of the daemon: it goes on by the browser's steady
 * clock, which neither jumps nor depends on the time that is set here.
 */
export class DaemonClock {
  private saidMs = 0;
  private heard = 0;

  /** The daemon said what time it is; the browser's steady clock was at `steadyMs`. */
  said(nowMs: number, steadyMs: number): void {
    this.saidMs = nowMs;
    this.heard = steadyMs;
  }

  /** What time it is there. */
  now(steadyMs: number, fallbackMs: number): number {
    return this.saidMs === 0 ? fallbackMs : this.saidMs + (steadyMs - this.heard);
  }

  /** For how long nothing was said. */
  silence(steadyMs: number): number {
    return steadyMs - this.heard;
  }
}
