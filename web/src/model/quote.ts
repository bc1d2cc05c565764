// Command lines that can be copied into a shell. Names are whatever somebody has chosen: what
// is not plainly harmless is quoted, and what cannot be seen is written out.

const HARMLESS = /^[A-Za-z0-9_.,:=@%+/-]+$/;
// Control characters, and marks that change the direction of text or have no width.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/;

/** A name without what cannot be seen, where there is no other way to keep it in its place. */
export function seen(text: string): string {
  return [...text].filter((one) => !UNSEEN.test(one)).join("");
}

/** One word of a command line. */
export function word(text: string): string {
  if (HARMLESS.test(text)) return text;
  if (!UNSEEN.test(text)) return `'${text.replaceAll("'", "'\\''")}'`;
  const inside = [...text].map((one) => {
    if (one === "'" || one === "\\") return `\\${one}`;
    if (!UNSEEN.test(one)) return one;
    return `\\u${one.codePointAt(0)!.toString(16).padStart(4, "0")}`;
  });
  return `$'${inside.join("")}'`;
}

/** A command of words and options; what is nothing is left out. */
export function command(...parts: (string | number | null | undefined | false)[]): string {
  const words = parts.filter((part): part is string | number => part !== null && part !== undefined && part !== false);
  return ["sterna", ...words.map((part) => word(String(part)))].join(" ");
}

/** An option with its value, for `command`. */
export function option(name: string, value: string | number | null | undefined): (string | number)[] {
  return value === null || value === undefined || value === "" ? [] : [name, value];
}

/** A piece of a hint: text, or a command in it. */
export interface Piece {
  text: string;
  isCommand: boolean;
}

/** The pieces of a text in which commands are between backticks. */
export function pieces(text: string): Piece[] {
  return text
    .split("`")
    .map((part, at) => ({ text: part, isCommand: at % 2 === 1 }))
    .filter((piece) => piece.text !== "");
}
