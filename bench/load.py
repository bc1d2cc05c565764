"""fio: as a client of a server, and directly on a file."""

import json
import os
import signal
import subprocess
import time

from table import within

# fio takes a moment to begin.
BEGINS = 1.5
# Longer than any move takes, seconds: it is ended before.
LONG = 7200


def job_text(target, settings):
    """A job file; in one, because a URI does not survive fio's command line."""
    # A thread, not a process: one that fio forks outlives it when it is killed.
    lines = ["[global]", "group_reporting=1", "norandommap=1", "randrepeat=0", "thread=1"]
    if target.startswith("nbd"):
        lines += ["ioengine=nbd", f"uri={target}"]
    else:
        lines += ["ioengine=io_uring", "direct=1", f"filename={target}"]
    lines += ["[job]"] + [f"{key}={value}" for key, value in settings.items()]
    return "\n".join(lines) + "\n"


class Fio:
    """A run of fio, in the background until `result` or `end`; as a context, it is
    not left behind when something fails."""

    def __init__(self, fio, work, target, settings):
        job = os.path.join(work, "job.fio")
        with open(job, "w") as file:
            file.write(job_text(target, settings))
        self.process = subprocess.Popen(
            [fio, "--output-format=json", job], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, cwd=work)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()

    def end(self):
        """Ends it before its time but in good order, so that it writes its logs."""
        self.process.send_signal(signal.SIGINT)
        self.process.communicate()

    def result(self):
        out, err = self.process.communicate()
        start = out.find("{")
        if self.process.returncode != 0 or start < 0:
            raise RuntimeError(f"fio: {err or out}")
        job = json.loads(out[start:])["jobs"][0]
        total = {"ios": 0, "iops": 0.0, "mbps": 0.0, "p99_ms": 0.0, "max_ms": 0.0}
        for direction in ("read", "write"):
            part = job[direction]
            if not part["total_ios"]:
                continue
            total["ios"] += part["total_ios"]
            total["iops"] += part["iops"]
            total["mbps"] += part["bw_bytes"] / 1e6
            latency = part["clat_ns"]
            p99 = latency.get("percentile", {}).get("99.000000", 0) / 1e6
            total["p99_ms"] = max(total["p99_ms"], p99)
            total["max_ms"] = max(total["max_ms"], latency["max"] / 1e6)
        return total


def latencies(work, prefix):
    """(when in s since 1970, took in ms) of every I/O, from fio's logs."""
    found = []
    for name in sorted(os.listdir(work)):
        if name.startswith(prefix) and "_clat" in name:
            with open(os.path.join(work, name)) as file:
                for line in file:
                    fields = line.split(",")
                    found.append((int(fields[0]) / 1000, int(fields[1]) / 1e6))
            os.unlink(os.path.join(work, name))
    found.sort()
    return found


def around(bench, mover, settings, places, before, after=0.5):
    """A move under fio, which runs for so many seconds before it and after it: every
    I/O, when the move began and was over, and whether it ended in time."""
    found, [move] = beside(bench, mover, settings, places, before, after)
    return found, *move


def beside(bench, mover, settings, places, before, after, count=1, enough=LONG):
    """Moves to and fro under one fio, so many, or until they have taken so long; fio
    runs for so many seconds before the first and after each. Gives every I/O, and of
    each move when it began and was over, and whether it ended in time."""
    uri = mover.prepare(*places)
    job = {**settings, "size": bench.size, "time_based": 1,
           "runtime": LONG, "write_lat_log": "app",
           "log_unix_epoch": 1, "disable_slat": 1, "disable_lat": 1}
    moves = []
    try:
        with Fio(bench.tools["fio"], bench.work, uri, job) as fio:
            time.sleep(BEGINS + before)
            while len(moves) < count and enough > 0:
                began = time.time()
                ended = mover.move()
                moves.append((began, time.time(), ended))
                enough -= time.time() - began
                time.sleep(after)
                if not ended:
                    break
            fio.end()
    finally:
        mover.end()
    return latencies(bench.work, "app"), moves


def window(found, since, until):
    """IO/s, p99 and the longest of the I/Os that ended in a stretch of time."""
    took = [ms for when, ms in found if since <= when < until]
    if not took:
        # Nothing ended: the whole stretch was one wait.
        return {"iops": 0.0, "p99_ms": (until - since) * 1000,
                "max_ms": (until - since) * 1000}
    return {"iops": len(took) / (until - since), "p99_ms": within(took, 0.99),
            "max_ms": max(took)}


def iops(found, since, until):
    """I/Os per second in a stretch of time."""
    return window(found, since, until)["iops"]


def iops_at_work(found, since, until, step=0.1):
    """I/Os per second in those parts of a stretch in which anything ended."""
    ended = [int((when - since) / step) for when, _ in found if since <= when < until]
    return len(ended) / max(1, len(set(ended))) / step


def fill(path, size, share=1.0):
    """Writes a raw image: incompressible data in its first `share`, holes behind;
    spread evenly if the share is not the whole."""
    if os.path.exists(path) and os.path.getsize(path) == size:
        return
    chunk = 1 << 20
    block = bytearray(os.urandom(chunk))
    with open(path, "wb") as file:
        done = 0
        for number in range(size // chunk):
            # Runs of 16 MiB: allocated files are not dust.
            if share < 1.0 and (number // 16) % 10 >= share * 10:
                continue
            block[:8] = number.to_bytes(8, "little")
            file.seek(number * chunk)
            file.write(block)
            done += chunk
        file.truncate(size)
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
