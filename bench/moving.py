"""Moving a disk that nobody uses: a full one, and one that is 30 % allocated.

The measure is what the device can do by itself: fio reading one file and writing
another at the same time, over the same number of bytes.
"""

import os
import time

import load
from movers import Convert, Mirror, Nbdcopy, SternaMover
from table import Bars, median, spread, table

LIMIT_BAR = 0.85


def limit(bench, source, destination):
    """Bytes per second of a simultaneous read and write: the better of many small
    and few large requests, onto a file that has its blocks already."""
    size = os.path.getsize(source)
    load.fill(destination, size)
    best = 0.0
    for block, depth in (("64k", 16), ("1M", 4)):
        job = {"bs": block, "iodepth": depth, "size": size, "thread": 1}
        began = time.monotonic()
        pair = [load.Fio(bench.tools["fio"], work, file, {**job, "rw": rw})
                for rw, file, work in (("read", source, bench.work),
                                       ("write", destination, bench.sockets))]
        rates = [one.result()["mbps"] for one in pair]
        took = time.monotonic() - began
        # fio's own clock leaves out its start; the slower side counts.
        best = max(best, min(min(rates) * 1e6, size / took * 1.2))
    os.unlink(destination)
    return best


def once(mover, source, destination):
    mover.prepare(source, destination)
    try:
        cpu = mover.cpu()
        began = time.monotonic()
        mover.move()
        took = time.monotonic() - began
        cpu = mover.cpu() - cpu
    finally:
        mover.end()
    return {"seconds": took, "cpu": cpu}


def run(bench):
    source, destination = bench.places()
    out = {}
    for shape, share in (("full", 1.0), ("30 % allocated", 0.3)):
        load.fill(source, bench.size, share)
        movers = [SternaMover(bench), Mirror(bench), Convert(bench), Nbdcopy(bench)]
        runs = {mover.name: [] for mover in movers}
        limits = []
        for repeat in range(bench.repeats):
            if share == 1.0:
                limits.append(limit(bench, source, destination))
            for mover in bench.turn(movers, repeat):
                runs[mover.name].append(once(mover, source, destination))
        out[shape] = judge(bench, shape, bench.size * share, runs, limits)
        os.unlink(source)
    return out


def judge(bench, shape, data, runs, limits):
    """The table and the bars of one shape."""
    bars, rows = Bars(), []
    seconds = {name: median([r["seconds"] for r in many]) for name, many in runs.items()}
    cpu = {name: median([r["cpu"] for r in many]) / (data / 1e9)
           for name, many in runs.items()}
    for name, many in runs.items():
        rows.append([name, f"{seconds[name]:.2f} s",
                     f"{spread([r['seconds'] for r in many]):.0%}",
                     f"{data / seconds[name] / 1e6:,.0f} MB/s",
                     f"{seconds[name] / seconds['sterna']:.2f}", f"{cpu[name]:.2f}"])
    if limits:
        rate = median(limits)
        rows.append(["the device (fio)", f"{data / rate:.2f} s", f"{spread(limits):.0%}",
                     f"{rate / 1e6:,.0f} MB/s",
                     f"{data / rate / seconds['sterna']:.2f}", "-"])
        bars.at_least(f"{shape}: rate against the device's own",
                      data / seconds["sterna"] / rate, LIMIT_BAR)
    for name in runs:
        if name != "sterna":
            bars.at_least(f"{shape}: faster than {name}, times",
                          seconds[name] / seconds["sterna"], 1.0)
    cheapest = min((name for name in runs if name != "sterna"), key=cpu.get)
    bars.at_most(f"{shape}: CPU per GB against {cheapest}",
                 cpu["sterna"] / cpu[cheapest] if cpu[cheapest] else 0.0, 1.0)
    table(f"Moving an idle disk, {bench.size / 1e9:.1f} GB, {shape}, "
          f"medians of {bench.repeats}",
          ["program", "time", "spread", "data rate", "of sterna's time", "CPU s/GB"], rows)
    bars.show(f"Moving an idle disk, {shape}: the bars")
    return {"runs": runs, "limits": limits, "bars": bars.rows}
