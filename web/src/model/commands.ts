// The commands that buttons stand for.
import type { AskGuard, Predict } from "../api/wire.ts";
import { command, option } from "./quote.ts";
import { percent } from "./units.ts";

/** Bytes as an option takes them: `200M`, or the number where it is not whole. */
export function sizeOption(bytes: number): string {
  const units = ["", "K", "M", "G", "T"];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && value % 1024 === 0 && unit + 1 < units.length) {
    value /= 1024;
    unit += 1;
  }
  return `${value}${units[unit]}`;
}

/** A response time as an option takes it: `5ms`. */
export function spanOption(us: number): string {
  return us % 1000 === 0 ? `${us / 1000}ms` : `${us}us`;
}

/** The options of a guard. */
export function guardOptions(guard: AskGuard): (string | number)[] {
  return [
    ...option("--keep", guard.keep ? percent(guard.keep) : null),
    ...option("--p99", guard.p99_us ? spanOption(guard.p99_us) : null),
    ...option("--finish-by", guard.finish_by),
    ...(guard.idle_only ? ["--idle-only"] : []),
    ...option("--window", guard.window),
  ];
}

/** `sterna migrate db --to slow --keep 97%` */
export function migrate(disk: string, to: string, options: { rate?: number | null; guard: AskGuard; verify: boolean; keepSource?: boolean }): string {
  return command(
    "migrate",
    disk,
    "--to",
    to || "DATASTORE",
    ...option("--rate", options.rate ? sizeOption(options.rate) : null),
    ...(options.verify ? [] : ["--no-verify"]),
    ...(options.keepSource ? ["--keep-source"] : []),
    ...guardOptions(options.guard),
  );
}

/** `sterna predict db --to slow` */
export function predict(ask: Predict): string {
  return command(
    "predict",
    ask.disk || "DISK",
    "--to",
    ask.to || "DATASTORE",
    ...option("--rate", ask.rate ? sizeOption(ask.rate) : null),
    ...(ask.verify === false ? ["--no-verify"] : []),
    ...guardOptions({ keep: ask.keep ?? null, p99_us: ask.p99_us ?? null, idle_only: ask.idle_only ?? false }),
    ...option("--at", ask.at),
  );
}
