// Schedules as people write them (`Mon-Fri 22:00-06:00`), as minutes of a week.

const DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
const DAY = 1440;
export const WEEK = 7 * DAY;

/** A span of the week, in minutes since Monday 00:00; `to` is at most `WEEK`. */
export interface Open {
  from: number;
  to: number;
}

/** The spans in which a schedule is open, in order; nothing if it makes no sense. */
export function parse(text: string): Open[] | null {
  const found: Open[] = [];
  let days: number[] = [0, 1, 2, 3, 4, 5, 6];
  let named = false;
  for (const part of text.split(",").map((one) => one.trim())) {
    const words = /^([A-Za-z]+(?:\s*-\s*[A-Za-z]+)?)?\s*(\d.*)?$/.exec(part);
    if (!part || !words) return null;
    if (words[1]) {
      const these = daysOf(words[1]);
      if (!these) return null;
      // `Mon,Wed 08:00-12:00` has hours only behind the last of its days.
      days = named ? [...days, ...these] : these;
      named = !words[2];
    }
    if (!words[2]) {
      if (!words[1]) return null;
      continue;
    }
    const hours = hoursOf(words[2]);
    if (!hours) return null;
    for (const day of days) found.push(...spans(day, hours));
    named = false;
    days = words[1] ? days : [...days];
  }
  if (named) for (const day of days) found.push({ from: day * DAY, to: (day + 1) * DAY });
  return merged(found);
}

function daysOf(text: string): number[] | null {
  const [first, last] = text.split("-").map((day) => DAYS.indexOf(day.trim().slice(0, 3).toLowerCase()));
  if (first === undefined || first < 0 || (last !== undefined && last < 0)) return null;
  const to = last ?? first;
  const count = ((to - first + 7) % 7) + 1;
  return Array.from({ length: count }, (_, at) => (first + at) % 7);
}

function hoursOf(text: string): { from: number; to: number } | null {
  const found = /^(\d{1,2}):(\d{2})(?::\d{2})?\s*-\s*(\d{1,2}):(\d{2})(?::\d{2})?$/.exec(text.trim());
  if (!found) return null;
  const [from, to] = [Number(found[1]) * 60 + Number(found[2]), Number(found[3]) * 60 + Number(found[4])];
  return from >= DAY || to > DAY || from === to ? null : { from, to };
}

/** A window over midnight belongs to the day on which it begins. */
function spans(day: number, { from, to }: { from: number; to: number }): Open[] {
  const start = day * DAY + from;
  const end = day * DAY + (to > from ? to : to + DAY);
  return end <= WEEK ? [{ from: start, to: end }] : [{ from: start, to: WEEK }, { from: 0, to: end - WEEK }];
}

function merged(all: Open[]): Open[] {
  const made: Open[] = [];
  for (const one of [...all].sort((a, b) => a.from - b.from)) {
    const last = made.at(-1);
    if (last && one.from <= last.to) last.to = Math.max(last.to, one.to);
    else made.push({ ...one });
  }
  return made;
}

/** Whether a schedule is open in a minute of the week; without one it always is. */
export function isOpen(schedule: string | null | undefined, minute: number): boolean {
  if (!schedule) return true;
  const spans = parse(schedule);
  return spans === null || spans.some((span) => span.from <= minute && minute < span.to);
}

/** The first minute of the week in which both are open, or nothing. */
export function overlap(one: string | null | undefined, other: string | null | undefined): number | null {
  const always: Open[] = [{ from: 0, to: WEEK }];
  const [left, right] = [one ? (parse(one) ?? []) : always, other ? (parse(other) ?? []) : always];
  const starts = left.flatMap((a) => right.filter((b) => a.from < b.to && b.from < a.to).map((b) => Math.max(a.from, b.from)));
  return starts.length === 0 ? null : Math.min(...starts);
}

/** `Sat 06:00` */
export function minuteWords(minute: number): string {
  const name = DAYS[Math.floor(minute / DAY)] ?? "mon";
  const within = minute % DAY;
  const two = (value: number) => String(value).padStart(2, "0");
  return `${name[0]!.toUpperCase()}${name.slice(1)} ${two(Math.floor(within / 60))}:${two(within % 60)}`;
}
