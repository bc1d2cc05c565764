"""Small pictures: points and a line, in panels, as one SVG without scripts."""

import html
from dataclasses import dataclass

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 300, 220, 46, 30, 12, 34
COLUMNS = 3
OURS, THEIRS, INK = "#0b6e99", "#c0562b", "#444"


@dataclass
class Panel:
    """Our points and the line of the others, (x, y) each."""

    title: str
    ours: list
    line: list


def draw(panels, x_name, y_name, ours_name, line_name):
    """The panels as SVG. The x axis begins at zero, the y axis goes from 0 to 1.2."""
    rows = (len(panels) + COLUMNS - 1) // COLUMNS
    width, height = COLUMNS * WIDTH, rows * HEIGHT + 40
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
             f'height="{height}" viewBox="0 0 {width} {height}" '
             'font-family="sans-serif" font-size="11">',
             f'<rect width="{width}" height="{height}" fill="white"/>',
             dot(20, 18, OURS), text(30, 22, ours_name),
             dot(200, 18, THEIRS), text(210, 22, line_name),
             text(width - 10, 22, f"{y_name}, over {x_name}", "end")]
    for number, one in enumerate(panels):
        across, down = number % COLUMNS, number // COLUMNS
        parts += panel(one, across * WIDTH, 40 + down * HEIGHT)
    return "\n".join([*parts, "</svg>", ""])


def panel(one, left, top):
    most = max([x for x, _ in [*one.ours, *one.line]] + [1e-3]) * 1.08
    inner = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def place(point):
        x, y = point
        return (left + LEFT + x / most * inner[0],
                top + TOP + (1 - min(max(y, 0), 1.2) / 1.2) * inner[1])
    parts = [text(left + LEFT, top + 18, one.title)]
    for y in (0, 0.5, 0.97):
        (x1, at), (x2, _) = place((0, y)), place((most, y))
        parts.append(f'<line x1="{x1:.1f}" y1="{at:.1f}" x2="{x2:.1f}" y2="{at:.1f}" '
                     'stroke="#ddd"/>')
        parts.append(text(x1 - 4, at + 4, f"{y:g}", "end"))
    base = place((0, 0))[1]
    parts += [text(place((x, 0))[0], base + 16, f"{x:.3g}", "middle")
              for x in (0, most / 2, most)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(place, one.line))
    parts.append(f'<polyline points="{line}" fill="none" stroke="{THEIRS}"/>')
    parts += [dot(*place(point), THEIRS) for point in one.line]
    parts += [dot(*place(point), OURS) for point in one.ours]
    return parts


def dot(x, y, color):
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{color}"/>'


def text(x, y, words, anchor="start"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{INK}">'
            f'{html.escape(words)}</text>')
