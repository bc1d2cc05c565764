"""The demo's application: it keeps a queue of reads and writes going on a disk,
through libnbd, and remembers every write that was acknowledged.

    application.py run URI DIR       until its stdin is closed
    application.py verify URI DIR    reads everything back that DIR/log promises

The disk's first gigabyte is used, in pages of 8 KiB. A page holds its number and
the number of the write it came from, again and again, so a page that was read
says by itself which write it is. DIR/log has a line for each acknowledged write;
DIR/latency has a pair of doubles (when it ended, how long it took) for each I/O.
"""

import array
import os
import random
import select
import struct
import sys
import time

import nbd

PAGE = 8192
PAGES = (1 << 30) // PAGE
QUEUE = 8  # I/Os at a time, at most
PACE = 2000  # I/Os a second: applications have other things to do as well
READS = 0.6  # of all I/Os


def page(number, write):
    """The contents of a page after a write."""
    return struct.pack("<QQ", number, write) * (PAGE // 16)


class Application:
    def __init__(self, uri, directory):
        self.disk = nbd.NBD()
        self.disk.connect_uri(uri)
        self.log = open(os.path.join(directory, "log"), "a", buffering=1 << 16)
        self.latency = open(os.path.join(directory, "latency"), "ab", buffering=1 << 16)
        self.random = random.Random(42)
        self.written = {}  # page: the write that was acknowledged last
        self.busy = set()  # pages with an I/O under way
        self.writes = 0
        self.wrong = 0

    def start_one(self):
        """Puts one read or write into the queue."""
        number = self.random.randrange(PAGES)
        if number in self.busy:
            return
        self.busy.add(number)
        began = time.monotonic()
        if self.random.random() < READS:
            buffer = nbd.Buffer(PAGE)
            self.disk.aio_pread(
                buffer, number * PAGE,
                lambda error: self.ended(number, began, error, buffer=buffer))
        else:
            self.writes += 1
            write = self.writes
            buffer = nbd.Buffer.from_bytearray(bytearray(page(number, write)))
            self.disk.aio_pwrite(
                buffer, number * PAGE,
                lambda error: self.ended(number, began, error, write=write))

    def ended(self, number, began, error, buffer=None, write=None):
        """libnbd calls this when an I/O has ended."""
        now = time.monotonic()
        self.busy.discard(number)
        if error.value != 0:
            sys.exit(f"the disk answered with {os.strerror(error.value)}")
        if write is not None:
            self.written[number] = write
            self.log.write(f"{number} {write}\n")
        elif number in self.written:
            # What we wrote must be what we read, at any time.
            if buffer.to_bytearray() != page(number, self.written[number]):
                self.wrong += 1
        self.latency.write(array.array("d", [now, now - began]).tobytes())
        return 1  # libnbd may forget about it

    def run(self):
        stop = select.poll()
        stop.register(sys.stdin, select.POLLIN | select.POLLHUP)
        began, started, looked = time.monotonic(), 0, 0.0
        while True:
            now = time.monotonic()
            due = int((now - began) * PACE)
            while started < due and self.disk.aio_in_flight() < QUEUE:
                self.start_one()
                started += 1
            # What could not be started in time is not made up for.
            began += max(0, due - started) / PACE
            self.disk.poll(1)
            if now - looked > 0.1:
                looked = now
                self.latency.flush()
                if stop.poll(0):
                    break
        while self.disk.aio_in_flight():
            self.disk.poll(1000)
        self.disk.flush()
        self.disk.shutdown()
        self.log.close()
        self.latency.close()
        return self.wrong


def verify(uri, directory):
    """Asks the disk for every acknowledged write."""
    promised = {}
    with open(os.path.join(directory, "log")) as log:
        for line in log:
            number, write = line.split()
            promised[int(number)] = int(write)
    disk = nbd.NBD()
    disk.connect_uri(uri)
    lost = 0
    for number, write in sorted(promised.items()):
        if disk.pread(PAGE, number * PAGE) != page(number, write):
            lost += 1
    disk.shutdown()
    print(len(promised), lost)
    return lost


if __name__ == "__main__":
    command, uri, directory = sys.argv[1:]
    if command == "verify":
        bad = verify(uri, directory)
    else:
        bad = Application(uri, directory).run()
    sys.exit(1 if bad else 0)
