"""Reads from many disks, from each twice a second, until its input ends: many.py URI..."""

import select
import sys
import time

import nbd

disks = []
for uri in sys.argv[1:]:
    disks.append(nbd.NBD())
    disks[-1].connect_uri(uri)
PAUSE = 0.5 / len(disks)
at, due = 0, time.monotonic()
while not select.select([sys.stdin], [], [], max(0, due - time.monotonic()))[0]:
    disks[at].pread(4096, 4096 * (at % 200))
    at, due = (at + 1) % len(disks), max(due + PAUSE, time.monotonic() - 0.1)
