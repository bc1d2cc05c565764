"""Reads (or writes) on a disk until its input ends: load.py URI LENGTH PER_SECOND QUEUE [write]

So many requests of that length a second, in random places, with at most QUEUE at a time.
"""

import random
import select
import sys
import time

import nbd

uri, length, pace, queue = sys.argv[1], *map(int, sys.argv[2:5])
writes = sys.argv[5:] == ["write"]
disk = nbd.NBD()
disk.connect_uri(uri)
places = disk.get_size() // length
data = random.randbytes(length)
under_way = 0
due = time.monotonic()


def ended(error):
    global under_way
    under_way -= 1
    return 1


while not select.select([sys.stdin], [], [], 0)[0]:
    while under_way < queue and time.monotonic() >= due:
        place = random.randrange(places) * length
        under_way += 1
        # Who falls behind does not catch up: no burst follows a pause.
        due = max(due + 1 / pace, time.monotonic() - 0.1)
        if writes:
            disk.aio_pwrite(nbd.Buffer.from_bytearray(bytearray(data)), place, ended)
        else:
            disk.aio_pread(nbd.Buffer(length), place, ended)
    disk.poll(10)
