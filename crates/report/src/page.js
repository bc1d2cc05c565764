"use strict";
// Draws the charts. All of them share the time axis and the cursor.
const data = JSON.parse(document.getElementById("data").textContent);
const place = document.getElementById("charts");
const HEIGHT = 240;

const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const clock = seconds => {
  const sign = seconds < 0 ? "-" : "", whole = Math.abs(seconds);
  const rest = whole % 60, shown = Number.isInteger(rest) ? String(rest) : rest.toFixed(2);
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
    const top = plot.valToPos(strip.high, "y", true);
    const bottom = plot.valToPos(strip.low, "y", true);
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
    row = x - last < 16 * pixel ? (row + 1) % 3 : 0;
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

function draw(chart) {
  const head = document.createElement("h3");
  head.append(chart.title, " ");
  const unit = document.createElement("span");
  unit.append(chart.unit);
  head.append(unit);
  place.append(head);
  const axis = () => ({
    stroke: () => colour("--quiet"),
    grid: { stroke: () => colour("--rule"), width: 1 },
    ticks: { stroke: () => colour("--rule"), width: 1 },
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
    scales: { x: { time: false }, y: { range: (_, low, high) => [0, Math.max(high, 1e-9) * 1.08] } },
    cursor: { sync: { key: "time" }, drag: { x: true, y: false } },
    axes: [
      { ...axis(), values: (_, ticks) => ticks.map(clock), incrs: [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600] },
      { ...axis(), size: 60, values: (_, ticks) => ticks.map(tick => tick.toLocaleString("en")) },
    ],
    series: [{ label: "at", value: (_, value) => value === null ? "-" : clock(value) }, ...lines],
    hooks: { drawClear: [plot => strips(plot, chart)], draw: [events] },
  }, [chart.at_s, ...chart.lines.map(line => line.values)], place);
}

const plots = data.charts.map(draw);
addEventListener("resize", () => plots.forEach(plot => plot.setSize({ width: place.clientWidth, height: HEIGHT })));
// Colours are looked up at each drawing, so that drawing again is enough.
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plots.forEach(plot => plot.redraw(false, true)));
