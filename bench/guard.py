"""The guard against static speeds: what an application keeps, and how long it takes.

QEMU's mirror is given five speeds; each gives a point, kept IO/s against time, and
the points a line. Sterna is told what the application must keep. Where the two keep
the same, the times are compared: that is what the guard is worth. Then Sterna is told
what the application's p99 may be, and its windows are counted.

Once nobody moves anything for as long as Sterna took: what is "kept" then differs from
one by what the machine does of itself. The others are judged in times of it.

An application that asks at a fixed rate loses nothing before the disk is full; what it
keeps is what is answered within a bound.

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
LOADS = {"idle": {"iodepth": 1, "rate_iops": 20}, "low": {"iodepth": 2},
         "high": {"iodepth": 16}}
# The place that is no emulated array.
REAL = "disk"
# A cycle of the bursty one: on for 2 s, off for 3 s.
CYCLE = 5.0
# Seconds before the move: two cycles.
BEFORE = 2 * CYCLE
KEEP = 0.97
# A smaller loss is not told from none.
LOSS_MIN = 0.01
# The p99 that is asked for, in times of the one before.
P99_FACTOR = 2.0
CEILING = "sterna, --p99"
# Windows of the response time: so many seconds, and longer where those have fewer I/Os
# than a percentile needs; and the part of them that must be kept.
WINDOW, PERCENTILE_OF = 1.0, 100
WINDOWS_KEPT = 0.99
# Parts of the time that a move takes alone: what the mirror's five speeds are.
# The slowest is meant to keep what is asked for, so that nothing has to be guessed.
SPEEDS = [1.0, 0.3, 0.1, 0.04, 0.02]


class Nobody:
    """Nothing is moved, on the server of a mover."""

    name = "nobody moves"

    def __init__(self, mover, seconds):
        self.prepare, self.end = mover.prepare, mover.end
        self.seconds = seconds

    def move(self):
        time.sleep(self.seconds)
        return True


def once(bench, mover, settings, places, bound=None):
    """One move under an application, whose p99 may be so many ms, or so many times
    the one before."""
    found, began, over, ended = load.around(bench, mover, settings, places, BEFORE, CYCLE)
    # A bursty one is judged by what it does while it does anything, until the end of
    # the burst that comes after the move; the others for long enough to count.
    bursty = "thinktime" in settings
    until = over + CYCLE if bursty else max(over, began + CYCLE)
    iops = load.iops_at_work if bursty else load.iops
    before = load.window(found, began - BEFORE, began)
    bound = bound or before["p99_ms"] * P99_FACTOR
    good = counted(found, settings, bound)
    usual = iops(good, began - BEFORE, began)
    if not bursty:
        usual = (usual + iops(good, over, over + CYCLE)) / 2
    kept = iops(good, began, until) / max(0.1, usual)
    windows = windows_of(found, settings, began, over)
    # A bursty one asks for nothing in its gaps.
    windows = [one["p99_ms"] for one in windows if one["iops"] or not bursty]
    return {"before": before, "during": load.window(found, began, until),
            "seconds": over - began, "ended": ended, "kept": kept, "windows": len(windows),
            "in_bound": sum(p99 <= bound for p99 in windows)}


def counted(found, settings, bound):
    """The I/Os that count. One that asks at a fixed rate loses nothing before the disk is
    full: of it, those that were answered in time."""
    return [it for it in found if it[1] <= bound] if "rate_iops" in settings else found


def width(settings):
    """Seconds of a window under such an application. At a fixed rate it has few I/Os."""
    return max(WINDOW, PERCENTILE_OF / settings.get("rate_iops", PERCENTILE_OF))


def windows_of(found, settings, began, over):
    """The windows of a stretch: as many as have room in it, and no time left over."""
    count = max(1, int((over - began) / width(settings)))
    wide = (over - began) / count
    return [load.window(found, at, at + wide)
            for at in (began + number * wide for number in range(count))]


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
    fastest one, that is as fast as it goes. Nobody keeps more than everything."""
    points, kept = monotone(points), min(1.0, kept)
    if kept <= points[0][0]:
        return points[0][1]
    for (low, fast), (high, slow) in zip(points, points[1:]):
        if kept <= high:
            part = (kept - low) / max(1e-9, high - low)
            return fast + part * (slow - fast)
    best, slow = points[-1]
    return slow * max(1.0, (1.0 - best) / max(LOSS_MIN, 1.0 - kept))


def monotone(points):
    """The points (kept, seconds), the fastest first, made such that a slower one keeps
    no less: where it seems to, chance has helped the faster one, and both are given
    their mean (pool adjacent violators; Ayer et al., 1955)."""
    pools = []
    for kept, seconds in sorted(points, key=lambda point: point[1]):
        pools.append([min(1.0, kept), [seconds]])
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (one, those), (other, these) = pools[-2:]
            mean = (one * len(those) + other * len(these)) / (len(those) + len(these))
            pools[-2:] = [[mean, those + these]]
    return [(kept, seconds) for kept, many in pools for seconds in many]


