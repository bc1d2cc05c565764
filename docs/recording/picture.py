"""Frames of a terminal as one SVG, which plays by itself.

Each row of a frame that stays the same for a while is one group with a CSS animation
that shows it then. A viewer that plays no animations, or whose reader asked for less
motion, shows the last frame.
"""

import re
from xml.sax.saxutils import escape

from screen import COLUMNS

WIDTH, HEIGHT = 8.43, 19  # of a character
LEFT, TOP = 18, 52  # of the text
STEP = 0.2  # seconds: faster changes are not shown

COLOURS = {"": "#d8dee9", "31": "#e06c75", "32": "#98c379", "33": "#e5c07b", "34": "#61afef",
           "35": "#c678dd", "36": "#56b6c2", "37": "#d8dee9", "90": "#7f8896", "91": "#e06c75",
           "92": "#98c379", "93": "#e5c07b", "94": "#61afef", "95": "#c678dd", "96": "#56b6c2",
           "97": "#ffffff", "30": "#7f8896"}


def thinned(frames):
    """Of frames that follow each other too fast, the last one."""
    kept = []
    for at, rows in frames:
        if kept and at - kept[-1][0] < STEP:
            kept[-1] = (kept[-1][0], rows)
        else:
            kept.append((at, rows))
    return kept


def spans(frames, until):
    """(row, runs, from, to) for all that is to be seen."""
    found = []
    for row in range(len(frames[0][1])):
        since, shown = 0.0, frames[0][1][row]
        for at, rows in frames[1:] + [(until, None)]:
            now = rows[row] if rows else None
            if now != shown:
                if shown:
                    found.append((row, shown, since, at))
                since, shown = at, now
    return found


def words(runs):
    """The runs, cut where columns are apart: viewers do not agree about spaces."""
    for column, text, style in runs:
        for found in re.finditer(r"\S+(?: \S+)*", text):
            yield column + found.start(), found.group(), style


def text_of(row, runs):
    lines = []
    for column, text, (colour, bold, dim) in words(runs):
        marks = ' font-weight="700"' if bold else ""
        marks += ' opacity="0.65"' if dim else ""
        lines.append(
            f'<text x="{LEFT + column * WIDTH:.1f}" y="{TOP + row * HEIGHT}"'
            f' textLength="{len(text) * WIDTH:.1f}" fill="{COLOURS[colour]}"{marks}>'
            f"{escape(text)}</text>")
    return "".join(lines)


def draw(frames, until, captions):
    frames = thinned(frames)
    used = max((row for _, rows in frames for row, runs in enumerate(rows) if runs), default=0) + 1
    width = LEFT * 2 + COLUMNS * WIDTH
    height = TOP + used * HEIGHT + 4
    rules, groups = [], []
    for number, (row, runs, since, to) in enumerate(spans(frames, until)):
        begin, end = since / until * 100, to / until * 100
        stays = end > 99.999
        steps = [] if begin == 0 else ["0%{opacity:0}"]
        steps.append(f"{begin:.3f}%{{opacity:1}}")
        if not stays:
            steps.append(f"{end:.3f}%{{opacity:0}}")
        steps.append(f"to{{opacity:{1 if stays else 0}}}")
        rules.append(f"@keyframes k{number}{{{''.join(steps)}}}"
                     f"#g{number}{{animation-name:k{number}}}")
        hidden = "" if stays else ' opacity="0"'
        groups.append(f'<g id="g{number}" class="f"{hidden}>{text_of(row, runs)}</g>')
    notes = "".join(f'<text class="n" x="{LEFT}" y="{height + 22 + 18 * line}">{escape(text)}</text>'
                    for line, text in enumerate(captions))
    whole = height + 14 + 18 * len(captions) + 6
    last = "\n".join("  ".join(text for _, text, _ in runs) for runs in frames[-1][1] if runs)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {whole:.0f}" role="img" aria-labelledby="t d">
<title id="t">A disk moves while an application uses it, in a terminal</title>
<desc id="d">{escape(last)}</desc>
<style>
text {{ font: 14px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre; }}
text.n {{ font: 12.5px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #52606d; }}
.f {{ animation-duration: {until:.2f}s; animation-iteration-count: infinite; animation-timing-function: step-end; }}
@media (prefers-color-scheme: dark) {{ text.n {{ fill: #aab4c0; }} }}
@media (prefers-reduced-motion: reduce) {{ .f {{ animation: none !important; }} }}
{chr(10).join(rules)}
</style>
<rect width="{width:.0f}" height="{height:.0f}" rx="10" fill="#1b2129"/>
<circle cx="22" cy="20" r="5.5" fill="#e06c75"/><circle cx="40" cy="20" r="5.5" fill="#e5c07b"/><circle cx="58" cy="20" r="5.5" fill="#98c379"/>
{chr(10).join(groups)}
{notes}
</svg>
"""
