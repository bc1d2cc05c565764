// The address holds everything that is shown, so that a link is a report: `#/disks?sort=-p99`.

import { arrived } from "./places.ts";

interface Route {
  /** The screen. */
  screen: string;
  /** The name in the address, if there is one. */
  name: string;
  params: URLSearchParams;
}

function read(): Route {
  const hash = location.hash.startsWith("#/") ? location.hash.slice(2) : "";
  const [path = "", query = ""] = hash.split("?", 2);
  const at = path.indexOf("/");
  const screen = at < 0 ? path : path.slice(0, at);
  return { screen: screen || "now", name: at < 0 ? "" : decode(path.slice(at + 1)), params: new URLSearchParams(query) };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

let current = $state.raw(read());

export const route = {
  get screen() {
    return current.screen;
  },
  get name() {
    return current.name;
  },
  /** A parameter, or what stands for it if it is not there. */
  get(name: string, otherwise = ""): string {
    return current.params.get(name) ?? otherwise;
  },
  get params() {
    return current.params;
  },
  /** The address is the key of what is shown. */
  get key() {
    return `${current.screen}/${current.name}`;
  },
};

/** Whether the page is shown on a wall: without controls. */
export const wall = new URLSearchParams(location.search).get("wall") === "1" || read().params.get("wall") === "1";

addEventListener("hashchange", () => {
  current = read();
});

/** Shows something else. */
export function go(where: string): void {
  location.hash = where.replace(/^#/, "");
}

/** Changes parameters of what is shown; `null` or nothing takes one away. */
export function set(changes: Record<string, string | null>, push = false): void {
  const params = new URLSearchParams(current.params);
  for (const [name, value] of Object.entries(changes)) {
    if (value) params.set(name, value);
    else params.delete(name);
  }
  const query = params.toString().replaceAll("%3A", ":").replaceAll("%2C", ",");
  const name = current.name ? `/${encodeURIComponent(current.name)}` : "";
  const screen = current.screen === "now" ? "" : current.screen;
  const hash = `#/${screen}${name}${query ? `?${query}` : ""}`;
  if (hash === location.hash) return;
  if (push) {
    history.pushState(null, "", hash);
    arrived();
  } else history.replaceState(history.state, "", hash);
  current = read();
}
