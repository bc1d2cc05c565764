"""The programs that move a disk, with or without a client on it.

A mover is prepared for a source and a destination, offers a URI (if it serves at
all), moves, and says what CPU time it took.
"""

import os
import resource
import subprocess

from qmp import Qmp
from servers import QemuNbd, Sterna, cpu_seconds, wait_for


class SternaMover:
    name = "sterna"

    def __init__(self, bench):
        self.bench = bench
        self.server = Sterna(bench.tools, bench.sockets, bench.work)
        self.report = {}

    def prepare(self, source, destination):
        self.server.start_daemon()
        self.server.adopt("here", source)
        self.directory = os.path.dirname(destination)
        self.server.call("datastore", "add", "there", self.directory)
        return self.server.uri()

    def move(self):
        done = self.server.call("migrate", "disk", "--to", "there", "--keep-source")
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


class Mirror:
    """qemu-storage-daemon with blockdev-mirror."""

    def __init__(self, bench, mode="background"):
        self.bench = bench
        self.mode = mode
        self.name = "mirror, " + mode
        self.report = {}

    def prepare(self, source, destination):
        sockets = self.bench.sockets
        nbd, control = os.path.join(sockets, "m.sock"), os.path.join(sockets, "q.sock")
        for path in (nbd, control):
            if os.path.exists(path):
                os.unlink(path)
        with open(destination, "wb") as file:
            file.truncate(os.path.getsize(source))
        self.destination = destination

        def node(name, path):
            return (f"driver=file,node-name={name},filename={path},cache.direct=on,"
                    "aio=io_uring,discard=unmap,detect-zeroes=unmap")
        self.process = subprocess.Popen(
            [self.bench.tools["qemu-storage-daemon"], "--object", "iothread,id=t",
             "--blockdev", node("src", source), "--blockdev", node("dst", destination),
             "--nbd-server", f"addr.type=unix,addr.path={nbd},max-connections=16",
             "--export", "type=nbd,id=e,node-name=src,name=disk,writable=on,iothread=t",
             "--chardev", f"socket,id=c,path={control},server=on,wait=off",
             "--monitor", "chardev=c"])
        wait_for(control, self.process)
        wait_for(nbd, self.process)
        self.qmp = Qmp(control)
        return f"nbd+unix:///disk?socket={nbd}"

    def move(self):
        return self.qmp.mirror("src", "dst", self.mode, self.bench.limit)

    def cpu(self):
        return cpu_seconds(self.process.pid)

    def end(self):
        self.qmp.close()
        self.process.terminate()
        self.process.wait()
        os.unlink(self.destination)


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
