"""What a run trains on: an emulated cluster, or this machine alone; its processes, its power, what is in its memory."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

CLUSTER = os.environ.get("TESSERA_CLUSTER", "chaos")
ENDS_WITH_ITS_PARENT = ["setpriv", "--pdeathsig", "KILL"]
BUSY_LOOP = [*ENDS_WITH_ITS_PARENT, "sh", "-c", "while :; do :; done"]


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


@contextlib.contextmanager
def busy_loops(cluster, per_core):
    """So many on each core of what is trained on, at the priority of the training; they end with the `with`, or with this process."""
    loops = []
    try:
        for words in cluster.busy_loops():
            loops += [subprocess.Popen(words, stdin=subprocess.DEVNULL) for _ in range(per_core)]
        yield
        if any(loop.poll() is not None for loop in loops):
            raise RuntimeError("a busy loop has ended before the run")
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


class Cluster:
    """Emulated devices. disk: where they have runs; views: what is there of one device or another, as a path of this machine: one for
    all where they share it."""

    is_one_machine = False

    def __init__(self, options):
        self.tool = "bench/cluster/cluster"
        self.devices = [f"pi{i + 1}" for i in range(options.devices)]
        self.program, self.off = os.path.abspath(options.program), set()
        self.call("down", check=False)
        self.disk = os.path.abspath(os.path.join(options.folder, "disk"))
        self.views = {device: os.path.join(self.disk, device) for device in self.devices} if options.own else {self.devices[0]: self.disk}
        for view in self.views.values():
            subprocess.run(["umount", "--lazy", view], stderr=subprocess.DEVNULL)
        subprocess.run(["rm", "-rf", self.disk], check=True)
        for view in self.views.values():
            os.makedirs(view)
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={options.disk}m", "tessera-chaos", view], check=True)
        self.call("up", "--devices", str(options.devices), "--cpu", str(options.cpu), "--memory", str(options.memory),
                  "--rate", "100", "--name", CLUSTER, *(["--own", self.disk] if options.own else []))
        self.ssh = self.call("ssh").strip()

    def on(self):
        return [device for device in self.devices if device not in self.off]

    def call(self, *words, check=True):
        done = subprocess.run([self.tool, "--cluster", CLUSTER, *words] if words[0] != "up" else [self.tool, *words],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if check and done.returncode != 0:
            raise RuntimeError(f"cluster {' '.join(words)}: {done.stdout}")
        return done.stdout

    def all_processes(self, device):
        """Ids, as this machine counts them, of all that runs on the device."""
        pids = subprocess.run(["ip", "netns", "pids", f"tessera-{CLUSTER}.{device}"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True)
        return [int(pid) for pid in pids.stdout.split()]

    def processes(self, device, command=""):
        """The ids of those that run the program, or this command of it."""
        found = []
        for pid in self.all_processes(device):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    words = file.read().decode(errors="replace").split("\0")
                with open(f"/proc/{pid}/exe", "rb"):
                    pass
            except OSError:
                continue
            if words[0] == self.program and command in ("", words[1]):
                found.append(pid)
        return found

    def memory_entries(self, device):
        """Files and folders in the device's memory that are the program's or MPI's, as paths of this machine."""
        with contextlib.suppress(OSError):
            with open(f"/run/tessera-cluster/{CLUSTER}/devices/{device}/pid") as file:
                folder = f"/proc/{file.read().strip()}/root/dev/shm"
            return [os.path.join(folder, name) for name in os.listdir(folder)
                    if name.startswith(("tessera-", "mpich_shar_tmp", "ucx_shm_posix_"))]
        return []

    @staticmethod
    def namespaces():
        """Network namespaces of the cluster: one a device that is on, and that of the switch."""
        return sum(name.startswith(f"tessera-{CLUSTER}.") for name in os.listdir("/run/netns"))

    def busy_loops(self):
        """Commands, each of which keeps a core of a device busy and has its share of that device's time."""
        return [[*ENDS_WITH_ITS_PARENT, self.tool, "--cluster", CLUSTER, "exec", device, *BUSY_LOOP] for device in self.devices]

    def down(self):
        self.call("down", check=False)
        for view in self.views.values():
            subprocess.run(["umount", "--lazy", view])

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

    is_one_machine = True

    def __init__(self, options):
        self.devices, self.off = ["here"], set()
        self.disk = os.path.abspath(os.path.join(options.folder, "disk"))
        self.views = {"here": self.disk}
        subprocess.run(["rm", "-rf", self.disk], check=True)
        self.mark = f"TESSERA_CHAOS={self.disk}".encode()
        self.program = options.program
        os.makedirs(self.disk)

    def on(self):
        return self.devices

    def all_processes(self, _device):
        """Ids of what has been started for the runs here, by them too."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
                if self.mark in file.read().split(b"\0"):
                    found.append(int(pid))
        return found

    def processes(self, device, command=""):
        found = []
        for pid in self.all_processes(device):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().decode(errors="replace").split("\0")
                if words[0] == self.program and command in ("", words[1]):
                    found.append(pid)
        return found

    def memory_entries(self, _device):
        """Folders in memory of the runs here; each has a number, which the supervisor's record has too."""
        entries = []
        for name in os.listdir(self.disk):
            try:
                with open(os.path.join(self.disk, name, "supervisor.json")) as file:
                    number = json.load(file)["run_number"]
            except (OSError, ValueError, KeyError):
                continue
            entries += [os.path.join("/dev/shm", name) for name in os.listdir("/dev/shm") if name.startswith("tessera-") and number in name]
        return entries

    @staticmethod
    def namespaces():
        return 0

    @staticmethod
    def busy_loops():
        """Commands, each of which keeps a core of this machine busy."""
        return [BUSY_LOOP] * len(os.sched_getaffinity(0))

    def poweron(self, *devices):
        pass

    def down(self):
        for pid in self.processes("here"):
            end_at_once(pid)
