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
from vhost import OurDisk, TheirDisk, compare, judge

SIZE = 512 << 20
BYTES = {"4k": 4096, "64k": 65536}


def run(bench):
    tool = os.path.join(os.path.dirname(bench.tools["sterna"]), "examples", "vhost-load")
    if not os.path.exists(tool):
        raise SystemExit("driver: there is no driver: "
                         "`cargo build --release -p sterna-engine --example vhost-load`")
    servers = [OurDisk(bench.tools, bench.sockets, bench.work),
               TheirDisk(bench.tools, bench.sockets, direct=False)]
    try:
        for server in servers:
            file = os.path.join(bench.memory, server.name, "disk.raw")
            os.makedirs(os.path.dirname(file))
            load.fill(file, SIZE)
            server.start(file)
        runs = compare(bench, servers,
                       lambda server, kind: ask(bench, tool, server.device, kind))
    finally:
        for server in servers:
            server.stop()
    return {"runs": runs, "bars": judge(bench, runs, "A disk without a guest")}


def ask(bench, tool, device, kind):
    """Asks a disk for something: IO/s, and how many."""
    _, rw, size, depth, _ = kind
    said = subprocess.run(
        [tool, device, rw.removeprefix("rand"), str(BYTES[size]), str(depth),
         str(bench.seconds)], stdout=subprocess.PIPE, text=True, check=True).stdout
    found = json.loads(said)
    return found["iops"], found["ios"]
