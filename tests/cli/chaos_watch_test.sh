#!/usr/bin/env bash
# The watch of bench/chaos over a run: which growth is a leak, what is counted of processes, and a run that is watched. Which devices train,
# and whether two parts of a run do.
. tests/cli/support/harness.sh
command -v python3 >/dev/null || exit 77

cat >"$folder/train" <<'PYTHON'
# Stands for a rank: with each line it holds as much more as the line says.
import os, socket, subprocess, sys, threading

held, children = [], []
for line in sys.stdin:
    for what in line.split():
        if what == "socket":
            held.append(socket.socket())
        elif what == "file":
            held.append(open(os.devnull))
        elif what == "thread":
            threading.Thread(target=threading.Event().wait, daemon=True).start()
        elif what == "memory":
            held.append(b"x" * (1 << 20))
        elif what == "zombie":
            children.append(subprocess.Popen(["true"]))
            os.waitid(os.P_PID, children[-1].pid, os.WEXITED | os.WNOWAIT)
        elif what == "child":
            children.append(subprocess.Popen(["cat"], stdin=subprocess.PIPE))
        elif what == "entry":
            open(f"{sys.argv[1]}/{len(os.listdir(sys.argv[1]))}", "w").write("x" * (1 << 20))
    print("held", flush=True)
PYTHON
python3 - "$folder" <<'PYTHON' || fail 'the watch tells what grows from what does not'
import os, random, subprocess, sys
sys.path.insert(0, "bench/chaos")
from watch import COMPARED, LEAST_SAMPLES, Watch, growth

MIB = 1 << 20
folder = sys.argv[1]
chance = random.Random(1)


def leaks(name, values):
    return growth(name, values).is_leak


