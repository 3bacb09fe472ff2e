"""Faults that are made during a run, and how often each is."""

import contextlib
import os
import signal
import subprocess
import time

from machines import CLUSTER, end_at_once, wait_for


class Faults:
    """Each function makes a fault and returns where, and what ends it, or None. Any device may have it, also the one with the supervisor."""

    def __init__(self, cluster, options, chance):
        self.cluster, self.options, self.chance = cluster, options, chance

    def a_device(self, run):
        """And how it is called in what is said of the fault."""
        device = self.chance.choice(self.cluster.on())
        return device, device + " (leads)" * (device == run.leader())

    def ranks(self):
        return [(d, pid) for d in self.cluster.on() for pid in self.cluster.processes(d, "train")]

    def signal_rank(self, number):
        ranks = self.ranks()
        if not ranks:
            return "nobody"
        device, pid = self.chance.choice(ranks)
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return "nobody"
        return device

    def rank_killed(self, run):
        return self.signal_rank(signal.SIGKILL), None

    def rank_stopped(self, run):
        return self.signal_rank(signal.SIGSTOP), None

    def two_ranks_killed(self, run):
        return f"{self.signal_rank(signal.SIGKILL)} {self.signal_rank(signal.SIGKILL)}", None

    def killed_again_while_recovering(self, run):
        first = self.signal_rank(signal.SIGKILL)
        time.sleep(self.chance.uniform(0.1, 1.5))
        return f"{first} {self.signal_rank(signal.SIGKILL)}", None

    def agent_killed(self, run):
        device, where = self.a_device(run)
        for pid in self.cluster.processes(device, "agent"):
            end_at_once(pid)
        return where, None

    def cable_out(self, run):
        device, where = self.a_device(run)
        self.cluster.call("link", device, "down")
        return where, (self.chance.uniform(1, 15), lambda: self.cluster.call("link", device, "up", check=False))

    def slow_link(self, run):
        device, where = self.a_device(run)
        self.cluster.call("link", device, "rate", "3")
        return where, (self.chance.uniform(3, 10), lambda: self.cluster.call("link", device, "rate", "100", check=False))

    def power_off(self, run):
        device, where = self.a_device(run)
        self.cluster.poweroff(device)
        return where, (self.chance.uniform(1, 20), lambda: self.cluster.poweron(device))

    def lossy_link(self, run):
        """The switch's port to a device has room for two frames: what else comes meanwhile is dropped."""
        device, where = self.a_device(run)
        subprocess.run(["tc", "-n", f"tessera-{CLUSTER}.switch", "qdisc", "replace", "dev", device, "root", "tbf", "rate",
                        "20mbit", "burst", "3200", "limit", "3200", "overhead", "24"], check=True)
        return where, (self.chance.uniform(3, 10),
                       lambda: self.cluster.call("link", device, "rate", "100", check=False))

    def power_off_three(self, run):
        on, leader = self.cluster.on(), run.leader()
        devices = self.chance.sample(on, min(3, len(on) - 1))
        folders = run.holders()
        self.cluster.poweroff(*devices)

        def back():
            self.cluster.poweron(*devices)
            if set(folders) <= set(devices):  # nobody else can go on by itself
                run.go_on(folders[0])

        return " ".join(devices) + f" ({leader} leads)" * (leader in devices), (self.chance.uniform(1, 20), back)

    def memory_kill(self, run):
        ranks = self.ranks()
        if not ranks:
            return "nobody", None
        device, pid = self.chance.choice(ranks)
        limit = self.cluster_memory_file(pid)
        if limit is None:
            return "nobody", None
        with open(limit) as file:
            before = file.read().strip()
        for mebibytes in range(60, 4, -4):
            try:
                with open(limit, "w") as file:
                    file.write(str(mebibytes << 20))
            except OSError:
                continue
            if not os.path.exists(f"/proc/{pid}"):
                break
            time.sleep(0.05)
        return device, (0.2, lambda: open(limit, "w").write(before))

    def full_disk(self, run):
        """The disk with the run's folder is full for a while."""
        device = run.newest()
        filler = os.path.join(self.cluster.views[device], "filler")
        with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(1 << 16))
        return device, (self.chance.uniform(1, 8), lambda: os.remove(filler))

    def clock_jump(self, run):
        """The clock of the first device is set forward or back by up to a day."""
        if not self.options.clock:
            return "nobody", None
        with open(self.options.clock_file, "w") as file:
            file.write(f"{self.chance.choice('+-')}{self.chance.uniform(10, 86400):.0f}s\n")
        return "pi1", None

    def killed_while_checkpointing(self, run):
        """Any rank, while a checkpoint is being written."""
        wait_for(lambda: run.ended() or any(name.endswith(".partial") for name in os.listdir(run.folder)), 20, 0.001)
        return self.signal_rank(signal.SIGKILL), None

    def killed_while_starting(self, run):
        """A rank is killed, and then one of those that are started again: it reads pictures, plans or restores."""
        first = self.signal_rank(signal.SIGKILL)
        wait_for(lambda: not self.ranks(), 5, 0.01)
        wait_for(self.ranks, 20, 0.01)
        time.sleep(self.chance.uniform(0, 0.5))
        return f"{first} {self.signal_rank(signal.SIGKILL)}", None

    @staticmethod
    def cluster_memory_file(pid):
        with open(f"/proc/{pid}/cgroup") as file:
            for line in file:
                number, controllers, path = line.rstrip("\n").split(":", 2)
                if "memory" in controllers.split(","):
                    return f"/sys/fs/cgroup/memory{path}/memory.limit_in_bytes"
                if number == "0" and os.path.exists(f"/sys/fs/cgroup{path}/memory.max"):
                    return f"/sys/fs/cgroup{path}/memory.max"
        return None

    def kill_supervisor(self, run):
        """Where it was; nobody where there was none."""
        device = run.leader()
        if device is None:
            return "nobody"
        pids = self.cluster.processes(device, "run")
        for pid in pids:
            end_at_once(pid)
        wait_for(lambda: not set(pids) & set(self.cluster.processes(device, "run")), 5, 0.01)
        return device

    def supervisor_killed(self, run):
        """Somebody continues with one command, on the same device."""
        device = self.kill_supervisor(run)
        return device, (0, lambda: run.go_on(device)) if device != "nobody" else None

    def supervisor_lost(self, run):
        """Another device takes over."""
        return self.kill_supervisor(run), None

    def power_off_all(self, run):
        device = run.newest()
        self.cluster.poweroff(*self.cluster.devices)

        def back():
            self.cluster.poweron(*self.cluster.devices)
            run.go_on(device)

        return "all", (1, back)

    def damaged_checkpoint(self, run):
        """The newest checkpoint on disk is damaged, then everything loses its power."""
        path = os.path.join(run.folder, "checkpoint.safetensors")  # on the device from which the run goes on
        if os.path.exists(path):
            with open(path, "r+b") as file:
                size = os.path.getsize(path)
                file.seek(self.chance.randrange(size // 2, size))
                byte = file.read(1)
                file.seek(-1, os.SEEK_CUR)
                file.write(bytes([byte[0] ^ 255]))
        return self.power_off_all(run)


# Shares of each kind; those that need a person are rare.
KINDS = {"rank_killed": 8, "rank_stopped": 4, "two_ranks_killed": 2, "killed_again_while_recovering": 3, "agent_killed": 3,
         "cable_out": 4, "slow_link": 2, "power_off": 4, "power_off_three": 1, "memory_kill": 2, "supervisor_killed": 1, "supervisor_lost": 2,
         "power_off_all": 1, "damaged_checkpoint": 1, "lossy_link": 2, "full_disk": 2, "clock_jump": 2,
         "killed_while_checkpointing": 2, "killed_while_starting": 3}


ON_ONE_MACHINE = ["rank_killed", "rank_stopped", "two_ranks_killed", "killed_again_while_recovering", "agent_killed",
                  "supervisor_killed", "killed_while_checkpointing", "killed_while_starting"]
