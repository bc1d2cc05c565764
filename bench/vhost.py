"""A disk of a guest over vhost-user-blk, against qemu-storage-daemon's.

One guest has a disk of each, and asks them in turns, so that both servers have the
same guest in the same run. Where the guest is emulated, it is what takes most of the
time: the ratios are then nearer to one than they would be on a processor of its own,
and what tells is the server's CPU.
"""

import json
import os

import load
from machine import Machine
from servers import Sterna, StorageDaemon
from table import Bars, median, spread, table

KINDS = [
    # name, rw, block size, depth, and the bar for IO/s
    ("4k randread, depth 1", "randread", "4k", 1, 1.0),
    ("4k randread, depth 32", "randread", "4k", 32, 1.1),
    ("4k randwrite, depth 1", "randwrite", "4k", 1, 1.0),
    ("4k randwrite, depth 32", "randwrite", "4k", 32, 1.1),
    ("64k randread, depth 8", "randread", "64k", 8, None),
    ("64k randwrite, depth 8", "randwrite", "64k", 8, None),
]
CPU_BAR = 1.0
SIZE = 1 << 30


class OurDisk(Sterna):
    """Sterna, with a vhost-user socket."""

    def start(self, file):
        super().start(file)
        self.device = os.path.join(os.path.dirname(self.socket), "ours.vhost")
        self.call("disk", "attach", "disk", "--vhost-user", self.device)


class TheirDisk(StorageDaemon):
    """qemu-storage-daemon, with a vhost-user socket."""

    def start(self, file):
        self.device = os.path.join(os.path.dirname(self.socket), "theirs.vhost")
        super().start(file)

    def command(self, file):
        return [*super().command(file), "--export",
                "type=vhost-user-blk,id=v,node-name=disk,writable=on,num-queues=1,"
                f"iothread=t,addr.type=unix,addr.path={self.device}"]


def arguments(server):
    """QEMU's, for a server's disk."""
    return ["-chardev", f"socket,id={server.name},path={server.device}", "-device",
            f"vhost-user-blk-pci,chardev={server.name},num-queues=1"]


def once(server, ask):
    """IO/s, and CPU seconds of the server for 100,000 I/Os, of which `ask` gives the first
    and how many there were."""
    before = server.cpu()
    iops, ios = ask()
    return {"iops": iops, "cpu": (server.cpu() - before) * 100_000 / max(1, ios)}


def ask(bench, machine, device, kind):
    """Asks a guest's device for something: IO/s, and how many."""
    _, rw, size, depth, _ = kind
    said = machine.run(
        f"fio --name=a --filename={device} --rw={rw} --bs={size} --iodepth={depth} "
        f"--ioengine=libaio --direct=1 --time_based --runtime={bench.seconds} "
        "--randrepeat=0 --output-format=json")
    job = json.loads(said[said.index("{"):])["jobs"][0]
    side = job["write" if "write" in rw else "read"]
    return side["iops"], side["total_ios"]


def run(bench):
    if not bench.guest:
        raise SystemExit("vhost: there is no guest: `make guest`, and --guest DIR")
    servers = [OurDisk(bench.tools, bench.sockets, bench.work),
               TheirDisk(bench.tools, bench.sockets)]
    files = [os.path.join(bench.work, server.name, "disk.raw") for server in servers]
    try:
        for server, file in zip(servers, files):
            os.makedirs(os.path.dirname(file))
            load.fill(file, min(bench.size, SIZE))
            server.start(file)
        disks = [word for server in servers for word in arguments(server)]
        with Machine(bench.guest, bench.work, bench.sockets, disks) as machine:
            devices = find_devices(machine, servers)
            runs = compare(bench, servers, lambda server, kind: ask(
                bench, machine, devices[server.name], kind))
    finally:
        for server in servers:
            server.stop()
    return {"runs": runs, "bars": judge(bench, runs, "A guest's disk")}


def find_devices(machine, servers):
    """What the guest calls the disk of each server."""
    # Behind the root disk in the order in which QEMU was given them; ours says its name.
    devices = ["/dev/vdb", "/dev/vdc"]
    found = machine.run("echo $(cat /sys/block/vdb/serial)")
    if found != "disk":
        raise RuntimeError(f"the first disk calls itself {found}, and not `disk`")
    return {server.name: device for server, device in zip(servers, devices)}


def compare(bench, servers, ask):
    """The runs of each server under each load, in turns."""
    runs = {}
    for kind in KINDS:
        if bench.only not in kind[0]:
            continue
        runs[kind[0]] = {server.name: [] for server in servers}
        for repeat in range(bench.repeats):
            for server in bench.turn(servers, repeat):
                one = once(server, lambda server=server: ask(server, kind))
                runs[kind[0]][server.name].append(one)
    return runs


def judge(bench, runs, title):
    bars, rows = Bars(), []
    for name, _, _, _, bar in KINDS:
        if name not in runs:
            continue
        ours, theirs = runs[name][OurDisk.name], runs[name][TheirDisk.name]
        middle = [[median([one[key] for one in many]) for many in (ours, theirs)]
                  for key in ("iops", "cpu")]
        (iops, their_iops), (cpu, their_cpu) = middle
        rows.append([name, iops, spread([one["iops"] for one in ours]),
                     f"{iops / their_iops:.2f}", f"{cpu:.2f}",
                     f"{cpu / max(1e-9, their_cpu):.2f}"])
        if bar:
            bars.at_least(f"{name}: IO/s, of qemu-storage-daemon's",
                          iops / their_iops, bar)
            bars.at_most(f"{name}: CPU, of qemu-storage-daemon's",
                         cpu / max(1e-9, their_cpu), CPU_BAR)
    table(f"{title}, {bench.repeats} runs of {bench.seconds} s each, medians",
          ["load", "sterna IO/s", "spread", "of theirs", "CPU s/100k", "of theirs"], rows)
    bars.show(f"{title}: the bars")
    return bars.rows
