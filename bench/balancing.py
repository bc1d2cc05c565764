"""Storage DRS by itself: eight emulated arrays of different kinds, sixty small disks that
ask things of them all the time, and loads that shift once.

Of the sixty disks each one's place says nothing of what it asks. Half of them ask for
something else after a while; from then on Storage DRS acts, until it has had no reason to
for a time. Its window, period and rests are its own; only the window and the period are
short, so that an hour is enough. What it has promised of each move is in the daemon's
records, with what came of it.
"""

import json
import os
import random
import subprocess
import time

import load
from movers import CACHES
from servers import Sterna
from table import Bars, table

ARRAYS = ["old-fc", "new-fc", "sata-ssd", "sas-10k", "sata-7k", "flash-2010", "e4-fc",
          "sata-7k"]
DISKS = 60
SIZE = 16 << 20
WINDOW, QUICK_WINDOW = 60, 20
# Acts without a reason to move anything, after which it has come to rest.
RESTS = 4
LIMIT = 3600
SEED = 11
FALLS_MIN, PAID_MIN = 0.25, 0.90


def run(bench):
    window = QUICK_WINDOW if bench.seconds < 4 else WINDOW
    dice = random.Random(SEED)
    # Its state is in memory, too: other work on the machine's disk is not in the figures.
    server = Sterna(bench.tools, bench.sockets, bench.memory)
    server.start_daemon()
    try:
        estate(bench, server)
        server.call("storage-drs", "set", "--automation", "partial", "--space", "100%",
                    "--window", f"{window}s", "--every", f"{window}s")
        asks = [ask(dice) for _ in range(DISKS)]
        first = measure(bench, server, asks, window)
        for disk in range(0, DISKS, 2):
            asks[disk] = ask(dice)
        start = measure(bench, server, asks, window)
        jobs = Jobs(bench, server, asks, load.LONG)
        try:
            server.call("storage-drs", "set", "--automation", "full")
            took = settle(server)
            server.call("storage-drs", "set", "--automation", "partial")
            judged(server, window)
        finally:
            jobs.kill()
        end = measure(bench, server, asks, window)
        return judge(server, {"at first": first, "shifted": start, "at rest": end}, took)
    finally:
        server.stop()


def estate(bench, server):
    """The arrays, and the disks on them in turn."""
    for at, kind in enumerate(ARRAYS):
        path = os.path.join(bench.memory, f"array{at}")
        os.makedirs(path)
        server.call("datastore", "add", f"array{at}", f"array://{kind}?{CACHES}&path={path}")
    for disk in range(DISKS):
        on = f"array{disk % len(ARRAYS)}"
        # Not by the name of its copies: disks come back.
        image = os.path.join(bench.memory, on, f"seed{disk}.raw")
        load.fill(image, SIZE)
        server.call("disk", "import", f"d{disk}", "--on", on, image)


def ask(dice):
    """What a disk is asked for: so many requests a second, so many at once."""
    return {"rate_iops": dice.randint(15, 60), "iodepth": dice.randint(2, 6)}


class Jobs:
    """One fio with a job for each disk."""

    def __init__(self, bench, server, asks, seconds):
        lines = ["[global]", "group_reporting=1", "norandommap=1", "randrepeat=0",
                 "thread=1", "ioengine=nbd", "rw=randrw", "rwmixread=75", "bs=8k",
                 f"size={SIZE}", "time_based=1", f"runtime={seconds}",
                 "rate_process=poisson", "unified_rw_reporting=mixed"]
        for disk, one in enumerate(asks):
            read, write = one["rate_iops"] * 3 // 4, max(one["rate_iops"] // 4, 1)
            lines += [f"[d{disk}]", f"uri=nbd+unix:///d{disk}?socket={server.socket}",
                      f"iodepth={one['iodepth']}", f"rate_iops={read},{write}"]
        job = os.path.join(bench.work, "jobs.fio")
        with open(job, "w") as file:
            file.write("\n".join(lines) + "\n")
        self.process = subprocess.Popen(
            [bench.tools["fio"], "--output-format=json", job], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, cwd=bench.work)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()

    def result(self):
        out, err = self.process.communicate()
        start = out.find("{")
        if self.process.returncode != 0 or start < 0:
            raise RuntimeError(f"fio: {err or out}")
        mixed = json.loads(out[start:])["jobs"][0]["mixed"]
        took = mixed["clat_ns"]
        return {"iops": mixed["iops"], "mean_ms": took["mean"] / 1e6,
                "p95_ms": took["percentile"]["95.000000"] / 1e6}


def measure(bench, server, asks, seconds):
    """What all disks have together, for so many seconds."""
    jobs = Jobs(bench, server, asks, seconds)
    try:
        found = jobs.result()
    finally:
        jobs.kill()
    print(f"  {found['iops']:.0f} IO/s, {found['mean_ms']:.1f} ms on average, "
          f"p95 {found['p95_ms']:.1f} ms", flush=True)
    return found


def settle(server):
    """Waits until nothing has had a reason to move for a time; says how long it took."""
    began, quiet, seen = time.time(), 0, None
    while quiet < RESTS:
        if time.time() - began > LIMIT:
            raise RuntimeError(f"it has not come to rest in {LIMIT} s")
        time.sleep(2)
        page = server.call("storage-drs", "status")
        last = page["last"]
        if last is None or last["at"] == seen:
            continue
        seen = last["at"]
        quiet = 0 if last["begun"] or page["moves"] else quiet + 1
        print(f"  {time.time() - began:.0f} s: {last['recommended']} recommended, "
              f"{len(last['begun'])} begun, over: {', '.join(last['held']) or 'none'}",
              flush=True)
    return time.time() - began


def judged(server, window):
    """Waits until it is known of each move what came of it."""
    until = time.time() + 3 * window
    while server.call("storage-drs", "status")["scores"]["waiting"]:
        if time.time() > until:
            raise RuntimeError("what came of a move is not known in time")
        time.sleep(2)


def judge(server, measured, took):
    scores = server.call("storage-drs", "status")["scores"]
    moves = [one for one in server.call("migration", "list") if one["balanced"]]
    twice = len(moves) - len({one["disk"] for one in moves})
    table("Storage DRS: eight arrays, sixty disks", ["load", "IO/s", "mean, ms", "p95, ms"],
          [[what, one["iops"], one["mean_ms"], one["p95_ms"]]
           for what, one in measured.items()])
    falls = 1 - measured["at rest"]["p95_ms"] / measured["shifted"]["p95_ms"]
    paid = scores["paid"] / scores["known"] if scores["known"] else 0.0
    print(f"  {len(moves)} moves in {took:.0f} s; {scores['paid']} of {scores['known']} "
          f"have paid; {twice} of disks that had moved before")
    bars = Bars()
    bars.at_least("p95 falls by", falls, FALLS_MIN)
    bars.at_least("moves that have paid", paid, PAID_MIN)
    bars.at_most("moves of a disk within its rest", twice, 0)
    bars.show("Storage DRS: bars")
    return {"measured": measured, "moves": moves, "scores": scores, "took": took,
            "bars": bars.rows}
