"""Predictions against what moves took: between emulated arrays of three kinds, in all
directions, beside applications of several patterns and loads, with and without a
promise.

Moves with nobody there come first, as nothing is known before them. Each of the others
is predicted when it begins, and is a lesson for those after it only. Two numbers in the
program were found with moves like these in virtual time: how long a guard learns, and how
wide the range is under a promise.
"""

import os
import statistics
import time

import load
from movers import CACHES
from servers import Sterna
from table import Bars, median, table

ARRAYS = ["old-fc", "new-fc", "flash-2010"]
# Each of the six directions once, and back at the first.
ROUND = [1, 2, 0, 2, 1, 0]
ROUNDS_BEFORE = 2
APPLICATIONS = {
    "nobody": None,
    "random reads, low": {"rw": "randread", "bs": "8k", "iodepth": 1, "rate_iops": 40},
    "random reads, high": {"rw": "randread", "bs": "8k", "iodepth": 16},
    "large reads, high": {"rw": "randread", "bs": "64k", "iodepth": 8},
    "mixed, medium": {"rw": "randrw", "rwmixread": 70, "bs": "8k", "iodepth": 4},
    "a log": {"rw": "write", "bs": "8k", "iodepth": 1, "fsync": 1},
}
GUARDS = {"no guard": (), "--keep 97%": ("--keep", "97%")}
# What a prediction knows of the application: the daemon's last ten seconds.
KNOWN = 11.0
ERROR_MAX, WITHIN_MIN, MOVES_MIN = 0.10, 0.90, 60


def run(bench):
    # Its state is in memory, too: other work on the machine's disk is not in the figures.
    server = Sterna(bench.tools, bench.sockets, bench.memory)
    server.start_daemon()
    try:
        for array in ARRAYS:
            path = os.path.join(bench.memory, array)
            os.makedirs(path)
            server.call("datastore", "add", array, f"array://{array}?{CACHES}&path={path}")
        # Not by the name of its copies: it stays where it is.
        image = os.path.join(bench.memory, ARRAYS[0], "seed.raw")
        load.fill(image, bench.size)
        server.call("disk", "import", "disk", "--on", ARRAYS[0], image)
        for _ in range(ROUNDS_BEFORE):
            around(server, ())
        moves = []
        for what, settings in APPLICATIONS.items():
            for guard, options in GUARDS.items():
                if settings is None and options:
                    continue
                if bench.only in f"{what}, {guard}":
                    moves += beside(bench, server, what, guard, settings, options)
        return judge(moves)
    finally:
        server.stop()


def around(server, options, pause=0.0):
    """Moves the disk once around; gives the migrations."""
    done = []
    for to in ROUND:
        time.sleep(pause)
        done.append(server.call("migrate", "disk", "--to", ARRAYS[to], *options))
    return done


def beside(bench, server, what, guard, settings, options):
    """Once around beside an application."""
    if settings is None:
        done = around(server, options)
    else:
        job = {**settings, "size": bench.size, "time_based": 1, "runtime": load.LONG}
        with load.Fio(bench.tools["fio"], bench.work, server.uri(), job) as fio:
            time.sleep(load.BEGINS)
            done = around(server, options, KNOWN)
            fio.end()
    found = [{"what": what, "guard": guard, "from": one["from"], "to": one["to"],
              "took": one["report"]["duration_s"], **one["predicted"]} for one in done]
    for one in found:
        print(f"  {what}, {guard}, {one['from']} to {one['to']}: {one['took']:.1f} s of "
              f"{one['likely_s']:.1f} ({one['least_s']:.1f} to {one['most_s']:.1f})",
              flush=True)
    return found


def error(one):
    return one["took"] / one["likely_s"] - 1


def is_within(one):
    return one["least_s"] <= one["took"] <= one["most_s"]


def judge(moves):
    cases = {}
    for one in moves:
        cases.setdefault((one["what"], one["guard"]), []).append(one)
    table("Predictions", ["application", "guard", "moves", "median error", "bias",
                          "within the range", "range, times"],
          [[what, guard, str(len(many)),
            f"{median([abs(error(one)) for one in many]):.1%}",
            f"{median([error(one) for one in many]):+.1%}",
            f"{sum(map(is_within, many))} of {len(many)}",
            f"{statistics.geometric_mean(one['most_s'] / one['least_s'] for one in many):.1f}"]
           for (what, guard), many in cases.items()])
    bars = Bars()
    bars.at_least("moves", len(moves), MOVES_MIN)
    bars.at_most("median error", median([abs(error(one)) for one in moves]), ERROR_MAX)
    bars.at_least("within their range", sum(map(is_within, moves)) / len(moves), WITHIN_MIN)
    bars.show("Predictions: bars")
    return {"moves": moves, "bars": bars.rows}
