"""The daemon's memory: serving hard, and moving under load."""

import os

import load
from movers import VerifiedMover
from servers import Sterna
from table import Bars, table

SERVING_BAR = 64.0
MIGRATION_BAR = 16.0


def run(bench):
    source, destination = bench.places()
    load.fill(source, bench.size)
    # Many large requests over several connections: the worst for a server that
    # holds what it has received.
    hard = {"rw": "randrw", "bs": "1M", "iodepth": 16, "numjobs": 4, "time_based": 1,
            "runtime": bench.seconds, "size": bench.size}
    server = Sterna(bench.tools, bench.sockets, bench.work)
    uri = server.start(source)
    idle = server.memory()
    load.Fio(bench.tools["fio"], bench.work, uri, hard).result()
    serving = server.memory()
    server.stop()
    mover = VerifiedMover(bench)
    uri = mover.prepare(source, destination)
    longer = {**hard, "runtime": 600, "numjobs": 1}
    with load.Fio(bench.tools["fio"], bench.work, uri, longer) as fio:
        mover.move()
        moving = mover.memory()
        fio.end()
    mover.end()
    os.unlink(source)
    bars = Bars()
    bars.at_most("MiB, serving", serving, SERVING_BAR)
    bars.at_most("MiB, one migration under load", moving, SERVING_BAR + MIGRATION_BAR)
    table("Memory of the daemon (VmHWM)", ["state", "MiB"],
          [["idle", idle], ["serving, 64 requests of 1 MiB", serving],
           ["one migration under load", moving]])
    bars.show("Memory: the bars")
    return {"idle": idle, "serving": serving, "moving": moving, "bars": bars.rows}
