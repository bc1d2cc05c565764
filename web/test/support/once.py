"""Makes one read of 4 KiB on a disk for each line of its input, and writes when it was answered
(milliseconds since 1970): once.py URI
"""

import sys
import time

import nbd

disk = nbd.NBD()
disk.connect_uri(sys.argv[1])
for _ in sys.stdin:
    disk.pread(4096, 0)
    print(time.time() * 1e3, flush=True)
