"""Reads from a disk, two hundred times a second, until its input ends, and says how long each read
took, in microseconds: times.py URI"""

import select
import sys
import time

import nbd

disk = nbd.NBD()
disk.connect_uri(sys.argv[1])
due = time.monotonic()
while not select.select([sys.stdin], [], [], max(0, due - time.monotonic()))[0]:
    began = time.perf_counter()
    disk.pread(4096, 0)
    print(round((time.perf_counter() - began) * 1e6), flush=True)
    due = max(due + 1 / 200, time.monotonic() - 0.1)
