"""What a run trains on: an emulated cluster, or this machine alone; its processes, its power, what is in its memory."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

CLUSTER = "chaos"


def show(text):
    print(text, file=sys.stderr, flush=True)


def end_at_once(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def wait_for(condition, seconds, step=0.05):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(step)
    return False


class Cluster:
    def __init__(self, options):
        self.tool = "bench/cluster/cluster"
        self.devices = [f"pi{i + 1}" for i in range(options.devices)]
        self.off = set()
        self.call("down", check=False)
        self.disk = os.path.abspath(os.path.join(options.folder, "disk"))
        os.makedirs(self.disk, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tessera-chaos", self.disk], check=True)
        self.call("up", "--devices", str(options.devices), "--cpu", str(options.cpu), "--memory", str(options.memory),
                  "--rate", "100", "--name", CLUSTER)
        self.ssh = self.call("ssh").strip()

    def call(self, *words, check=True):
        done = subprocess.run([self.tool, "--cluster", CLUSTER, *words] if words[0] != "up" else [self.tool, *words],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if check and done.returncode != 0:
            raise RuntimeError(f"cluster {' '.join(words)}: {done.stdout}")
        return done.stdout

    def on(self, device, *words):
        return self.call("exec", device, *words, check=False)

    def processes(self, device, command=""):
        """Ids, as this machine counts them, of the device's processes, or of those that run this command."""
        found = []
        pids = subprocess.run(["ip", "netns", "pids", f"tessera-{CLUSTER}.{device}"], stdout=subprocess.PIPE, text=True)
        for pid in pids.stdout.split():
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    words = file.read().decode(errors="replace").split("\0")
                with open(f"/proc/{pid}/exe", "rb"):
                    pass
            except OSError:
                continue
            if words[0].endswith("/tessera") and command in ("", words[1]):
                found.append(int(pid))
        return found

    def left_in_memory(self, device):
        return [name for name in self.on(device, "ls", "/dev/shm").split()
                if name.startswith(("tessera-", "mpich_shar_tmp", "ucx_shm_posix_"))]

    def down(self):
        self.call("down", check=False)
        subprocess.run(["umount", "--lazy", self.disk])

    def poweroff(self, *devices):
        devices = [device for device in devices if device not in self.off]
        if devices:
            self.call("poweroff", *devices)
            self.off.update(devices)

    def poweron(self, *devices):
        devices = [device for device in devices if device in self.off]
        if devices:
            self.call("poweron", *devices)
            self.off.difference_update(devices)


class OneMachine:
    """This machine alone, in place of an emulated cluster: processes can be killed and stopped, nothing else."""

    def __init__(self, options):
        self.devices, self.off = ["here"], set()
        self.disk = os.path.abspath(os.path.join(options.folder, "disk"))
        self.mark = f"TESSERA_CHAOS={self.disk}".encode()
        self.program = options.program
        os.makedirs(self.disk, exist_ok=True)

    def processes(self, _device, command=""):
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    words = file.read().decode(errors="replace").split("\0")
                with open(f"/proc/{pid}/environ", "rb") as file:
                    marked = self.mark in file.read().split(b"\0")
            except OSError:
                continue
            if marked and words[0] == self.program and command in ("", words[1]):
                found.append(int(pid))
        return found

    def left_in_memory(self, _device):
        """Folders of memory of the runs here; each has a number, which the supervisor's record has too."""
        left = []
        for name in os.listdir(self.disk):
            try:
                with open(os.path.join(self.disk, name, "supervisor.json")) as file:
                    number = json.load(file)["run_number"]
            except (OSError, ValueError, KeyError):
                continue
            left += [folder for folder in os.listdir("/dev/shm") if folder.startswith("tessera-") and number in folder]
        return left

    def poweron(self, *devices):
        pass

    def down(self):
        for pid in self.processes("here"):
            end_at_once(pid)
