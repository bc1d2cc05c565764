"""A terminal's screen: as much of one as Sterna's commands use.

Text, line ends, movements of the cursor, erasing, and the colours of SGR. What else a
program sends is an error, so that a recording cannot be silently wrong.
"""

import re

COLUMNS, ROWS = 80, 20

ESCAPE = re.compile(r"\033\[([?0-9;]*)([A-Za-z])|\033[=>]|\033\][^\007]*\007")


class Screen:
    def __init__(self):
        self.lines = [self.blank() for _ in range(ROWS)]
        self.row = self.column = 0
        self.style = ("", False, False)  # colour, bold, dim
        self.rest = ""

    @staticmethod
    def blank():
        return [(" ", ("", False, False))] * COLUMNS

    def write(self, data):
        data, self.rest = self.rest + data, ""
        at = 0
        while at < len(data):
            if data[at] == "\033":
                found = ESCAPE.match(data, at)
                if not found:
                    if len(data) - at < 16:
                        self.rest = data[at:]  # the rest of it is still to come
                        return
                    raise ValueError(f"an escape sequence that is not known: {data[at:at + 12]!r}")
                if found.group(2):
                    self.control(found.group(1), found.group(2))
                at = found.end()
                continue
            self.put(data[at])
            at += 1

    def put(self, character):
        if character == "\r":
            self.column = 0
        elif character == "\n":
            self.row += 1
            if self.row == ROWS:
                self.lines = self.lines[1:] + [self.blank()]
                self.row -= 1
        elif character >= " ":
            if self.column == COLUMNS:
                self.put("\r")
                self.put("\n")
            self.lines[self.row][self.column] = (character, self.style)
            self.column += 1

    def control(self, numbers, what):
        if numbers.startswith("?"):
            return  # the cursor is hidden, or shown: we draw none
        values = [int(number or 0) for number in numbers.split(";")]
        step = max(values[0], 1)
        if what == "A":
            self.row = max(self.row - step, 0)
        elif what == "B":
            self.row = min(self.row + step, ROWS - 1)
        elif what == "C":
            self.column = min(self.column + step, COLUMNS)
        elif what == "D":
            self.column = max(self.column - step, 0)
        elif what == "G":
            self.column = min(step - 1, COLUMNS - 1)
        elif what == "K":
            start = 0 if values[0] == 2 else self.column
            for column in range(start, COLUMNS):
                self.lines[self.row][column] = (" ", ("", False, False))
        elif what == "J":
            self.control("0", "K")
            for row in range(self.row + 1, ROWS):
                self.lines[row] = self.blank()
        elif what == "m":
            self.colour(values)
        else:
            raise ValueError(f"CSI {numbers}{what} is not known")

    def colour(self, values):
        colour, bold, dim = self.style
        values = list(values)
        while values:
            value = values.pop(0)
            if value == 0:
                colour, bold, dim = "", False, False
            elif value == 1:
                bold = True
            elif value == 2:
                dim = True
            elif value == 22:
                bold = dim = False
            elif 30 <= value <= 37 or 90 <= value <= 97:
                colour = str(value)
            elif value == 38 and values[:1] == [5]:
                colour, values = str(30 + values[1] % 8), values[2:]
            elif value == 39:
                colour = ""
            elif value not in (3, 4, 23, 24, 49):
                raise ValueError(f"SGR {value} is not known")
        self.style = (colour, bold, dim)

    def rows(self):
        """Each row as a tuple of runs: (column, text, style)."""
        return tuple(runs(line) for line in self.lines)

    def text(self):
        return ["".join(character for character, _ in line).rstrip() for line in self.lines]


def runs(line):
    found, column = [], 0
    while column < COLUMNS:
        style, start, text = line[column][1], column, ""
        while column < COLUMNS and line[column][1] == style:
            text += line[column][0]
            column += 1
        if text.strip():
            lead = len(text) - len(text.lstrip())
            found.append((start + lead, text.strip(), style))
    return tuple(found)
