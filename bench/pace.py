"""The guard and QEMU's mirror at one pace: beside whom does an application keep more?

Sterna moves a disk to and fro under a steady application, guarded. Then QEMU's mirror
does, at the static speed with which it takes as long. At equal time, what is kept is to
compare without a line through other points, and many moves beside one fio vary less
than many runs of it: each is compared with the seconds before and after it. The two
take turns.

How far apart two of those stretches are on average, with nobody moving anything, is said
as well: what is kept cannot be known better than that by a single move.

Then it is moved with a bound on the application's p99, and its windows are counted, in
the moves, of which there are a hundred windows' time, and after them. The bound is twice
what nine in ten of its windows are within by themselves; on a machine that others use as
well, twice what is usual is passed by every tenth window, whoever moves.

Bursty applications are not here: in the time that Sterna takes for them no static speed
is anywhere near (part `guard`).
"""

import os
import statistics

import guard
import load
from table import Bars, median, table, within

KEEPS, MIRROR, BOUNDED = "sterna, --keep 97%", "mirror", guard.CEILING
# Moves beside one fio, or as many as take so many seconds; each repeat of the benchmark
# is a turn of all.
MOVES, ENOUGH = 4, 100.0
# A mirror that takes so many times as long does not end: it is slower than what the
# application writes.
PATIENCE = 2.0
# Seconds before the first and after each, and windows of the response time.
CALM, CALM_WINDOWS = 6.0, 2
# The part of its windows that an application is within by itself.
WITHIN = 0.9
# Windows that a bound is judged by, in time.
JUDGED = 100


def run(bench):
    out = {}
    for place, contestants in guard.places(bench).items():
        for what, settings in guard.cases(place):
            if bench.only in what and "thinktime" not in settings:
                places = bench.places(emulated=place != guard.REAL)
                runs = case(bench, contestants, settings, places)
                out[what] = {"runs": runs, "bars": judge(what, runs)}
    return out


def case(bench, contestants, settings, places):
    """The moves of each contestant under one application."""
    guarded, mirror = contestants
    runs = {KEEPS: [], MIRROR: [], BOUNDED: []}
    for _ in range(bench.repeats):
        runs[KEEPS] += several(bench, guarded(), settings, places)
        pace = median([one["seconds"] for one in runs[KEEPS]])
        theirs = mirror(int(bench.size / pace))
        theirs.limit = PATIENCE * pace
        runs[MIRROR] += several(bench, theirs, settings, places)
        usual = [p99 for one in runs[KEEPS] + runs[MIRROR] for p99 in one["usual_ms"]]
        bound = within(usual, WITHIN) * guard.P99_FACTOR
        bounded = guarded(("--p99", f"{bound:.2f}ms"))
        runs[BOUNDED] += several(bench, bounded, settings, places, bound)
    return runs


def several(bench, mover, settings, places, bound=None):
    """Some moves beside one application, and how each of them went. What is in bound is
    told of two stretches: that of the move, and the calm one after it."""
    source, destination = places
    load.fill(source, bench.size)
    mover.how = ("--no-verify",)
    wide = guard.width(settings)
    calm = max(CALM, CALM_WINDOWS * wide)
    count, enough = (MOVES, ENOUGH) if bound is None else (JUDGED, JUDGED * wide)
    found, moves = load.beside(bench, mover, settings, places, calm, calm,
                               count, enough)
    # An odd number of moves has taken it along.
    if os.path.exists(source):
        os.unlink(source)
    calms = [(began - calm, began) for began, _, _ in moves]
    calms.append((moves[-1][1], moves[-1][1] + calm))
    windows = [[one["p99_ms"] for one in guard.windows_of(found, settings, *stretch)]
               for stretch in calms]
    bound = bound or median(sum(windows, [])) * guard.P99_FACTOR
    good = guard.counted(found, settings, bound)
    usual = [load.iops(good, *stretch) for stretch in calms]
    out = []
    for number, (began, over, ended) in enumerate(moves):
        around = statistics.mean(usual[number:number + 2])
        apart = abs(usual[number + 1] - usual[number]) / max(0.1, around)
        out.append({"kept": load.iops(good, began, over) / max(0.1, around), "apart": apart,
                    "seconds": over - began, "ended": ended, "usual_ms": windows[number + 1],
                    "beside": in_bound(bound, [one["p99_ms"] for one in guard.windows_of(
                        found, settings, began, over)]),
                    "after": in_bound(bound, windows[number + 1])})
    return out


def in_bound(bound, windows):
    """How many windows are in the bound, and how many there are."""
    return sum(p99 <= bound for p99 in windows), len(windows)


def counts(many, where):
    """Of the windows of all moves, how many were in the bound, and how many there are."""
    return [sum(one[where][at] for one in many) for at in (0, 1)]


def part(many, where):
    """The part of the windows of all moves that was in the bound."""
    good, all_of_them = counts(many, where)
    return good / all_of_them


def mean(many):
    """What was kept on average, and its standard error."""
    values = [one["kept"] for one in many]
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return statistics.mean(values), error


def judge(what, runs):
    kept = {name: mean(many) for name, many in runs.items()}
    table(f"At one pace, {what}",
          ["program", "moves", "kept", "apart", "time", "in bound", "after"],
          [[name, f"{len(many)}", "{:.3f} ± {:.3f}".format(*kept[name]),
            f"{statistics.mean(one['apart'] for one in many):.3f}",
            f"{guard.middle(many, 'seconds'):.1f} s" if guard.ended(many)
            else "no end", *("{}/{}".format(*counts(many, where)) for where in ("beside", "after"))]
           for name, many in runs.items()])
    bars = Bars()
    bars.at_least(f"{what}: kept", kept[KEEPS][0], guard.KEEP)
    if guard.ended(runs[MIRROR]):
        # Nobody keeps more than everything.
        ours, theirs = (min(1.0, kept[name][0]) for name in (KEEPS, MIRROR))
        bars.at_least(f"{what}: kept more than by the mirror", ours - theirs,
                      -guard.LOSS_MIN)
    # A machine whose windows are beyond the bound by themselves is nobody's failure.
    bars.at_least(f"{what}: windows under the p99 asked for",
                  min(1.0, part(runs[BOUNDED], "beside")
                      / max(0.01, part(runs[BOUNDED], "after"))), guard.WINDOWS_KEPT)
    bars.show(f"At one pace, {what}: bars")
    return bars.rows
