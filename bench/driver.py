"""A disk over vhost-user-blk, against qemu-storage-daemon's, without a guest.

An emulated guest takes most of the time of what it asks for (part `vhost`), and shows
little of its disk's server. So here a driver in user space asks for the same: that of
libblkio, by which QEMU opens such disks for itself. The disks are in memory, so that
they are not what is waited for. The two servers take turns.
"""

import json
import os
import subprocess

import load
from vhost import KINDS, OurDisk, TheirDisk, judge

SIZE = 512 << 20
BYTES = {"4k": 4096, "64k": 65536}


def run(bench):
    tool = os.path.join(os.path.dirname(bench.tools["sterna"]), "examples", "vhost-load")
    if not os.path.exists(tool):
        raise SystemExit("driver: there is no driver: "
                         "`cargo build --release -p sterna-engine --example vhost-load`")
    servers = [OurDisk(bench.tools, bench.sockets, bench.work),
               TheirDisk(bench.tools, bench.sockets, direct=False)]
    runs = {}
    try:
        for server in servers:
            file = os.path.join(bench.memory, server.name, "disk.raw")
            os.makedirs(os.path.dirname(file))
            load.fill(file, SIZE)
            server.start(file)
        for kind in KINDS:
            if bench.only in kind[0]:
                runs[kind[0]] = compare(bench, tool, servers, kind)
    finally:
        for server in servers:
            server.stop()
    return {"runs": runs, "bars": judge(bench, runs, "A disk without a guest")}


def compare(bench, tool, servers, kind):
    found = {server.name: [] for server in servers}
    for repeat in range(bench.repeats):
        for server in bench.turn(servers, repeat):
            found[server.name].append(once(bench, tool, server, kind))
    return found


def once(bench, tool, server, kind):
    """IO/s, and CPU seconds of the server for 100,000 I/Os."""
    _, rw, size, depth, _ = kind
    before = server.cpu()
    said = subprocess.run(
        [tool, server.device, rw.removeprefix("rand"),
         str(BYTES[size]), str(depth), str(bench.seconds)],
        stdout=subprocess.PIPE, text=True, check=True).stdout
    found = json.loads(said)
    cpu = (server.cpu() - before) * 100_000 / max(1, found["ios"])
    return {"iops": found["iops"], "cpu": cpu}
