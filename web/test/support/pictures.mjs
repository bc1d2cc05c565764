// Pictures of the screens, and how those that are committed are compared with those of today. The
// story stands still at one moment, and nothing moves.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { stand } from "../mock/clock.mjs";
import { Mock } from "../mock/server.mjs";
import { SCREENS } from "./browser.mjs";
import { png } from "./png.mjs";

const HERE = dirname(fileURLToPath(import.meta.url));
const KEPT = join(HERE, "../pictures");
const TODAY = join(HERE, "../../target/pictures");

const MOMENT_MS = Date.UTC(2026, 10, 24, 14, 3, 20);
const SIZES = { screen: [1280, 800], large: [1920, 1080], wall: [3840, 2160] };
const THEMES = ["light", "dark"];
/** How much a channel may differ, of 255 in steps of 51, and which part of all pixels may differ more. */
const COLOUR = 51;
const PART = 0.001;
/** What the stream, the timelines and what is asked for after them need to come. */
const COMES_MS = 1_000;
/** A screen is drawn when it looks the same twice, so far apart. */
const APART_MS = 400;
const LOOKS = 12;

/** All views: each screen at each size; the wall has no controls. */
export function all() {
  const found = [];
  for (const [size, [width, height]] of Object.entries(SIZES)) {
    for (const [screen, hash] of Object.entries(SCREENS)) {
      const wall = size === "wall" && screen === "now" ? "?wall=1" : "";
      found.push({ name: `${screen}-${size}`, width, height, where: wall + hash });
    }
  }
  return found;
}

export class Studio {
  static async open(browser) {
    const its = new Studio();
    stand(MOMENT_MS);
    its.browser = browser;
    its.mock = await new Mock({ disks: 120 }).start();
    return its;
  }

  async close() {
    await this.mock.kill();
  }

  async page({ width, height }) {
    const context = await this.browser.newContext({
      viewport: { width, height }, colorScheme: THEMES[0], reducedMotion: "reduce", timezoneId: "UTC", locale: "en-GB", deviceScaleFactor: 1,
    });
    const page = await context.newPage();
    // Before the first word of the daemon the page goes by the one clock, after it by the other; a
    // chart goes by both.
    await page.addInitScript((moment) => {
      Date.now = () => moment;
      performance.now = () => 1_000;
    }, MOMENT_MS);
    return page;
  }

  /** Takes a picture of a view in each theme: their names, and what they show. */
  async take(view) {
    const page = await this.page(view);
    await page.goto(this.mock.url + view.where);
    await page.waitForSelector("h1");
    await page.waitForTimeout(COMES_MS);
    const taken = [];
    for (const theme of THEMES) {
      await page.emulateMedia({ colorScheme: theme });
      taken.push([`${view.name}-${theme}`, await this.small(await settled(page), view)]);
    }
    await page.context().close();
    return taken;
  }

  /** The same with fewer colours. */
  async small(taken, { width, height }) {
    const page = await this.browser.newPage();
    const colours = await page.evaluate(async (text) => {
      const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${text}`)).blob());
      const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
      context.drawImage(image, 0, 0);
      const { data } = context.getImageData(0, 0, image.width, image.height);
      const found = new Uint8Array(data.length / 4);
      const step = (value) => Math.round(value / 51);
      for (let at = 0; at < found.length; at += 1) found[at] = step(data[at * 4]) * 36 + step(data[at * 4 + 1]) * 6 + step(data[at * 4 + 2]);
      const reader = new FileReader();
      return new Promise((resolve) => {
        reader.onload = () => resolve(reader.result.split(",")[1]);
        reader.readAsDataURL(new Blob([found]));
      });
    }, taken.toString("base64"));
    await page.close();
    return png(width, height, Buffer.from(colours, "base64"));
  }

  /** Letters as this machine draws them: with other fonts each picture is another one. */
  async letters() {
    const size = { width: 640, height: 120 };
    const page = await this.page(size);
    await page.setContent(`<style>body { margin: 8px; font: 13.5px/1.45 system-ui, "Segoe UI", "DejaVu Sans", sans-serif } b { font-size: 24px } code { font-family: ui-monospace, "SF Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace }</style>
      Hamburgefonstiv 0123456789 ●▶▲■○ <b>Hamburgefonstiv</b><br><code>sterna migrate db --to slow --keep 97%</code>`);
    const taken = await page.screenshot();
    await page.context().close();
    return this.small(taken, size);
  }

  /** Which part of all pixels differs. */
  async differs(one, other) {
    const page = await this.browser.newPage();
    const part = await page.evaluate(async ([one, other, most]) => {
      const read = async (text) => {
        const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${text}`)).blob());
        const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
        context.drawImage(image, 0, 0);
        return { size: `${image.width}x${image.height}`, pixels: context.getImageData(0, 0, image.width, image.height).data };
      };
      const [a, b] = [await read(one), await read(other)];
      if (a.size !== b.size) return 1;
      let count = 0;
      for (let at = 0; at < a.pixels.length; at += 4) {
        const far = (channel) => Math.abs(a.pixels[at + channel] - b.pixels[at + channel]) > most;
        if (far(0) || far(1) || far(2)) count += 1;
      }
      return count / (a.pixels.length / 4);
    }, [one.toString("base64"), other.toString("base64"), COLOUR]);
    await page.close();
    return part;
  }
}

async function settled(page) {
  let before = null;
  for (let look = 0; look < LOOKS; look += 1) {
    const now = await page.screenshot({ animations: "disabled", caret: "hide" });
    if (before?.equals(now)) return now;
    before = now;
    await page.waitForTimeout(APART_MS);
  }
  throw new Error("the screen never looks the same twice");
}

/** A picture that is committed, if there is one. */
export function kept(name) {
  const path = join(KEPT, `${name}.png`);
  return existsSync(path) ? readFileSync(path) : null;
}

/** Keeps a picture, to be committed. */
export function keep(name, picture) {
  mkdirSync(KEPT, { recursive: true });
  writeFileSync(join(KEPT, `${name}.png`), picture);
}

/** Puts a picture of today where somebody can look at it. */
export function show(name, picture) {
  mkdirSync(TODAY, { recursive: true });
  const path = join(TODAY, `${name}.png`);
  writeFileSync(path, picture);
  return path;
}

/** Whether two pictures are the same for eyes. */
export const same = (part) => part <= PART;
