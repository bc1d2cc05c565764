// Asks the daemon that served the page, and nobody else.

/** A refusal in the daemon's words, or no answer at all. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint: string,
  ) {
    super(message);
  }
}

/** Called when the daemon no longer knows the session. */
export const onLogout: { call: () => void } = { call: () => {} };

/** A path whose parts are names, which may hold any character. */
export function path(strings: TemplateStringsArray, ...names: (string | number)[]): string {
  return strings.reduce((whole, part, at) => whole + encodeURIComponent(names[at - 1]!) + part);
}

async function ask<T>(method: string, where: string, body?: unknown): Promise<T> {
  const init: RequestInit = { method, credentials: "same-origin", cache: "no-store" };
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers = { "content-type": "application/json" };
  }
  const answer = await fetch(where, init).catch(() => {
    throw new Refusal(0, "unavailable", "The daemon does not answer.", "");
  });
  const said = await answer.json().catch(() => null);
  if (answer.ok) return said as T;
  if (answer.status === 401 && !where.startsWith("/v1/session")) onLogout.call();
  const words = said?.message ?? `The daemon answered ${answer.status}.`;
  throw new Refusal(answer.status, said?.code ?? "internal", words, said?.hint ?? "");
}

/** Asks for something. Changes nothing. */
export const get = <T>(where: string) => ask<T>("GET", where);

/** Has something done. */
export const send = <T>(method: "POST" | "PUT" | "PATCH" | "DELETE", where: string, body?: unknown) =>
  ask<T>(method, where, body);
