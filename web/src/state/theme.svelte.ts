// Light or dark: as the system says, unless somebody chose.

export type Theme = "system" | "light" | "dark";

const KEY = "sterna.theme";

export const theme = $state<{ chosen: Theme; version: number }>({ chosen: stored(), version: 0 });

function stored(): Theme {
  const value = localStorage.getItem(KEY);
  return value === "light" || value === "dark" ? value : "system";
}

const probe = document.createElement("span");
/** To ask the browser takes long, and each sparkline of each row needs some. */
const known = new Map<string, string>();

/** Draws the page in the chosen theme. */
export function applyTheme(): void {
  const root = document.documentElement;
  if (theme.chosen === "system") delete root.dataset.theme;
  else root.dataset.theme = theme.chosen;
  known.clear();
  // Canvases ask for their colours again.
  theme.version += 1;
}

/** Goes on to the next theme. */
export function nextTheme(): void {
  const all: Theme[] = ["system", "light", "dark"];
  theme.chosen = all[(all.indexOf(theme.chosen) + 1) % all.length]!;
  if (theme.chosen === "system") localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, theme.chosen);
  applyTheme();
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", applyTheme);

/** What a custom property is as a colour now, for a canvas. */
export function colour(name: string): string {
  const before = known.get(name);
  if (before) return before;
  if (!probe.isConnected) {
    probe.hidden = true;
    document.body.append(probe);
  }
  probe.style.color = `var(${name})`;
  const found = getComputedStyle(probe).color;
  known.set(name, found);
  return found;
}
