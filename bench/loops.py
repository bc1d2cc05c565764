"""What the daemon's loops cost: samples, cruise control, windows, guards, policies.

One daemon with as much as a host has: 512 disks in 64 classes on two directories and
an emulated array, one disk of each class busy; targets on eight classes, of which
those on the array cannot all be had; limits, some of them scheduled; shares and
reservations; and two guarded migrations. The array's clients ask for all they can get,
the others for a steady rate, so that the machine is not what is measured.

Counted is the CPU time of every thread of the daemon that is not a reactor or one of
its helpers. Nobody calls the API meanwhile.
"""

import os
import subprocess
import time

import load
from servers import Sterna, thread_seconds
from table import Bars, median, table

CLASSES = 64
DISKS_OF_A_CLASS = 8
# Of the classes: those on the array (the first ones), and those with a target.
ON_ARRAY = 16
TARGETS = 8
DISK = 16 << 20
RATE = 40
# The migrations are to last; so they are slow, guard or no guard.
MOVING = 2
MOVING_RATE = "4M"
# Until all clients run and the loops have seen them.
WARM = 10.0
# A window of the measurement, in times of --seconds.
WINDOW = 2
# Threads whose work is I/O: the reactors, and what they and the kernel do it with.
CARRY_IO = ("sterna-io-", "sterna-helper", "iou-wrk-", "iou-sqp-")
BAR = 0.02


def loops(server):
    """CPU seconds of the threads that do not carry I/O, by name."""
    found = thread_seconds(server.process.pid)
    return {name: took for name, took in found.items() if not name.startswith(CARRY_IO)}


def build(bench, server):
    """The disks, classes and policies; gives what the clients are to do."""
    for name in ("local", "array", "there"):
        os.makedirs(os.path.join(bench.work, name))
    place = {name: os.path.join(bench.work, name) for name in os.listdir(bench.work)}
    server.call("datastore", "add", "local", place["local"])
    server.call("datastore", "add", "there", place["there"])
    server.call("datastore", "add", "array", f"array://old-fc?path={place['array']}")
    jobs = {}
    for number in range(CLASSES):
        on_array = number < ON_ARRAY
        names = [f"d{number}-{disk}" for disk in range(DISKS_OF_A_CLASS)]
        for name in names:
            server.call("disk", "create", name, "--size", str(DISK),
                        "--on", "array" if on_array else "local")
        terms = ["--shares", str(500 + 100 * (number % 16))]
        if number % 8 == 1:
            terms += ["--reservation", "20iops"]
        server.call("class", "create", f"c{number}", *names, *terms)
        ask(server, number)
        jobs[names[0]] = {"iodepth": 2} if on_array else {"iodepth": 1, "rate_iops": RATE}
    for number in range(MOVING):
        # Not in a class: there are disks of that kind as well.
        file = os.path.join(place["local"], f"moving-{number}.raw")
        load.fill(file, bench.size // 2)
        server.call("disk", "import", f"moving-{number}", "--on", "local", file)
        jobs[f"moving-{number}"] = {"iodepth": 1, "rate_iops": RATE}
    return jobs


def ask(server, number):
    """What is asked for a class."""
    name = f"c{number}"
    if number % (CLASSES // TARGETS) == 0:
        server.call("policy", "cruise", name, f"{RATE}iops", "--tolerance", "10%")
    if number % 4 == 1:
        server.call("policy", "limit", name, "200M")
    if number % 4 == 2:
        server.call("policy", "limit", name, "5000iops", "--schedule", "22:00-06:00")
        server.call("policy", "limit", name, "9000iops", "--schedule", "Mon-Fri")
    if number % 4 == 3:
        server.call("policy", "queue-depth", name, "32")


def clients(bench, server, jobs):
    """All clients, as one fio of many threads."""
    lines = ["[global]", "ioengine=nbd", "thread=1", "group_reporting=1", "rw=randrw",
             "bs=4k", f"size={DISK}", "time_based=1", "runtime=3600", "randrepeat=0"]
    for disk, settings in jobs.items():
        lines += [f"[{disk}]", f"uri=nbd+unix:///{disk}?socket={server.socket}"]
        lines += [f"{key}={value}" for key, value in settings.items()]
    job = os.path.join(bench.work, "clients.fio")
    with open(job, "w") as file:
        file.write("\n".join(lines) + "\n")
    return subprocess.Popen([bench.tools["fio"], job], stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL, cwd=bench.work)


def run(bench):
    server = Sterna(bench.tools, bench.sockets, bench.work)
    server.start_daemon()
    fio = None
    try:
        fio = clients(bench, server, build(bench, server))
        for number in range(MOVING):
            server.call("migrate", f"moving-{number}", "--to", "there", "--keep", "97%",
                        "--rate", MOVING_RATE, "--detach")
        time.sleep(WARM)
        check(server, fio)
        windows = [window(bench, server) for _ in range(bench.repeats)]
        check(server, fio)
    finally:
        if fio:
            fio.kill()
            fio.wait()
        server.stop()
    return judge(windows)


def check(server, fio):
    """That what is measured is what was meant."""
    busy = [row for row in server.call("top", "--count", "1", "--interval", "2s")["rows"]
            if row["load"]["read"]["iops"] > 0]
    moving = [one for one in server.call("migration", "list") if one["state"] == "copying"]
    if fio.poll() is not None or len(busy) < CLASSES + MOVING or len(moving) < MOVING:
        raise RuntimeError(f"{len(busy)} disks are busy, {len(moving)} are moving")


def window(bench, server):
    """The part of a core that each thread took."""
    before, since = loops(server), time.monotonic()
    time.sleep(WINDOW * bench.seconds)
    span = time.monotonic() - since
    after = loops(server)
    return {name: (after[name] - before.get(name, 0.0)) / span for name in after}


def judge(windows):
    names = sorted({name for one in windows for name in one})
    middle = {name: median([one.get(name, 0.0) for one in windows]) for name in names}
    total = median([sum(one.values()) for one in windows])
    rows = [[name, f"{part:.3%}"] for name, part in middle.items()]
    table(f"The loops, {CLASSES} classes, {CLASSES * DISKS_OF_A_CLASS} disks, {CLASSES} "
          f"busy, medians of {len(windows)}", ["thread", "of a core"],
          rows + [["all", f"{total:.3%}"]])
    bars = Bars()
    bars.at_most("all loops together, % of a core", total * 100, BAR * 100)
    bars.show("The loops: the bar")
    return {"windows": windows, "bars": bars.rows}
