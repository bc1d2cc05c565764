"""Enough of QMP for a mirror: commands, and waiting for a job."""

import json
import socket
import time


class Qmp:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.stream = self.socket.makefile("rw")
        self.stream.readline()  # the greeting
        self.call("qmp_capabilities")

    def call(self, command, **arguments):
        self.stream.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self.stream.flush()
        while True:
            answer = json.loads(self.stream.readline())
            if "return" in answer:
                return answer["return"]
            if "error" in answer:
                raise RuntimeError(f"{command}: {answer['error']['desc']}")

    def job(self, name):
        for job in self.call("query-jobs"):
            if job["id"] == name:
                return job
        return None

    def mirror(self, source, target, mode, limit, speed=None):
        """Mirrors and pivots, at so many bytes per second if that is said. Gives
        whether it came to an end within the limit."""
        deadline = time.monotonic() + limit
        self.call("blockdev-mirror", **{
            "job-id": "m", "device": source, "target": target, "sync": "full",
            "copy-mode": mode, "auto-dismiss": False, "speed": speed or 0})
        completing = False
        while time.monotonic() < deadline:
            job = self.job("m")
            if job["status"] == "ready" and not completing:
                completing = True
                self.call("job-complete", id="m")
            if job["status"] == "concluded":
                error = job.get("error")
                self.call("job-dismiss", id="m")
                if error:
                    raise RuntimeError(f"blockdev-mirror: {error}")
                return True
            time.sleep(0.02)
        self.call("job-cancel", id="m")
        return False

    def close(self):
        self.stream.close()
        self.socket.close()
