"use strict";
// Draws the charts. All of them share the time axis and the cursor.
const data = JSON.parse(document.getElementById("data").textContent);
const place = document.getElementById("charts");
const HEIGHT = 240;
// So many numbers of events stand one below the other, if they would meet.
const ROWS = 8;

const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const two = number => String(number).padStart(2, "0");

// Minutes and seconds; in an experiment of hours, hours and minutes, with seconds if there are any.
const clock = seconds => {
  const sign = seconds < 0 ? "-" : "", whole = Math.abs(seconds);
  const rest = whole % 60, shown = Number.isInteger(rest) ? String(rest) : rest.toFixed(2);
  if (data.in_hours) {
    const minutes = Math.floor(whole / 60), seconds = Math.floor(rest);
    return `${sign}${Math.floor(minutes / 60)}:${two(minutes % 60)}${seconds ? `:${two(seconds)}` : ""}`;
  }
  return `${sign}${Math.floor(whole / 60)}:${shown.padStart(Number.isInteger(rest) ? 2 : 5, "0")}`;
};

const figure = value => {
  if (value === null || value === undefined) return "-";
  const size = Math.abs(value);
  return value.toFixed(size < 10 ? 2 : size < 100 ? 1 : 0);
};

// Targets with their tolerance, behind the lines.
function strips(plot, chart) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.fillStyle = colour("--band");
  for (const strip of chart.strips) {
    const left = plot.valToPos(strip.from_s, "x", true);
    const right = plot.valToPos(strip.until_s, "x", true);
    // A logarithmic axis has no place for a band that begins at zero.
    const at = value => plot.valToPos(Math.max(value, plot.scales.y.min), "y", true);
    const top = at(strip.high), bottom = at(strip.low);
    // A band that is too thin to be seen is no band.
    ctx.fillRect(left, top, right - left, Math.max(bottom - top, 2 * devicePixelRatio));
  }
  ctx.restore();
}

// A line for each event, with its number. Numbers that would meet go lower.
function events(plot) {
  const { ctx, bbox } = plot, pixel = devicePixelRatio;
  ctx.save();
  ctx.font = `${10 * pixel}px system-ui, sans-serif`;
  ctx.textAlign = "left";
  ctx.textBaseline = "top";
  ctx.lineWidth = pixel;
  let last = -Infinity, row = 0;
  data.events.forEach((event, at) => {
    const x = Math.round(plot.valToPos(event.at_s, "x", true));
    if (x < bbox.left || x > bbox.left + bbox.width) return;
    row = x - last < 16 * pixel ? (row + 1) % ROWS : 0;
    last = x;
    ctx.strokeStyle = ctx.fillStyle = colour("--quiet");
    ctx.globalAlpha = .55;
    ctx.setLineDash([3 * pixel, 3 * pixel]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.globalAlpha = 1;
    ctx.fillText(String(at + 1), x + 3 * pixel, bbox.top + (2 + 11 * row) * pixel);
  });
  ctx.restore();
}

// Of a logarithmic axis: the powers of ten around the values.
function decades(_, low, high) {
  const from = 10 ** Math.floor(Math.log10(low > 0 ? low : .1));
  const until = 10 ** Math.ceil(Math.log10(high > 0 ? high : 1));
  return [from, Math.max(until, from * 10)];
}

const isDecade = value => Math.abs(Math.log10(value) - Math.round(Math.log10(value))) < 1e-6;

// From a second to a day.
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 21600, 43200, 86400];

function draw(chart) {
  const head = document.createElement("h3");
  head.append(chart.title, " ");
  const unit = document.createElement("span");
  unit.append(chart.is_logarithmic ? `${chart.unit}, logarithmic` : chart.unit);
  head.append(unit);
  place.append(head);
  const log = chart.is_logarithmic;
  // A logarithm has no zero.
  const drawn = values => log ? values.map(value => value > 0 ? value : null) : values;
  // A grid of ninths would be denser than the lines.
  const filter = (_, ticks) => ticks.map(tick => log && !isDecade(tick) ? null : tick);
  const axis = (filter = (_, ticks) => ticks) => ({
    stroke: () => colour("--quiet"),
    grid: { stroke: () => colour("--rule"), width: 1, filter },
    ticks: { stroke: () => colour("--rule"), width: 1, filter },
  });
  const lines = chart.lines.map((line, at) => ({
    label: line.name,
    stroke: () => colour(`--line${at % 4}`),
    width: 1.5,
    points: { show: false },
    value: (_, value) => figure(value),
  }));
  return new uPlot({
    width: place.clientWidth,
    height: HEIGHT,
    scales: { x: { time: false }, y: log ? { distr: 3, log: 10, range: decades } : { range: (_, low, high) => [0, Math.max(high, 1e-9) * 1.08] } },
    cursor: { sync: { key: "time" }, drag: { x: true, y: false } },
    axes: [
      { ...axis(), values: (_, ticks) => ticks.map(clock), incrs: STEPS },
      {
        ...axis(filter),
        size: 68,
        filter,
        values: (_, ticks) => ticks.map(tick => tick === null ? "" : tick.toLocaleString("en")),
      },
    ],
    series: [{ label: "at", value: (_, value) => value === null ? "-" : clock(value) }, ...lines],
    hooks: { drawClear: [plot => strips(plot, chart)], draw: [events] },
  }, [chart.at_s, ...chart.lines.map(line => drawn(line.values))], place);
}

const plots = data.charts.map(draw);
addEventListener("resize", () => plots.forEach(plot => plot.setSize({ width: place.clientWidth, height: HEIGHT })));
// Colours are looked up at each drawing, so that drawing again is enough.
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plots.forEach(plot => plot.redraw(false, true)));
