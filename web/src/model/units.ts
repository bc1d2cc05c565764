// Quantities in words, as `sterna` on the command line writes them.

/** What stands where there is no value. */
export const NOTHING = "-";

const UNITS = ["KiB", "MiB", "GiB", "TiB", "PiB"];

/** A number of bytes in three significant figures: `1.46 GiB`. */
export function bytes(count: number): string {
  if (count < 1024) return `${Math.round(count)} B`;
  let value = count / 1024;
  let unit = 0;
  while (value >= 999.5 && unit + 1 < UNITS.length) {
    value /= 1024;
    unit += 1;
  }
  const decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return `${value.toFixed(decimals)} ${UNITS[unit]}`;
}

/** Bytes per second: `210 MiB/s`. */
export function rate(bytesPerSecond: number): string {
  return `${bytes(Math.max(0, bytesPerSecond))}/s`;
}

/** A span: `850 ms`, `47 s`, `3 min 20 s`, `2 h 05 min`, `3 d 04 h`. */
export function span(seconds: number): string {
  const positive = Math.max(0, seconds);
  if (positive < 0.9995) return `${(positive * 1e3).toFixed(0)} ms`;
  if (positive < 9.95) return `${positive.toFixed(1)} s`;
  const whole = Math.round(positive);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${two(whole % 60)} s`;
  if (whole < 86_400) return `${Math.floor(whole / 3600)} h ${two(Math.floor((whole % 3600) / 60))} min`;
  return `${Math.floor(whole / 86_400)} d ${two(Math.floor((whole % 86_400) / 3600))} h`;
}

/** A response time in milliseconds, or seconds where it is one: `0.85 ms`, `1.2 ms`, `2.5 s`. */
export function response(micros: number | null | undefined): string {
  if (micros === null || micros === undefined) return NOTHING;
  const ms = Math.max(0, micros) / 1e3;
  if (ms < 1) return `${ms.toFixed(2)} ms`;
  if (ms < 1000) return `${ms.toFixed(1)} ms`;
  return `${(ms / 1e3).toFixed(1)} s`;
}

/** Milliseconds for a column, in at most six places: `0`, `0.085`, `0.85`, `12.3`, `4200`. */
export function ms(micros: number | null | undefined): string {
  if (micros === null || micros === undefined) return NOTHING;
  const value = micros / 1e3;
  if (value === 0) return "0";
  if (value < 0.0995) return value.toFixed(3);
  if (value < 9.995) return value.toFixed(2);
  if (value < 99.95) return value.toFixed(1);
  return value.toFixed(0);
}

/** A number of requests per second: `0.4`, `1250`, `12.3k`. */
export function iops(count: number | null | undefined): string {
  if (count === null || count === undefined) return NOTHING;
  if (count > 0 && count < 9.95) return count.toFixed(1);
  if (count < 9999.5) return count.toFixed(0);
  if (count < 99_950) return `${(count / 1e3).toFixed(1)}k`;
  return `${(count / 1e3).toFixed(0)}k`;
}

/** MiB per second for a column. */
export function mib(bytesPerSecond: number): string {
  return iops(bytesPerSecond / 1_048_576);
}

/** A part of something: `97%`, `98.2%`. */
export function percent(part: number): string {
  return `${(part * 100).toFixed(1).replace(/\.0$/, "")}%`;
}

/** A part of something, to the percent. */
export function wholePercent(part: number): string {
  return `${(part * 100).toFixed(0)}%`;
}

/** `1 disk`, `2 disks`, `1,482 disks`. */
export function count(number: number, noun: string, plural = `${noun}s`): string {
  return `${grouped(number)} ${number === 1 ? noun : plural}`;
}

/** A whole number with its thousands apart. */
export function grouped(number: number): string {
  return Math.round(number).toString().replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

const SIZE = /^\s*(\d+(?:\.\d+)?)\s*([KMGTP]?)(?:i?B)?\s*$/i;

/** Bytes as people write them on the command line (`64K`, `10G`, `200M`), or nothing. */
export function parseBytes(text: string): number | null {
  const found = SIZE.exec(text);
  if (!found) return null;
  const power = "KMGTP".indexOf(found[2]!.toUpperCase()) + 1;
  return found[2] ? Math.round(Number(found[1]) * 1024 ** power) : Math.round(Number(found[1]));
}

/** A response time as people write it (`5ms`, `0.5s`, `800us`), in microseconds, or nothing. */
export function parseResponse(text: string): number | null {
  const found = /^\s*(\d+(?:\.\d+)?)\s*(us|ms|s)\s*$/.exec(text);
  if (!found || Number(found[1]) === 0) return null;
  return Math.round(Number(found[1]) * { us: 1, ms: 1e3, s: 1e6 }[found[2] as "us" | "ms" | "s"]);
}

/** A percentage above 0 and at most 100 (`97%`, `97`), as a part of one, or nothing. */
export function parsePercent(text: string): number | null {
  const found = /^\s*(\d+(?:\.\d+)?)\s*%?\s*$/.exec(text);
  const part = found ? Number(found[1]) / 100 : 0;
  return part > 0 && part <= 1 ? part : null;
}

function two(number: number): string {
  return number.toString().padStart(2, "0");
}
