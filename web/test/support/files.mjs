// The page's files, as the daemon serves them.
import { existsSync, readFileSync } from "node:fs";
import { dirname, extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

/** What was built last. */
export const DIST = join(dirname(fileURLToPath(import.meta.url)), "../../../crates/dashboard/dist");

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; report-uri /csp-report";
const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };

/** Answers with a file of a build. */
export function file(dist, path, request, response) {
  const file = join(dist, normalize(path === "/" ? "/index.html" : path));
  if (!file.startsWith(dist) || !existsSync(file)) {
    response.writeHead(404).end();
    return;
  }
  const packed = (request.headers["accept-encoding"] ?? "").includes("br") && existsSync(`${file}.br`);
  const headers = { "content-type": TYPES[extname(file)] ?? "application/octet-stream", "content-security-policy": POLICY, "x-content-type-options": "nosniff", "cache-control": path.startsWith("/assets/") ? "max-age=31536000, immutable" : "no-store" };
  if (packed) headers["content-encoding"] = "br";
  response.writeHead(200, headers).end(readFileSync(packed ? `${file}.br` : file));
}
