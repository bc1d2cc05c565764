"""The guard against static speeds: what an application keeps, and how long it takes.

QEMU's mirror is given five speeds; each gives a point, kept IO/s against time, and
the points a line. Sterna is told what the application must keep. Where the two keep
the same, the times are compared: that is what the guard is worth.

The application is fio over NBD. What it keeps is what it did during the move, against
what the same fio did on the same server in the seconds before and after. On emulated
arrays both movers work on disks of one Sterna daemon whose datastores are the arrays,
the mirror through NBD.
"""

import os
import time

import load
import plot
from movers import ArrayMirror, GuardedMover, Mirror
from table import Bars, median, table

APPLICATIONS = {
    "data": {"rw": "randread", "bs": "64k"},
    "index": {"rw": "randread", "bs": "64k", "random_distribution": "zipf:0.8"},
    "log": {"rw": "write", "bs": "8k", "fsync": 1},
    "bursty": {"rw": "randread", "bs": "64k", "thinktime": "3s",
               "thinktime_iotime": "2s"},
}
LOADS = {"idle": {"iodepth": 1, "rate_iops": 2}, "low": {"iodepth": 2},
         "high": {"iodepth": 16}}
# A cycle of the bursty one: on for 2 s, off for 3 s.
CYCLE = 5.0
# Seconds before the move: two cycles.
BEFORE = 2 * CYCLE
KEEP = 0.97
# A smaller loss is not told from none.
LOSS_MIN = 0.01
# A response time counts as kept if it stays under so many times the one before.
P99_FACTOR = 3.0
# Windows of the response time, and the part of them that must be kept.
WINDOW = 1.0
WINDOWS_KEPT = 0.99
# Parts of the time that a move takes alone: what the mirror's five speeds are.
SPEEDS = [1.0, 0.5, 0.25, 0.12, 0.06]


def once(bench, mover, settings, places):
    """One move under an application."""
    found, began, over, ended = load.around(bench, mover, settings, places, BEFORE, CYCLE)
    # A bursty one is judged by what it does while it does anything, until the end of
    # the burst that comes after the move.
    bursty = "thinktime" in settings
    until = over + CYCLE if bursty else over
    iops = load.iops_at_work if bursty else load.iops
    usual = iops(found, began - BEFORE, began)
    if not bursty:
        usual = (usual + iops(found, over, over + CYCLE)) / 2
    kept = iops(found, began, until) / max(0.1, usual)
    before = load.window(found, began - CYCLE, began)
    during = load.window(found, began, max(over, began + 0.2))
    bound = before["p99_ms"] * P99_FACTOR
    windows = [load.window(found, at, at + WINDOW)["p99_ms"]
               for at in steps(began, over)]
    return {"before": before, "during": during, "seconds": over - began,
            "ended": ended, "kept": kept,
            "in_bound": sum(p99 <= bound for p99 in windows) / max(1, len(windows))}


def steps(began, over):
    at = began
    while at + WINDOW <= over:
        yield at
        at += WINDOW


def alone(bench, mover, source, destination):
    """How long the move takes with nobody on the disk."""
    mover.prepare(source, destination)
    try:
        began = time.time()
        mover.move()
        return time.time() - began
    finally:
        mover.end()


def on_line(points, kept):
    """The time at which a line through points (kept, seconds) keeps so much. Beyond its
    slowest point what is lost is taken to be in proportion to the speed; below its
    fastest one, that is as fast as it goes."""
    points = sorted(points)
    if kept <= points[0][0]:
        return points[0][1]
    for (low, fast), (high, slow) in zip(points, points[1:]):
        if kept <= high:
            part = (kept - low) / max(1e-9, high - low)
            return fast + part * (slow - fast)
    best, slow = points[-1]
    return slow * max(1.0, (1.0 - best) / max(LOSS_MIN, 1.0 - kept))


def run(bench):
    out = {}
    for place, contestants in places(bench).items():
        guarded, mirror = contestants
        source, destination = bench.places()
        load.fill(source, bench.size)
        least = median([alone(bench, mirror(None), source, destination)
                        for _ in range(bench.repeats)])
        speeds = [int(bench.size / least * part) for part in SPEEDS]
        for name, pattern in APPLICATIONS.items():
            for level, depth in LOADS.items():
                what = f"{place}, {name}, {level}"
                if bench.only not in what or (name == "bursty" and level == "idle"):
                    continue
                settings = {**pattern, **depth}
                movers = [guarded()] + [mirror(speed) for speed in speeds]
                runs = {mover.name: [] for mover in movers}
                for repeat in range(bench.repeats):
                    for mover in bench.turn(movers, repeat):
                        runs[mover.name].append(
                            once(bench, mover, settings, (source, destination)))
                out[what] = judge(what, name, runs)
                picture(bench, out)
        os.unlink(source)
    return out


def picture(bench, out):
    """Kept against time, a panel for each case; anew after each."""
    panels = []
    for what, one in out.items():
        points = {mover: [(run["seconds"], run["kept"]) for run in runs]
                  for mover, runs in one["runs"].items()}
        ours = points.pop(GuardedMover.name)
        line = [tuple(map(median, zip(*many))) for many in points.values()]
        panels.append(plot.Panel(what, ours, sorted(line)))
    bench.keep("guard.svg", plot.draw(
        panels, "time of the move, s", "part of its IO/s that the application keeps",
        "sterna, --keep 97%", "QEMU's mirror at five static speeds"))


def places(bench):
    found = {"disk": (lambda: GuardedMover(bench), lambda speed: Mirror(
        bench, speed=speed))}
    for array in ("old-fc", "flash-2010"):
        found[array] = (lambda array=array: GuardedMover(bench, array),
                        lambda speed, array=array: ArrayMirror(bench, array, speed))
    return found


def judge(what, name, runs):
    middle = {mover: {key: median([run[key] for run in many])
                      for key in ("kept", "seconds", "in_bound")}
              for mover, many in runs.items()}
    table(f"The guard, {what}", ["program", "kept", "time", "windows in bound"],
          [[mover, f"{one['kept']:.3f}", f"{one['seconds']:.1f} s",
            f"{one['in_bound']:.2f}"] for mover, one in middle.items()])
    ours = middle.pop(GuardedMover.name)
    line = [(one["kept"], one["seconds"]) for one in middle.values()]
    faster = on_line(line, ours["kept"]) / max(0.01, ours["seconds"])
    bars = Bars()
    bars.at_least(f"{what}: kept", ours["kept"], KEEP)
    bars.at_least(f"{what}: times faster than a static speed that keeps as much",
                  faster, 1.25 if name == "bursty" else 1.0)
    bars.show(f"The guard, {what}: bars")
    return {"runs": runs, "bars": bars.rows}
