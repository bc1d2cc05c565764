// The real daemon for end-to-end tests, in a directory of its own, with an application that
// reads and writes. STERNA names the program. If its own page is not what was built last (the
// program is built by cargo, after the page), a proxy serves the page that is.
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createServer, request } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { DIST, file } from "./files.mjs";

const HERE = dirname(fileURLToPath(import.meta.url));
const APPLICATION = join(HERE, "../../../demo/application.py");
const LOAD = join(HERE, "load.py");

/** The program, if there is one. */
export const STERNA = process.env.STERNA ?? "";

export class Daemon {
  constructor() {
    this.work = mkdtempSync(join(tmpdir(), "sterna-web-"));
    this.socket = join(this.work, "sterna.sock");
    this.children = [];
    this.servers = [];
  }

  /** Runs a command against the daemon. */
  sterna(...words) {
    return execFileSync(STERNA, words, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, STERNA_SOCKET: this.socket } });
  }

  /** Starts it, again on the same state if it was killed. */
  async start() {
    mkdirSync(join(this.work, "state"), { recursive: true });
    this.process = spawn(STERNA, ["serve", "--state", join(this.work, "state"), "--socket", this.socket, "--dashboard", "127.0.0.1:0"], { stdio: "ignore" });
    for (let tries = 0; tries < 200; tries += 1) {
      try {
        this.sterna("status");
        break;
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }
    this.url ??= await this.serve();
    return this;
  }

  /** `kill -9` */
  kill() {
    this.process.kill("SIGKILL");
    return new Promise((resolve) => this.process.once("exit", resolve));
  }

  /** A directory as a datastore. */
  datastore(name, ...options) {
    const path = join(this.work, name);
    mkdirSync(path, { recursive: true });
    this.sterna("datastore", "add", name, path, ...options);
  }

  /** An application that reads and writes on a disk until the daemon ends. */
  load(disk) {
    const directory = join(this.work, `application-${disk}`);
    mkdirSync(directory);
    const uri = `nbd+unix:///${disk}?socket=${join(this.work, "nbd.sock")}`;
    // It runs until its input ends.
    this.children.push(spawn("/usr/bin/python3", [APPLICATION, "run", uri, directory], { stdio: ["pipe", "ignore", "ignore"] }));
  }

  /** Requests of this length in bytes on a disk, so many a second, until the daemon ends. */
  requests(disk, { length, perSecond, queue, write = false }) {
    const uri = `nbd+unix:///${disk}?socket=${join(this.work, "nbd.sock")}`;
    const words = [LOAD, uri, length, perSecond, queue, ...(write ? ["write"] : [])].map(String);
    this.children.push(spawn("/usr/bin/python3", words, { stdio: ["pipe", "ignore", "ignore"] }));
  }

  /** A link to the daemon's own address, for one use. */
  link(...options) {
    const found = /http:\/\/127\.0\.0\.1:\d+\/#link=\S+/.exec(this.sterna("dashboard", "--print", ...options));
    return found[0];
  }

  /** Serves a build of the page, and passes the API on to the daemon's socket. Gives its address. */
  async serve(dist = DIST) {
    const server = createServer((incoming, outgoing) => {
      if (incoming.url.startsWith("/v1/")) this.pass(incoming, outgoing);
      else file(dist, new URL(incoming.url, "http://x").pathname, incoming, outgoing);
    });
    this.servers.push(server);
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${server.address().port}/`;
  }

  pass(incoming, outgoing) {
    const headers = { ...incoming.headers };
    delete headers.origin;
    const asked = request({ socketPath: this.socket, path: incoming.url, method: incoming.method, headers: { ...headers, host: "localhost" } }, (answer) => {
      outgoing.writeHead(answer.statusCode, answer.headers);
      answer.pipe(outgoing);
      answer.on("error", () => outgoing.destroy());
      answer.on("aborted", () => outgoing.destroy());
    });
    asked.on("error", () => outgoing.destroy());
    outgoing.on("close", () => asked.destroy());
    incoming.pipe(asked);
  }

  /** Ends everything. */
  async stop() {
    for (const child of this.children) child.kill("SIGKILL");
    await this.kill();
    for (const server of this.servers) {
      server.closeAllConnections();
      server.close();
    }
    rmSync(this.work, { recursive: true, force: true });
  }
}
