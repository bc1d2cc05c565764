// A server for development and tests: what was built, under the policy of the real one, and a
// story behind the API. It knows nothing of disks, and is no part of the product.
import { createServer } from "node:http";
import { clock } from "./clock.mjs";
import { DIST, file } from "../support/files.mjs";
import { answer, refuse, top } from "./routes.mjs";
import { status } from "./site.mjs";
import { World } from "./world.mjs";

export class Mock {
  /** `role`: operator, viewer, or none, who has to come with a link. `dist`: another build. */
  constructor({ port = 0, role = "operator", dist = "", ...story } = {}) {
    this.port = port;
    this.dist = dist || DIST;
    this.role = role;
    this.story = story;
    this.reports = [];
    this.requests = [];
    this.streams = new Set();
    this.mostStreams = 0;
    this.world = new World(story);
  }

  get url() {
    return `http://127.0.0.1:${this.port}/`;
  }

  /** Begins to answer, on the same port as before. A daemon that starts anew has another id. */
  async start() {
    this.sockets = new Set();
    this.server = createServer((request, response) => this.serve(request, response));
    this.server.on("connection", (socket) => {
      this.sockets.add(socket);
      socket.on("close", () => this.sockets.delete(socket));
    });
    await new Promise((resolve) => this.server.listen(this.port, "127.0.0.1", resolve));
    this.port = this.server.address().port;
    this.ticks = setInterval(() => this.tick(), 1000);
    return this;
  }

  /** Ends at once, as `kill -9` would. */
  async kill() {
    clearInterval(this.ticks);
    for (const socket of this.sockets) socket.destroy();
    this.streams.clear();
    await new Promise((resolve) => this.server.close(resolve));
  }

  async restart() {
    this.world.daemon = clock.random().toString(16).slice(2);
    await this.start();
  }

  async serve(request, response) {
    const url = new URL(request.url, this.url);
    this.requests.push(`${request.method} ${url.pathname}${url.search}`);
    let text = "";
    for await (const part of request) text += part;
    if (url.pathname === "/csp-report") {
      this.reports.push(text);
      response.writeHead(204).end();
    } else if (!url.pathname.startsWith("/v1/")) {
      file(this.dist, url.pathname, request, response);
    } else if (url.pathname === "/v1/session") {
      this.session(request.method, text ? JSON.parse(text) : null, response);
    } else if (this.role === "none") {
      this.json(response, refuse(401, "unavailable", "There is no session.", "`sterna dashboard` prints a link"));
    } else if (url.pathname === "/v1/events") {
      this.stream(url.searchParams, response);
    } else if (request.method !== "GET" && this.role === "viewer" && url.pathname !== "/v1/predictions" && !url.pathname.endsWith("/recommendations")) {
      this.json(response, refuse(403, "invalid", "A viewer changes nothing.", "log in as an operator"));
    } else {
      this.json(response, answer(this.world, request.method, url.pathname, url.searchParams, text ? JSON.parse(text) : {}, request.headers["sterna-command"] ?? null));
      if (request.method !== "GET") this.moved();
    }
  }

  json(response, { status: code = 200, body }) {
    response.writeHead(code, { "content-type": "application/json", "cache-control": "no-store" }).end(JSON.stringify(body));
  }

  session(method, body, response) {
    if (method === "DELETE") this.role = "none";
    if (method === "POST" && body?.link === "good") this.role = "operator";
    if (method === "POST" && body?.link !== "good") return this.json(response, refuse(401, "invalid", "This link has been used, or is too old.", "`sterna dashboard` prints another"));
    if (this.role === "none") return this.json(response, refuse(401, "unavailable", "Nobody is logged in here.", ""));
    this.json(response, { body: { role: this.role, user: "root", host: "host-1.example", expires_s: 3600 } });
  }

  stream(query, response) {
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    const stream = { query, response, topics: (query.get("topics") ?? "").split(",") };
    this.streams.add(stream);
    this.mostStreams = Math.max(this.mostStreams, this.streams.size);
    response.on("close", () => this.streams.delete(stream));
    response.write("retry: 1000\n\n");
    this.say(stream, "hello", { now_ms: clock.now(), daemon: this.world.daemon, version: "0.1.0", interval_ms: 1000 });
    this.say(stream, "status", status(this.world));
    this.say(stream, "migrations", this.recent());
    this.say(stream, "activity", this.world.activities.slice(-20), this.world.seq);
    if (stream.topics.includes("top")) this.say(stream, "top", top(this.world, query));
    this.say(stream, "tick", { now_ms: clock.now() });
  }

  say(stream, event, data, id) {
    if (!["hello", "tick"].includes(event) && !stream.topics.includes(event)) return;
    stream.response.write(`${id ? `id: ${id}\n` : ""}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  recent() {
    return this.world.migrations.filter((move) => !move.ended || clock.now() / 1000 - move.ended < 60);
  }

  moved() {
    for (const stream of this.streams) {
      this.say(stream, "migrations", this.recent());
      this.say(stream, "status", status(this.world));
      this.say(stream, "activity", this.world.activities.slice(-3), this.world.seq);
    }
  }

  tick() {
    const changed = !clock.stands && this.world.step();
    for (const stream of this.streams) {
      if (changed) this.say(stream, "migrations", this.recent());
      if (stream.topics.includes("top")) this.say(stream, "top", top(this.world, stream.query));
      this.say(stream, "tick", { now_ms: clock.now() });
    }
  }
}
