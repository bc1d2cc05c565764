"""Moving a disk that nobody uses: a full one, and one that is 30 % allocated.

The measure is what the device can do by itself: fio reading one file and writing
another at the same time, over the same number of bytes.
"""

import os
import time

import load
from movers import BeforeMover, Convert, Mirror, Nbdcopy, SternaMover, VerifiedMover
from servers import Before
from table import Bars, median, spread, table

LIMIT_BAR = 0.85


# How the device is asked: many small requests, or few large ones.
LIMIT_SHAPES = (("64k", 16), ("1M", 4), ("1M", 8))


def limit(bench, source, destination, block, depth):
    """Bytes per second of a simultaneous read and write, onto a file that has its
    blocks already."""
    size = os.path.getsize(source)
    load.fill(destination, size)
    job = {"bs": block, "iodepth": depth, "size": size, "thread": 1}
    pair = [load.Fio(bench.tools["fio"], work, file, {**job, "rw": rw})
            for rw, file, work in (("read", source, bench.work),
                                   ("write", destination, bench.sockets))]
    # The slower side counts: it is what a copy would wait for.
    rate = min(one.result()["mbps"] for one in pair) * 1e6
    os.unlink(destination)
    return rate


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
        movers = [SternaMover(bench), VerifiedMover(bench), Mirror(bench), Convert(bench),
                  Nbdcopy(bench)]
        if Before.name in bench.tools:
            movers.append(BeforeMover(bench))
        runs = {mover.name: [] for mover in movers}
        limits = {shape: [] for shape in LIMIT_SHAPES}
        for repeat in range(bench.repeats):
            if share == 1.0:
                for how, rates in limits.items():
                    rates.append(limit(bench, source, destination, *how))
            for mover in bench.turn(movers, repeat):
                runs[mover.name].append(once(mover, source, destination))
        out[shape] = judge(bench, shape, bench.size * share, runs,
                           list(limits.values()) if share == 1.0 else [])
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
        # The best way of asking, by its median: the best of single runs would be
        # a piece of luck that the programs do not get.
        rates = max(limits, key=median)
        rate = median(rates)
        rows.append(["the device (fio)", f"{data / rate:.2f} s", f"{spread(rates):.0%}",
                     f"{rate / 1e6:,.0f} MB/s",
                     f"{data / rate / seconds['sterna']:.2f}", "-"])
        bars.at_least(f"{shape}: rate against the device's own",
                      data / seconds["sterna"] / rate, LIMIT_BAR)
    peers = [name for name in runs if not name.startswith("sterna")]
    for name in peers:
        bars.at_least(f"{shape}: faster than {name}, times",
                      seconds[name] / seconds["sterna"], 1.0)
    cheapest = min(peers, key=cpu.get)
    bars.at_most(f"{shape}: CPU per GB against {cheapest}",
                 cpu["sterna"] / cpu[cheapest] if cpu[cheapest] else 0.0, 1.0)
    table(f"Moving an idle disk, {bench.size / 1e9:.1f} GB, {shape}, "
          f"medians of {bench.repeats}",
          ["program", "time", "spread", "data rate", "of sterna's time", "CPU s/GB"], rows)
    bars.show(f"Moving an idle disk, {shape}: the bars")
    return {"runs": runs, "limits": limits, "bars": bars.rows}