def case(bench, contestants, speeds, settings, places):
    """The runs of each contestant under one application."""
    guarded, mirror = contestants
    movers = [guarded()] + [mirror(speed) for speed in speeds]
    runs = {mover.name: [] for mover in movers}
    for repeat in range(bench.repeats):
        for mover in bench.turn(movers, repeat):
            runs[mover.name].append(once(bench, mover, settings, places))
    ours = runs[GuardedMover.name]
    usual = median([one["before"]["p99_ms"] for many in runs.values() for one in many])
    bound = usual * P99_FACTOR
    took = median([one["seconds"] for one in ours])
    ceiling = guarded(("--p99", f"{bound:.2f}ms"))
    ceiling.name = CEILING
    for mover in (ceiling, Nobody(guarded(), max(took, CYCLE))):
        runs[mover.name] = [once(bench, mover, settings, places, bound)
                            for _ in range(bench.repeats)]
    return runs


def run(bench):
    out = {}
    for place, contestants in places(bench).items():
        wanted = {what: job for what, job in cases(place) if bench.only in what}
        if not wanted:
            continue
        source, destination = bench.places(emulated=place != REAL)
        load.fill(source, bench.size)
        least = median([alone(bench, contestants[1](None), source, destination)
                        for _ in range(bench.repeats)])
        speeds = [int(bench.size / least * part) for part in SPEEDS]
        for what, settings in wanted.items():
            runs = case(bench, contestants, speeds, settings, (source, destination))
            out[what] = judge(what, runs, "thinktime" in settings)
            picture(bench, out)
        os.unlink(source)
    return out


def cases(place):
    """What each is called, and the application's settings."""
    for name, pattern in APPLICATIONS.items():
        for level, depth in LOADS.items():
            # A bursty one that asks for next to nothing would have no bursts.
            if (name, level) != ("bursty", "idle"):
                yield f"{place}, {name}, {level}", {**pattern, **depth}


def picture(bench, out):
    """Kept against time, a panel for each case; anew after each."""
    panels = []
    for what, one in out.items():
        runs = one["runs"]
        ours = [(run["seconds"], run["kept"]) for run in runs[GuardedMover.name]]
        line = [(middle(many, "seconds"), middle(many, "kept"))
                for mover, many in runs.items() if mover.startswith("mirror")]
        panels.append(plot.Panel(what, ours, sorted(line)))
    bench.keep("guard.svg", plot.draw(
        panels, "time of the move, s", "part of its IO/s that the application keeps",
        "sterna, --keep 97%", "QEMU's mirror at five static speeds"))


def places(bench):
    """What moves on each, by the guard's options and by a speed."""
    found = {REAL: (lambda *guard: GuardedMover(bench, None, *guard),
                    lambda speed: Mirror(bench, speed=speed))}
    for array in ("old-fc", "flash-2010"):
        found[array] = (
            lambda *guard, array=array: GuardedMover(bench, array, *guard),
            lambda speed, array=array: ArrayMirror(bench, array, speed))
    return found


def judge(what, runs, bursty):
    table(f"The guard, {what}", ["program", "kept", "time", "p99", "windows in bound"],
          [[mover, f"{middle(many, 'kept'):.3f}",
            f"{middle(many, 'seconds'):.1f} s" if ended(many) else "did not end",
            f"{middle([one['during'] for one in many], 'p99_ms'):.1f} ms",
            f"{in_bound(many):.2f}"] for mover, many in runs.items()])
    usual = max(0.1, middle(runs[Nobody.name], "kept"))
    ours = runs[GuardedMover.name]
    kept = middle(ours, "kept") / usual
    line = [(middle(many, "kept") / usual, middle(many, "seconds"))
            for mover, many in runs.items() if mover.startswith("mirror") and ended(many)]
    bars = Bars()
    bars.at_least(f"{what}: kept", kept, KEEP)
    if line:
        faster = on_line(line, kept) / max(0.01, middle(ours, "seconds"))
        bars.at_least(f"{what}: times faster than a static speed that keeps as much",
                      faster, 1.25 if bursty else 1.0)
    # A machine whose windows are beyond the bound by themselves is nobody's failure.
    alone = in_bound(runs[Nobody.name])
    bars.at_least(f"{what}: windows under the p99 asked for",
                  min(1.0, in_bound(runs[CEILING]) / max(0.01, alone)), WINDOWS_KEPT)
    bars.show(f"The guard, {what}: bars")
    return {"runs": runs, "bars": bars.rows}


def middle(many, key):
    return median([one[key] for one in many])


def ended(many):
    """Whether a mover comes to its end at all: a mirror that is slower than what is
    written does not."""
    return all(one["ended"] for one in many)


def in_bound(many):
    """The part of all windows of all runs."""
    windows = sum(one["windows"] for one in many)
    return sum(one["in_bound"] for one in many) / windows if windows else 1.0
