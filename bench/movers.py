"""The programs that move a disk, with or without a client on it.

A mover is prepared for a source and a destination, offers a URI (if it serves at
all), moves, and says what CPU time it took. Those that serve move it back the next
time.
"""

import os
import resource
import subprocess

from qmp import Qmp
from servers import Before, QemuNbd, Sterna, cpu_seconds, wait_for


class SternaMover:
    name = "sterna"
    # What must hold.
    guard = ()
    # Others move the same image, and none of them compares the two.
    how = ("--keep-source", "--no-verify")
    build = Sterna

    def __init__(self, bench):
        self.bench = bench
        self.server = self.build(bench.tools, bench.sockets, bench.work)
        self.report = {}

    def prepare(self, source, destination):
        self.way = ["here", "there"]
        self.directory = os.path.dirname(destination)
        self.server.start_daemon()
        self.add(source, destination)
        return self.server.uri()

    def add(self, source, destination):
        """The disk, and where it goes."""
        self.server.adopt("here", source)
        self.server.call("datastore", "add", "there", self.directory)

    def move(self):
        done = self.server.call("migrate", "disk", "--to", self.way[1], *self.how,
                                *self.guard)
        self.way.reverse()
        self.report = done["report"]
        return True

    def cpu(self):
        return self.server.cpu()

    def memory(self):
        return self.server.memory()

    def end(self):
        self.server.stop()
        for name in os.listdir(self.directory):
            os.unlink(os.path.join(self.directory, name))


class VerifiedMover(SternaMover):
    """As it moves by default: both images are compared before the switch-over."""

    name = "sterna, verified"
    how = ("--keep-source",)


class BeforeMover(SternaMover):
    """Another build of Sterna, moving in the same way."""

    name = "sterna before"
    build = Before


class GuardedMover(SternaMover):
    """Told what the application must keep; on the disk itself, or on two emulated
    arrays of a kind."""

    name = "sterna, guarded"

    def __init__(self, bench, array=None, guard=("--keep", "97%")):
        super().__init__(bench)
        self.array = array
        self.guard = guard

    def add(self, source, destination):
        if self.array is None:
            super().add(source, destination)
        else:
            add_arrays(self.server, self.array, source, destination)


# The caches of an emulated array, in proportion to such small disks: else the whole
# disk is in them after a minute.
CACHES = "cache=16M&write-cache=64M"


def add_arrays(server, array, source, destination):
    """Two arrays, the disk on the one."""
    sidecar = source + ".sterna"
    if os.path.exists(sidecar):
        os.unlink(sidecar)
    for name, path in (("here", source), ("there", destination)):
        server.call("datastore", "add", name,
                    f"array://{array}?{CACHES}&path={os.path.dirname(path)}")
    server.call("disk", "import", "disk", "--on", "here", source)


class Mirror:
    """qemu-storage-daemon with blockdev-mirror."""

    def __init__(self, bench, mode="background", speed=None):
        self.bench = bench
        self.limit = bench.limit
        self.mode = mode
        self.speed = speed
        self.name = f"mirror, {speed / 1e6:.0f} MB/s" if speed else "mirror, " + mode
        self.report = {}

    def prepare(self, source, destination):
        with open(destination, "wb") as file:
            file.truncate(os.path.getsize(source))
        self.destination = destination

        def node(name, path):
            return (f"driver=file,node-name={name},filename={path},cache.direct=on,"
                    "aio=io_uring,discard=unmap,detect-zeroes=unmap")
        return self.start(node("src", source), node("dst", destination))

    def start(self, source, destination):
        """Starts the daemon over two nodes."""
        sockets = self.bench.sockets
        nbd, control = os.path.join(sockets, "m.sock"), os.path.join(sockets, "q.sock")
        for path in (nbd, control):
            if os.path.exists(path):
                os.unlink(path)
        self.process = subprocess.Popen(
            [self.bench.tools["qemu-storage-daemon"],
             "--blockdev", source, "--blockdev", destination,
             "--nbd-server", f"addr.type=unix,addr.path={nbd},max-connections=16",
             "--export", "type=nbd,id=e,node-name=src,name=disk,writable=on",
             "--chardev", f"socket,id=c,path={control},server=on,wait=off",
             "--monitor", "chardev=c"])
        wait_for(control, self.process)
        wait_for(nbd, self.process)
        self.qmp = Qmp(control)
        self.way = ["src", "dst"]
        return f"nbd+unix:///disk?socket={nbd}"

    def move(self):
        ended = self.qmp.mirror(*self.way, self.mode, self.limit, self.speed)
        if ended:
            self.way.reverse()
        return ended

    def cpu(self):
        return cpu_seconds(self.process.pid)

    def end(self):
        self.qmp.close()
        self.process.terminate()
        self.process.wait()
        os.unlink(self.destination)


class ArrayMirror(Mirror):
    """The mirror between two disks of a Sterna daemon, on emulated arrays."""

    def __init__(self, bench, array, speed=None):
        super().__init__(bench, speed=speed)
        self.array = array
        self.server = Sterna(bench.tools, bench.sockets, bench.work)

    def prepare(self, source, destination):
        self.directory = os.path.dirname(destination)
        self.server.start_daemon()
        add_arrays(self.server, self.array, source, destination)
        self.server.call("disk", "create", "copy", "--on", "there",
                         "--size", str(os.path.getsize(source)))

        def node(name, export):
            return (f"driver=nbd,node-name={name},export={export},server.type=unix,"
                    f"server.path={self.server.socket},discard=unmap")
        return self.start(node("src", "disk"), node("dst", "copy"))

    def end(self):
        self.qmp.close()
        self.process.terminate()
        self.process.wait()
        self.server.stop()
        for name in os.listdir(self.directory):
            os.unlink(os.path.join(self.directory, name))


class Command:
    """A program that copies and ends; its CPU time is a child's."""

    def __init__(self, bench):
        self.bench = bench
        self.report = {}
        self.servers = []

    def prepare(self, source, destination):
        with open(destination, "wb") as file:
            file.truncate(os.path.getsize(source))
        self.source, self.destination = source, destination

    def move(self):
        subprocess.run(self.command(), check=True)
        return True

    def cpu(self):
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime + sum(s.cpu() for s in self.servers)

    def end(self):
        os.unlink(self.destination)


class Convert(Command):
    name = "qemu-img convert"

    def command(self):
        return [self.bench.tools["qemu-img"], "convert", "-n", "-W", "-m", "16",
                "-t", "none", "-T", "none", "-f", "raw", "-O", "raw",
                self.source, self.destination]


class Nbdcopy(Command):
    """nbdcopy between two qemu-nbd, which is its fastest arrangement."""

    name = "nbdcopy"

    def prepare(self, source, destination):
        super().prepare(source, destination)
        for number, file in enumerate((source, destination)):
            server = QemuNbd(self.bench.tools, self.bench.sockets)
            server.socket += str(number)
            server.start(file)
            self.servers.append(server)

    def command(self):
        return [self.bench.tools["nbdcopy"], "--flush", "--requests=16",
                *(server.uri() for server in self.servers)]

    def end(self):
        for server in self.servers:
            server.stop()
        self.servers = []
        super().end()
