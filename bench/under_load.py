"""Moving a disk that an application uses: what the application keeps.

The application is fio over NBD. "Before" is the same fio run on the same server in
the seconds before the move, so that the server's own speed cancels out.
"""

import os

import load
from movers import Mirror, SternaMover
from table import Bars, median, table

PROFILES = {
    "64k random 80/20": {"rw": "randrw", "rwmixread": 80, "bs": "64k"},
    "64k random read": {"rw": "randread", "bs": "64k"},
    "8k log writer": {"rw": "write", "bs": "8k", "fsync": 1},
}
DEPTHS = {"low": 2, "high": 16}
WARM = 1.0


def once(bench, mover, profile, depth, source, destination):
    """One move under load: the two windows, the time, the switch-over."""
    settings = {**PROFILES[profile], "iodepth": depth}
    found, began, over, ended = load.around(
        bench, mover, settings, (source, destination), WARM + bench.seconds)
    return {"before": load.window(found, began - bench.seconds, began),
            "during": load.window(found, began, over + 0.2),
            "seconds": over - began, "ended": ended,
            "switch_over_ms": mover.report.get("switch_over_ms")}


def run(bench):
    source, destination = bench.places()
    load.fill(source, bench.size)
    movers = [SternaMover(bench), Mirror(bench), Mirror(bench, "write-blocking")]
    out = {}
    for level, depth in DEPTHS.items():
        rows, bars = [], Bars()
        for profile in PROFILES:
            if bench.only not in f"{profile}, {level}":
                continue
            runs = {mover.name: [] for mover in movers}
            for repeat in range(bench.repeats_under_load):
                for mover in bench.turn(movers, repeat):
                    runs[mover.name].append(
                        once(bench, mover, profile, depth, source, destination))
            out[f"{profile}, {level}"] = runs
            rows += [row(profile, name, many) for name, many in runs.items()]
            judge(f"{profile}, {level}", runs, bars)
            print(f"  {profile}, {level}: done", flush=True)
        table(f"Moving under load, {level} (depth {depth}), {bench.size / 1e9:.1f} GB, "
              f"medians of {bench.repeats_under_load}",
              ["load, program", "IO/s before", "during", "kept", "p99 before", "during",
               "longest", "time", "switch-over"], rows)
        bars.show(f"Moving under load, {level}: against blockdev-mirror")
        out[f"bars, {level}"] = bars.rows
    os.unlink(source)
    return out


def middle(many, part, key):
    return median([run[part][key] for run in many])


def kept(many):
    return median([run["during"]["iops"] / max(1.0, run["before"]["iops"])
                   for run in many])


def row(profile, name, many):
    held = [run["switch_over_ms"] for run in many if run["switch_over_ms"] is not None]
    endless = any(not run["ended"] for run in many)
    seconds = median([run["seconds"] for run in many])
    return [f"{profile}, {name}",
            f"{middle(many, 'before', 'iops'):,.0f}",
            f"{middle(many, 'during', 'iops'):,.0f}", f"{kept(many):.2f}",
            f"{middle(many, 'before', 'p99_ms'):.1f} ms",
            f"{middle(many, 'during', 'p99_ms'):.1f} ms",
            f"{middle(many, 'during', 'max_ms'):.0f} ms",
            f"{seconds:.1f} s" + (" (never ended)" if endless else ""),
            f"{median(held):.1f} ms" if held else "-"]


def judge(what, runs, bars):
    """There is no agreed figure for these; the mirror is the measure."""
    others = [name for name in runs if name != "sterna"]
    bars.at_least(f"{what}: kept IO/s against the better mirror, times",
                  kept(runs["sterna"]) / max(0.001, *(kept(runs[name]) for name in others)),
                  1.0)
    longest = middle(runs["sterna"], "during", "max_ms")
    best = min(middle(runs[name], "during", "max_ms") for name in others)
    bars.at_most(f"{what}: longest I/O against the better mirror, times",
                 longest / max(0.001, best), 1.0)
