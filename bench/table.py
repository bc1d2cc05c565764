"""Medians, tables and verdicts."""

import math
import statistics

# Everything printed, once more as Markdown, for a page of figures.
MARKDOWN = []


def median(values):
    return statistics.median(values)


def within(values, part):
    """What such a part of the values does not exceed: their quantile, by nearest rank."""
    return sorted(values)[math.ceil(len(values) * part) - 1]


def spread(values):
    """How far the values lie apart, as a share of the median."""
    middle = statistics.median(values)
    return (max(values) - min(values)) / middle if middle else 0.0


def quartiles(values):
    """Between which the middle half of the values lies."""
    if len(values) < 2:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def table(title, head, rows):
    """Prints a table; numbers are right-aligned."""
    text = [[cell if isinstance(cell, str) else f"{cell:,.2f}" if cell < 100
             else f"{cell:,.0f}" for cell in row] for row in rows]
    widths = [max(len(row[at]) for row in [head, *text]) for at in range(len(head))]
    MARKDOWN.append(f"## {title}\n")
    MARKDOWN.extend("| " + " | ".join(row) + " |" for row in
                    [head, ["---"] + ["---:"] * (len(head) - 1), *text])
    MARKDOWN.append("")
    print(f"\n{title}\n")
    for row in [head, ["-" * width for width in widths], *text]:
        cells = [cell.ljust(width) if at == 0 else cell.rjust(width)
                 for at, (cell, width) in enumerate(zip(row, widths))]
        print("  " + "  ".join(cells))
    print(flush=True)


class Bars:
    """What must hold, and whether it does."""

    def __init__(self):
        self.rows = []

    def at_least(self, what, value, bar):
        self.rows.append({"what": what, "value": value, "bar": f"at least {bar:g}",
                          "pass": value >= bar})

    def at_most(self, what, value, bar):
        self.rows.append({"what": what, "value": value, "bar": f"at most {bar:g}",
                          "pass": value <= bar})

    def show(self, title):
        table(title, ["what", "value", "bar", "verdict"],
              [[row["what"], f"{row['value']:.2f}", row["bar"],
                "PASS" if row["pass"] else "short"] for row in self.rows])
