// PNG files with the 216 colours that have six steps a channel: a third of the size, and what a
// browser draws a little differently is often the same.
import { crc32, deflateSync } from "node:zlib";

const STEPS = 6;
const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

function chunk(kind, data) {
  const named = Buffer.concat([Buffer.from(kind, "latin1"), data]);
  const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  check.writeUInt32BE(crc32(named) >>> 0);
  return Buffer.concat([length, named, check]);
}

/** A picture of these colours, one a byte, row by row. */
export function png(width, height, colours) {
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  // 8 bits, and each is a place in the palette.
  head.set([8, 3], 8);
  const palette = Buffer.alloc(STEPS ** 3 * 3);
  for (let at = 0; at < STEPS ** 3; at += 1) {
    [Math.floor(at / STEPS ** 2), Math.floor(at / STEPS) % STEPS, at % STEPS].forEach((step, channel) => (palette[at * 3 + channel] = step * 51));
  }
  const rows = Buffer.alloc((width + 1) * height);
  for (let row = 0; row < height; row += 1) colours.copy(rows, row * (width + 1) + 1, row * width, (row + 1) * width);
  const packed = deflateSync(rows, { level: 9, memLevel: 9 });
  return Buffer.concat([SIGNATURE, chunk("IHDR", head), chunk("PLTE", palette), chunk("IDAT", packed), chunk("IEND", Buffer.alloc(0))]);
}
