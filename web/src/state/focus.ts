// If what has the focus is removed (a row is deleted, a button becomes another one), the focus goes
// to what is in its place now: a browser would begin at the top of the page again.

const FOCUSABLE = "a[href], button:not([disabled]), input:not([disabled]), select:not([disabled]), summary, [tabindex='0']";

interface Step {
  /** Something around what has the focus. */
  around: Element;
  /** Which one of the things that can have the focus there it is. */
  at: number;
}

let last: Element | null = null;
let steps: Step[] = [];

const focusable = (around: Element) => [...around.querySelectorAll<HTMLElement>(FOCUSABLE)];

function note({ target }: FocusEvent): void {
  if (!(target instanceof HTMLElement) || !target.closest("main")) return;
  last = target;
  steps = [];
  for (let around = target.parentElement; around && around.tagName !== "MAIN"; around = around.parentElement) {
    steps.push({ around, at: focusable(around).indexOf(target) });
  }
}

function look(): void {
  if (!last || last.isConnected) return;
  const main = document.querySelector<HTMLElement>("main");
  // A dialog, or another screen, has seen to it.
  if ((document.activeElement ?? document.body) !== document.body || document.querySelector("dialog[open]")) return;
  last = null;
  for (const { around, at } of steps) {
    if (!around.isConnected) continue;
    const there = focusable(around);
    const next = there[Math.min(Math.max(0, at), there.length - 1)];
    if (!next) continue;
    next.focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
    return;
  }
  main?.focus({ preventScroll: true });
}

/** Watches until the page is closed. */
export function keepFocus(root: Element): void {
  document.addEventListener("focusin", note);
  new MutationObserver(look).observe(root, { childList: true, subtree: true });
}
