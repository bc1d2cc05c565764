"""Serving a disk that does not move: I/Os, and what they cost the server.

In turns: every repeat goes round all servers for one kind of load before the next
kind begins, so that what the machine does meanwhile is shared out.
"""

import os

import load
from servers import Before, Nbdkit, QemuNbd, Sterna, StorageDaemon
from table import Bars, median, spread, table

KINDS = [
    # name, rw, block size, depth, connections
    ("4k randread, depth 1", "randread", "4k", 1, 1),
    ("4k randread, depth 4", "randread", "4k", 4, 1),
    ("4k randread, depth 16", "randread", "4k", 16, 1),
    ("4k randread, depth 32", "randread", "4k", 32, 1),
    ("4k randread, depth 64", "randread", "4k", 64, 1),
    ("4k randwrite, depth 1", "randwrite", "4k", 1, 1),
    ("4k randwrite, depth 16", "randwrite", "4k", 16, 1),
    ("4k randwrite, depth 64", "randwrite", "4k", 64, 1),
    ("64k read, depth 16", "read", "64k", 16, 1),
    ("64k read, depth 16, 4 conn.", "read", "64k", 16, 4),
    ("64k write, depth 16", "write", "64k", 16, 1),
    ("64k write, depth 16, 4 conn.", "write", "64k", 16, 4),
    ("1M read, depth 16", "read", "1M", 16, 1),
    ("1M read, depth 16, 4 conn.", "read", "1M", 16, 4),
    ("1M write, depth 16", "write", "1M", 16, 1),
    ("1M write, depth 16, 4 conn.", "write", "1M", 16, 4),
]

# What must hold against the best peer with O_DIRECT.
IOPS_BARS = {
    "4k randread, depth 1": 1.0,
    "4k randread, depth 4": 1.15,
    "4k randread, depth 16": 1.15,
    "4k randread, depth 32": 1.15,
    "4k randread, depth 64": 1.15,
    "4k randwrite, depth 1": 1.0,
    "4k randwrite, depth 16": 1.3,
    "4k randwrite, depth 64": 1.3,
}
CPU_BAR = 0.8

# Of the file in memory: enough that no cache of the processor holds it.
MEMORY_SIZE = 512 << 20


def once(bench, server, kind, file):
    """One run: IO/s and CPU seconds of the server per 100,000 I/Os."""
    _, rw, size, depth, connections = kind
    settings = {"rw": rw, "bs": size, "iodepth": max(1, depth // connections),
                "numjobs": connections, "time_based": 1, "runtime": bench.seconds,
                "ramp_time": 0, "size": os.path.getsize(file)}
    if connections > 1:
        # Each connection has its own part of the disk to stream through.
        part = os.path.getsize(file) // connections
        settings.update({"size": part, "offset_increment": part})
    if server is None:
        result = load.Fio(bench.tools["fio"], bench.work, file, settings).result()
        return {"iops": result["iops"], "cpu": 0.0, "p99_ms": result["p99_ms"]}
    uri = server.start(file)
    try:
        before = server.cpu()
        result = load.Fio(bench.tools["fio"], bench.work, uri, settings).result()
        cpu = (server.cpu() - before) * 100_000 / max(1, result["ios"])
    finally:
        server.stop()
    return {"iops": result["iops"], "cpu": cpu, "p99_ms": result["p99_ms"]}


def run(bench):
    """On the disk, as users have it; then in memory, where no disk hides what the
    servers themselves can do."""
    wanted = [kind for kind in KINDS if bench.only in kind[0]]
    if not wanted:
        raise SystemExit(f"--only {bench.only}: there is no such load; there are\n  " +
                         "\n  ".join(kind[0] for kind in KINDS))
    on_disk = os.path.join(bench.work, "serve", "disk.raw")
    out = {"on disk": side_by_side(bench, "Serving", wanted, on_disk, bench.size, True)}
    small = [kind for kind in wanted if kind[2] == "4k"]
    if small:
        in_memory = os.path.join(bench.memory, "disk.raw")
        size = min(bench.size, MEMORY_SIZE)
        out["in memory"] = side_by_side(bench, "Serving a file in memory", small,
                                        in_memory, size, False)
    return out


def side_by_side(bench, title, kinds, file, size, direct):
    """All servers on the same file, under each of the loads."""
    os.makedirs(os.path.dirname(file), exist_ok=True)
    load.fill(file, size)
    args = (bench.tools, bench.sockets)
    servers = [Sterna(*args, bench.work)]
    if Before.name in bench.tools:
        servers.append(Before(*args, bench.work))
    servers += [kind(*args, direct) for kind in (QemuNbd, StorageDaemon, Nbdkit)
                if bench.tools[kind.name]]
    contestants = [(server.name, server) for server in servers]
    if direct:
        contestants.insert(0, ("direct fio", None))
    results, bars, rows = {}, Bars(), []
    for kind in kinds:
        runs = {name: [] for name, _ in contestants}
        for repeat in range(bench.repeats):
            for name, server in bench.turn(contestants, repeat):
                runs[name].append(once(bench, server, kind, file))
        rows.append(judge(kind[0], runs, servers, bars))
        results[kind[0]] = runs
        print(f"  {kind[0]}: sterna {rows[-1][1]:,.0f} IO/s, {rows[-1][3]} of direct fio, "
              f"{rows[-1][4]} of the best peer", flush=True)
    table(f"{title}, {bench.repeats} runs of {bench.seconds} s each, medians",
          ["load", "sterna IO/s", "spread", "of direct", "of best peer", "best peer",
           "CPU s/100k", "of best peer", "nbdkit (cached)",
           *(["of before", "CPU, of before"] if Before.name in bench.tools else [])], rows)
    bars.show(f"{title}: the bars")
    os.unlink(file)
    return {"runs": results, "bars": bars.rows}


def judge(kind, runs, servers, bars):
    """A row of the table, and the bars."""
    iops = {name: median([run["iops"] for run in many]) for name, many in runs.items()}
    cpu = {name: median([run["cpu"] for run in many]) for name, many in runs.items()}
    peers = [server.name for server in servers
             if server.can_direct and not isinstance(server, Sterna)]
    direct = f"{iops['sterna'] / iops['direct fio']:.2f}" if "direct fio" in iops else "-"
    best = max(peers, key=lambda name: iops[name])
    cheapest = min(peers, key=lambda name: cpu[name])
    ratio = iops["sterna"] / iops[best]
    cpu_ratio = cpu["sterna"] / cpu[cheapest] if cpu[cheapest] else 0.0
    bars.at_least(f"{kind}: IO/s against {best}", ratio, IOPS_BARS.get(kind, 1.0))
    bars.at_most(f"{kind}: CPU against {cheapest}", cpu_ratio, CPU_BAR)
    return [kind, iops["sterna"], f"{spread([r['iops'] for r in runs['sterna']]):.0%}",
            direct, f"{ratio:.2f}", best,
            f"{cpu['sterna']:.2f}", f"{cpu_ratio:.2f}",
            f"{iops['sterna'] / iops['nbdkit']:.2f}" if "nbdkit" in iops else "-",
            *([f"{of['sterna'] / of[Before.name]:.2f}" for of in (iops, cpu)]
              if Before.name in iops else [])]
