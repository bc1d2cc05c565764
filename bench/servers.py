"""The programs under comparison, as NBD servers on one raw file.

All of them open the file with O_DIRECT, except nbdkit, which cannot: its figures
are shown, and are not what the bars are measured against.
"""

import json
import os
import shutil
import socket
import subprocess
import time

TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid):
    """User and system time of a process and all its threads."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def thread_seconds(pid):
    """CPU time of a process's threads, by name. From the scheduler, in nanoseconds: the
    clock's ticks do not see what runs for a moment."""
    found = {}
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/comm") as file:
                name = file.read().strip()
            with open(f"/proc/{pid}/task/{task}/schedstat") as file:
                seconds = int(file.read().split()[0]) / 1e9
        except (FileNotFoundError, ProcessLookupError):
            continue  # It has ended.
        found[name] = found.get(name, 0.0) + seconds
    return found


def peak_memory(pid):
    """The most memory that a process has had, in MiB."""
    with open(f"/proc/{pid}/status") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return 0.0


def wait_for(path, process):
    """Waits until a server takes connections."""
    for _ in range(1000):
        try:
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(path)
            return
        except (FileNotFoundError, ConnectionRefusedError):
            if process.poll() is not None:
                raise RuntimeError(f"{process.args[0]} ended with "
                                   f"{process.returncode}") from None
            time.sleep(0.01)
    raise RuntimeError(f"{process.args[0]} does not listen at {path}")


class Server:
    """One running server."""

    name = ""
    # Whether it can do O_DIRECT at all.
    can_direct = True

    def __init__(self, tools, sockets, direct=True):
        self.tools = tools
        self.direct = direct and self.can_direct
        self.socket = os.path.join(sockets, f"{self.name.replace(' ', '-')}.sock")
        self.process = None

    def start(self, file):
        if os.path.exists(self.socket):
            os.unlink(self.socket)
        self.process = subprocess.Popen(self.command(file), stderr=subprocess.DEVNULL)
        wait_for(self.socket, self.process)
        return self.uri()

    def uri(self):
        return f"nbd+unix:///disk?socket={self.socket}"

    def cpu(self):
        return cpu_seconds(self.process.pid)

    def memory(self):
        return peak_memory(self.process.pid)

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait()
            self.process = None


class QemuNbd(Server):
    name = "qemu-nbd"

    def command(self, file):
        way = (["--cache=none", "--aio=native"] if self.direct else
               ["--cache=writeback", "--aio=io_uring"])
        return [self.tools["qemu-nbd"], "--persistent", "--shared=16", "--format=raw",
                *way, "--discard=unmap",
                "--export-name=disk", f"--socket={self.socket}", file]


class StorageDaemon(Server):
    name = "qemu-storage-daemon"

    def command(self, file):
        # No thread of its own for the I/O: Debian's 7.2.22 aborts when a client of a server
        # with one leaves (`nbd_blockdev_client_closed: Assertion … failed`).
        return [self.tools["qemu-storage-daemon"],
                "--blockdev", "driver=file,node-name=disk,"
                f"cache.direct={'on' if self.direct else 'off'},"
                f"aio=io_uring,discard=unmap,filename={file}",
                "--nbd-server", f"addr.type=unix,addr.path={self.socket},"
                "max-connections=16",
                "--export", "type=nbd,id=e,node-name=disk,name=disk,writable=on"]


class Nbdkit(Server):
    name = "nbdkit"
    can_direct = False

    def command(self, file):
        return [self.tools["nbdkit"], "--foreground", f"--unix={self.socket}",
                "--threads=16", "file", f"file={file}", "cache=none"]


class Sterna(Server):
    """Our daemon, on a fresh state directory each time."""

    name = "sterna"

    def __init__(self, tools, sockets, work):
        super().__init__(tools, sockets)
        self.api = os.path.join(sockets, "api.sock")
        self.state = os.path.join(work, "state")

    def call(self, *words):
        done = subprocess.run([self.tools[self.name], "--socket", self.api, "--json",
                               *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True)
        if done.returncode != 0:
            raise RuntimeError(f"sterna {' '.join(words)}: {done.stderr}")
        return json.loads(done.stdout) if done.stdout.strip() else None

    def start_daemon(self):
        shutil.rmtree(self.state, ignore_errors=True)
        with open(os.path.join(os.path.dirname(self.state), "daemon.log"), "w") as log:
            self.process = subprocess.Popen(
                [self.tools[self.name], "--socket", self.api, "--json", "serve",
                 "--config", "/dev/null", "--state", self.state, "--nbd-socket", self.socket],
                stdout=subprocess.PIPE, stderr=log)
        if not self.process.stdout.readline():
            raise RuntimeError("the daemon did not start; see daemon.log")

    def adopt(self, datastore, file):
        """Makes the file the disk `disk`, on a datastore for its directory."""
        sidecar = file + ".sterna"
        if os.path.exists(sidecar):
            os.unlink(sidecar)
        self.call("datastore", "add", datastore, os.path.dirname(file))
        self.call("disk", "import", "disk", "--on", datastore, file)

    def start(self, file):
        self.start_daemon()
        self.adopt("here", file)
        return self.uri()

    def stop(self):
        super().stop()
        shutil.rmtree(self.state, ignore_errors=True)


class Before(Sterna):
    """Another build of our daemon, if one is given to compare with."""

    name = "sterna before"


def find_tools(sterna, qemu, before):
    """Where the programs are; QEMU's from `qemu` if it is given, and `before` is another
    build of Sterna, or empty."""
    tools = {"sterna": sterna}
    if before:
        tools[Before.name] = before
    for name in ("qemu-nbd", "qemu-img", "qemu-storage-daemon"):
        own = os.path.join(qemu, name) if qemu else ""
        tools[name] = own if os.path.exists(own) else shutil.which(name)
    for name in ("nbdkit", "nbdcopy", "fio"):
        tools[name] = shutil.which(name)
    return tools


def versions(tools):
    """One line a program, for the record."""
    found = {}
    for name, path in tools.items():
        if path is None:
            found[name] = "missing"
            continue
        done = subprocess.run([path, "--version"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        found[name] = done.stdout.splitlines()[0] if done.stdout else "?"
    return found
