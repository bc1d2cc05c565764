// Where somebody was on each page of the browser's history: after Back the page is scrolled as it
// was, and the link that led away has the focus again.

interface Place {
  /** How far the page is scrolled, and a table in it that scrolls by itself. */
  page: number;
  table: number;
  /** The link that led away. */
  href: string | null;
}

const TABLE = ".scroll";
/** What is shown comes bit by bit: after so long it is as long as it will be. */
const PATIENCE_MS = 3_000;
const AGAIN_MS = 60;
/** So many pages are remembered. */
const KEPT = 100;

const places = new Map<string, Place>();
let came = false;

/** The name of an entry of the history. Parameters that change in it change nothing about its name. */
function name(): string {
  const known = (history.state as { sterna?: string } | null)?.sterna;
  if (known) return known;
  const made = Math.random().toString(36).slice(2);
  history.replaceState({ sterna: made }, "");
  return made;
}

let current = name();

function place(): Place {
  let its = places.get(current);
  if (!its) {
    its = { page: 0, table: 0, href: null };
    places.set(current, its);
    if (places.size > KEPT) places.delete(places.keys().next().value!);
  }
  return its;
}

/** The page is another entry of the history, which may be an old one. */
export function arrived(): void {
  const link = document.activeElement?.closest?.("a[href]");
  place().href = link?.getAttribute("href") ?? null;
  current = name();
  came = places.has(current);
}

addEventListener("popstate", arrived);
document.addEventListener(
  "scroll",
  ({ target }) => {
    if (!(target instanceof HTMLElement)) return;
    if (target.tagName === "MAIN") place().page = target.scrollTop;
    else if (target.matches(`main ${TABLE}`)) place().table = target.scrollTop;
  },
  { capture: true, passive: true },
);

/** Scrolls a page that is shown again as it was left; another one is at its top. */
export function restore(main: HTMLElement): void {
  const wanted = came ? { ...place() } : null;
  main.scrollTo(0, 0);
  if (!wanted) return;
  const until = performance.now() + PATIENCE_MS;
  let timer = 0;
  const stop = () => {
    clearTimeout(timer);
    for (const kind of ["wheel", "pointerdown", "keydown", "popstate"]) removeEventListener(kind, stop, true);
  };
  /** Whether it is long enough by now. */
  const scrolled = (of: Element | null, to: number) => {
    if (!of || to === 0) return to === 0;
    of.scrollTop = to;
    return Math.abs(of.scrollTop - to) < 2;
  };
  let focused = wanted.href === null;
  const step = () => {
    const done = [scrolled(main, wanted.page), scrolled(main.querySelector(TABLE), wanted.table)];
    if (!focused) {
      const link = [...main.querySelectorAll<HTMLElement>("a[href]")].find((one) => one.getAttribute("href") === wanted.href);
      link?.focus({ preventScroll: true });
      focused = link !== undefined;
    }
    if ((done.every(Boolean) && focused) || performance.now() > until) stop();
    else timer = setTimeout(step, AGAIN_MS);
  };
  // Whoever scrolls meanwhile is not pulled back.
  for (const kind of ["wheel", "pointerdown", "keydown", "popstate"]) addEventListener(kind, stop, true);
  step();
}
