"""What the scheduler costs a request.

A disk in memory, where nothing hides it, behind one daemon: in no class, in a class
of which nothing is asked, and in one of which everything is asked, all far above what
the disk does, so that nobody ever waits. The three take turns every few seconds, under
one client that never ends; each round's ratio is to the disk in no class in the same
round, because machines drift. The machine must have nothing else to do: where half of
the ratios are not within a few percent, the medians say nothing.
"""

import os
import time

import load
from servers import Sterna, thread_seconds
from table import Bars, median, quartiles, table

LOADS = {"4k randread, depth 64": "randread", "4k randwrite, depth 64": "randwrite"}
# Enough that no cache of the processor holds it.
SIZE = 512 << 20
# Ratios are close to one: more and shorter runs than where servers are compared.
ROUNDS = 4
# Of a run; the daemon gives or takes a datastore's window once a second.
SETTLE = 1.2
SPAN = 1.0

FREE = "no class"
EMPTY = "a class, nothing asked"
FULL = "a class, everything asked"
BAR = 0.97

# What is asked, and how it is asked for.
CLASSES = {EMPTY: "empty", FULL: "full"}
TERMS = ["--shares", "2000", "--reservation", "1000iops"]
POLICIES = [("limit", "full", "100000000iops"), ("limit", "full", "900G"),
            ("queue-depth", "full", "512")]


def done(server):
    """What the disk has done, the reactors' CPU seconds, and when."""
    activity = server.call("disk", "show", "disk")["activity"]
    threads = thread_seconds(server.process.pid)
    cpu = sum(took for name, took in threads.items() if name.startswith("sterna-io-"))
    return activity["reads"] + activity["writes"], cpu, time.monotonic()


def once(server, contestant):
    """IO/s, and CPU microseconds of the reactors for each."""
    name = CLASSES.get(contestant)
    if name:
        server.call("class", "add", name, "disk")
    time.sleep(SETTLE)
    before, cpu, since = done(server)
    time.sleep(SPAN)
    after, cpu_after, until = done(server)
    if name:
        server.call("class", "remove", name, "disk")
    ios = max(1, after - before)
    return {"iops": ios / (until - since), "cpu_us": (cpu_after - cpu) / ios * 1e6}


def run(bench):
    file = os.path.join(bench.memory, "disk.raw")
    size = min(bench.size, SIZE)
    load.fill(file, size)
    server = Sterna(bench.tools, bench.sockets, bench.work)
    server.start(file)
    try:
        server.call("class", "create", "empty")
        server.call("class", "create", "full", *TERMS)
        for policy in POLICIES:
            server.call("policy", *policy)
        out = {name: rounds(bench, server, rw, size) for name, rw in LOADS.items()}
    finally:
        server.stop()
    os.unlink(file)
    return out | {"bars": judge(bench, out)}


def rounds(bench, server, rw, size):
    contestants = [FREE, EMPTY, FULL]
    runs = {name: [] for name in contestants}
    settings = {"rw": rw, "bs": "4k", "iodepth": 64, "size": size, "time_based": 1,
                "runtime": 3600}
    with load.Fio(bench.tools["fio"], bench.work, server.uri(), settings) as fio:
        for repeat in range(ROUNDS * bench.repeats):
            for name in bench.turn(contestants, repeat):
                runs[name].append(once(server, name))
        fio.end()
    return runs


def judge(bench, out):
    bars, rows = Bars(), []
    for name, runs in out.items():
        for contestant, many in runs.items():
            pairs = [one["iops"] / free["iops"] for one, free in zip(many, runs[FREE])]
            costs = [one["cpu_us"] - free["cpu_us"] for one, free in zip(many, runs[FREE])]
            low, high = quartiles(pairs)
            rows.append([f"{name}, {contestant}", median([one["iops"] for one in many]),
                         f"{median(pairs):.3f}", f"{low:.3f} to {high:.3f}",
                         f"{median([one['cpu_us'] for one in many]):.2f} us",
                         f"{median(costs):.3f} us"])
            if contestant == FULL:
                bars.at_least(f"{name}: IO/s of {contestant}", median(pairs), BAR)
    table(f"The scheduler, {ROUNDS * bench.repeats} rounds, medians",
          ["load, disk", "IO/s", "of no class", "half of them", "CPU of an I/O", "more"],
          rows)
    bars.show("The scheduler: the bars")
    return bars.rows
