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

const COMMAND_MOST = 500;

/** Called when the daemon no longer knows the session. */
export const onLogout: { call: () => void } = { call: () => {} };

/** A path whose parts are names, which may hold any character. */
export function path(strings: TemplateStringsArray, ...names: (string | number)[]): string {
  return strings.reduce((whole, part, at) => whole + encodeURIComponent(names[at - 1]!) + part);
}

/** A command as a header can carry it: printable ASCII, and not too long. */
export function header(command: string): string {
  // Half of a surrogate pair is no character, and cannot be encoded.
  const whole = command.replace(/\p{Surrogate}/gu, "?");
  const plain = whole.replace(/[^\x20-\x7e]|%/gu, encodeURIComponent);
  return plain.slice(0, COMMAND_MOST);
}

async function ask<T>(method: string, where: string, body?: unknown, command?: string): Promise<T> {
  const init: RequestInit = { method, credentials: "same-origin", cache: "no-store" };
  const headers: Record<string, string> = {};
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    headers["content-type"] = "application/json";
  }
  // The log of what was done names the command that somebody saw.
  if (command) headers["sterna-command"] = header(command);
  init.headers = headers;
  const answer = await fetch(where, init).catch(() => {
    throw new Refusal(0, "unavailable", "The daemon does not answer.", "");
  });
  const said = await answer.json().catch(() => null);
  // Accepted, and nothing is known yet: the body says why.
  if (answer.ok && answer.status !== 202) return said as T;
  if (answer.status === 401 && !where.startsWith("/v1/session")) onLogout.call();
  const words = said?.message ?? `The daemon answered ${answer.status}.`;
  throw new Refusal(answer.status, said?.code ?? "internal", words, said?.hint ?? "");
}

/** Asks for something. Changes nothing. */
export const get = <T>(where: string) => ask<T>("GET", where);

type Method = "POST" | "PUT" | "PATCH" | "DELETE";

/** Has something done; `command` is the command line that it stands for. */
export const send = <T>(method: Method, where: string, body?: unknown, command?: string) => ask<T>(method, where, body, command);
