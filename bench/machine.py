"""A machine with the small Debian guest of tests/guest, for what a guest itself sees."""

import os
import socket
import subprocess

# An emulated machine, while others are at work.
SILENCE = 120
MEMORY = "512M"


class Machine:
    """The guest, with disks given by QEMU's arguments. Ends with its block."""

    def __init__(self, guest, work, sockets, disks):
        self.console = os.path.join(work, "console.log")
        self.control = os.path.join(sockets, "control.sock")
        self.command = [os.path.join(guest, "boot"), MEMORY, self.control, self.console]
        self.disks = disks

    def __enter__(self):
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self.control)
            listener.listen()
            listener.settimeout(SILENCE)
            self.process = subprocess.Popen(
                [*self.command, str(free_port()), *self.disks], stdout=subprocess.DEVNULL)
            connection, _ = listener.accept()
        connection.settimeout(SILENCE)
        self.lines = connection.makefile("rw")
        connection.close()
        if self.hear() != "ready":
            raise RuntimeError(f"the guest does not come up; see {self.console}")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.unlink(self.control)

    def hear(self):
        return self.lines.readline().rstrip("\n")

    def run(self, line):
        """Does a line of shell; gives what that says, in whole lines."""
        self.lines.write(line + "\n")
        self.lines.flush()
        said = []
        while (heard := self.hear()).startswith("|"):
            said.append(heard[1:])
        if heard != "=0":
            raise RuntimeError(f"the guest's `{line}`: {heard} {' '.join(said)}")
        return "\n".join(said)


def free_port():
    """A port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]