# Memory that varies, that is only needed after a while, or for a moment; memory that grows, and that is given back.
flat = [50 * MIB + chance.randrange(MIB // 2) for _ in range(200)]
assert not leaks("rank_rss", flat)
assert not leaks("rank_rss", [10 * MIB] * 50 + flat[:150])
assert not leaks("rank_rss", flat[:150] + [400 * MIB] * 20 + flat[170:])
assert leaks("rank_rss", [value + number * MIB // 40 for number, value in enumerate(flat)])
assert not leaks("rank_rss", list(reversed([value + number * MIB // 40 for number, value in enumerate(flat)])))
assert growth("rank_rss", [1] * 50 + [2] * 50 + [3] * 50 + [4] * 50)[1:] == (2, 4)
# A share of what there is, and a fixed amount.
assert not leaks("memory_bytes", [0] * 60 + [MIB] * 40) and leaks("memory_bytes", [0] * 60 + [MIB + 1] * 40)
assert not leaks("memory_bytes", [100 * MIB] * 60 + [103 * MIB] * 40) and leaks("memory_bytes", [100 * MIB] * 60 + [103 * MIB + 1] * 40)
assert not leaks("supervisor_sockets", [0] * 60 + [2] * 40) and leaks("supervisor_sockets", [0] * 60 + [3] * 40)
assert growth("zombies", [0] * (LEAST_SAMPLES - 1)) is None and growth("zombies", [0] * LEAST_SAMPLES)


class Devices:
    """One device with the processes that stand for a run's."""
    devices = ["here"]

    def __init__(self, *processes):
        self.processes = processes

    def all_processes(self, _device):
        return [process.pid for process in self.processes if process.poll() is None]

    def memory_entries(self, _device):
        return [folder + "/memory"]

    def namespaces(self):
        return 7


def start(word):
    os.makedirs(folder + "/memory", exist_ok=True)
    return subprocess.Popen(["tessera", word, folder + "/memory"], executable=sys.executable, cwd=folder, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True)


def hold(process, what):
    process.stdin.write(what + "\n")
    process.stdin.flush()
    assert process.stdout.readline() == "held\n"


def end(*processes):
    for process in processes:
        process.kill()
        process.communicate()


os.symlink("train", folder + "/run")
os.symlink("train", folder + "/agent")


def watched(what, role="train", samples=LEAST_SAMPLES):
    """Leaks that are told of two ranks and a supervisor, of which one process holds more with each sample."""
    processes = [start("run"), start("train"), start("train")]
    grows = processes[0] if role == "run" else processes[1]
    watch = Watch(Devices(*processes), "build/tessera", 2, 1)
    for process in processes:
        hold(process, "")
    for _ in range(samples):
        hold(grows, what)
        watch.take()
    end(*processes)
    assert {sample["ranks"] for sample in watch.samples} == {2} and watch.row()["compared"] == samples
    assert watch.row()["flat"] == ("no" if watch.problems() else "yes")
    assert set(watch.samples[0]) == set(COMPARED) | {"seconds", "ranks"}
    return watch, sorted({problem.split()[0] for problem in watch.problems()})


watch, found = watched("")
assert found == [], watch.problems()
sample = watch.samples[-1]
assert (sample["processes"], sample["other_processes"], sample["namespaces"], sample["zombies"]) == (3, 0, 7, 0), sample
assert sample["rank_sockets"] == 0 and sample["rank_descriptors"] >= 3 and sample["agent_rss"] is None, sample
assert sample["supervisor_rss"] > MIB and sample["supervisor_threads"] == 1, sample
assert watched("socket")[1] == ["rank_sockets"]
assert watched("file", "run")[1] == ["supervisor_descriptors"]
assert "rank_threads" in watched("thread")[1]
assert watched("memory", "run")[1] == ["supervisor_rss"]
assert watched("entry")[1] == ["memory_bytes", "memory_files"]
watch, found = watched("zombie")
assert "zombies" in found and "processes" not in found, found
assert {sample["zombies"] for sample in watched("child")[0].samples} == {0}

# A rank that is started anew over and over hides from the column what each of its lives shows.
watch = Watch(Devices(), "tessera", 1, 1)
for life in range(4):
    rank = start("train")
    watch.cluster.processes = (rank,)
    for _ in range(LEAST_SAMPLES + 8):
        hold(rank, "memory")
        watch.take()
    end(rank)
assert not any(each.is_leak for each in watch.of_columns() if each.name == "rank_rss")
assert sum(each.is_leak for each in watch.of_lives("rank")) == 4 and watch.row()["rank_lives"] == 4, watch.of_lives()
assert [problem.split()[0] for problem in watch.problems()] == ["rank_rss"] * 4, watch.problems()
assert float(watch.row()["rank_life_rss_growth"]) > 8 * MIB

# What is seen while a rank is missing is not compared, and too little is not judged.
rank, other = start("train"), start("train")
watch = Watch(Devices(rank, other), "tessera", 2, 1)
for number in range(2 * LEAST_SAMPLES):
    hold(rank, "" if number < LEAST_SAMPLES - 1 else "memory")
    if number == LEAST_SAMPLES - 1:
        end(other)
    watch.take()
end(rank)
assert len(watch.samples) == 2 * LEAST_SAMPLES and len(watch.compared()) == LEAST_SAMPLES - 1
assert watch.problems() == [] and watch.row()["flat"] == "" and "too few" in str(watch)


class Broken(Devices):
    def all_processes(self, _device):
        raise RuntimeError("no such thing")


with Watch(Broken(), "tessera", 1, 0.001) as watch:
    watch.thread.join()
assert "no such thing" in watch.problems()[0]
PYTHON

python3 - "$folder" <<'PYTHON' || fail 'who trains, and whether apart from others, is seen in what ranks keep'
import os, struct, sys
sys.path.insert(0, "bench/chaos")
from progress import Progress

folder = sys.argv[1] + "/kept"


class Devices:
    """Each with a folder of kept files."""

    @staticmethod
    def on():
        return ["one", "two", "three"]

    @staticmethod
    def memory_entries(device):
        return [f"{folder}/{device}"]


def keep(device, number, step):
    """Both places of a file are of 100 bytes; the step before is in the other one."""
    os.makedirs(f"{folder}/{device}", exist_ok=True)
    with open(f"{folder}/{device}/own-0-{number:08x}.kept", "wb") as file:
        for kept in (step, step - 1) if step % 2 else (step - 1, step):
            file.write(struct.pack("<8sQ", b"tesslot2", kept).ljust(100, b"x"))


def seen(*samples):
    """(device, number, step) of what has been kept between one sample and the next."""
    progress = Progress(Devices())
    for now, sample in enumerate(samples):
        for one in sample:
            keep(*one)
        progress.take(now)
    return progress


together = [[("one", 7, step), ("two", 7, step)] for step in range(1, 6)]
progress = seen(*together)
assert progress.last_step() == 5 and progress.trained(0, 9) == {"00000007": {"one", "two"}} and progress.trained(3, 9) == {}
assert progress.halves() == []
# Started again with one device more and one less, files of before are still there.
progress = seen(*([("one", 8, step), ("three", 8, step)] for step in range(6, 10)))
assert progress.trained(0, 9) == {"00000008": {"one", "three"}} and progress.halves() == []
# By turns, at the same steps or at others.
assert seen(*([("one", 9, step), ("two", 10, step)] for step in range(10, 16))).halves() == ["one and two have trained at the same time"]
assert seen(*([("one", 11, step)] if step % 2 else [("two", 12, 100 + step), ("three", 12, 100 + step)] for step in range(20, 32))).halves()
PYTHON

mkdir "$folder/digits"
make_digits "$folder/digits" 120 20
export TESSERA_TEST=$folder
watched=(timeout -k 5 400 python3 bench/chaos/chaos.py --local 2 --program "$TESSERA" --folder "$folder/chaos" --data "$folder/digits" --grid 1x2 --every 0
  --minutes 0.1 --steps 100000000 --watch "$folder/samples.csv" --watch-every 2 --soak "$folder/soak.csv")
for load in 0 1; do
  expect "a run without faults is watched until its time is over, load $load" "${watched[@]}" --load "$load"
done
cp "$folder/soak.csv" "$folder/out"
expect 'a row for each call is added' test "$(grep -c '^undisturbed,2 ranks on one machine,[01],' "$folder/soak.csv")" -eq 2
expect 'under one heading' test "$(wc -l <"$folder/soak.csv")" -eq 3
# shellcheck disable=SC2016 # fields of awk
expect 'samples have a supervisor and both ranks' awk -F , 'NR == 1 { for (i = 1; i <= NF; ++i) at[$i] = i }
  NR > 1 && $at["ranks"] == 2 && $at["supervisor_rss"] > 1000000 && $at["rank_sockets"] > 0 && $at["memory_files"] > 0 { found = 1 } END { exit !found }' \
  "$folder/samples.csv"
for pid in $(pgrep -f '^sh -c while :; do :; done'); do
  ! grep -qzxF "TESSERA_TEST=$folder" "/proc/$pid/environ" 2>/dev/null || fail 'a busy loop is left'
done

mkdir "$folder/tree"
cp -r bench README.md "$folder/tree"
cp "$folder/soak.csv" "$folder/tree/bench/chaos/soak.csv"
cp bench/chaos/runs.origin "$folder/tree/bench/chaos/soak.origin"
expect 'its rows make a table' python3 "$folder/tree/bench/tables.py"
expect 'with a row for each run' test "$(grep -c '^| undisturbed | 2 ranks on one machine | [01] | 0\.0' "$folder/tree/bench/chaos/README.md")" -eq 2
