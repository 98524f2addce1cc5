#!/usr/bin/python3
"""Does a training that was killed resume to the same bits?   tests/kills.py [-n KILLS] [-s SEED] [TASK]...      BIN is the folder of the tools

For each task: an undisturbed training; then trainings that get SIGKILL, SIGTERM or SIGINT at random moments, up to three times each, and then
--resume to the end, until KILLS signals (default 20) have hit a running one. Compared are the weights, config and tables, the curve without its
times, and of every checkpoint that both have the weights, the moments and trainer_state.json without its seconds and digest. With several ranks, one rank or
mpirun gets the signal. Prints a table; ends with status 1 if anything differs, a training ends in another way, or something is left behind.
"""
import argparse, json, os, random, shutil, signal, subprocess, sys, tempfile, time

INPUTS = r"""
scsim -q --cells 200 --genes 80 --modules 4 --types 2 --module-share 0.8 --depth 400 --donors 4 --seed 5 -o sim.counts
rankenc -q --fit -o vocab.tsv sim.counts
rankenc -q -m vocab.tsv -o all.tok sim.counts
scsample -q --test-fraction 0.25 --part train -o train.tok all.tok
scsample -q --test-fraction 0.25 --part test -o test.tok all.tok
maskgen -q --epochs 3 --batch 6 --seed 4 -o train.masked train.tok
maskgen -q --seed 9 -o held.masked test.tok
sctrain mlm -q --config tiny -o base train.masked
maskgen -q --strategy none --keep cell_type --epochs 3 --batch 6 -o train.none train.tok
maskgen -q --strategy none --keep cell_type -o held.none test.tok
awk -F'\t' 'NR > 1 && $3 ~ /^m[1-4]/ { print $2 "\t" ($3 ~ /^m[12]/ ? "odd" : "even") }' vocab.tsv >labels.tsv
maskgen -q --strategy columns --rate-choice 0.1,0.3,0.5 --epochs 20 --batch 20 -o train.columns sim.counts
maskgen -q --strategy columns --seed 9 -o held.columns sim.counts
rankenc -q -m vocab.tsv --ties group --value sim.counts -o values.tok
maskgen -q --objective value --epochs 3 --batch 6 -o train.values values.tok
maskgen -q --objective value --seed 9 -o held.values values.tok
for r in 0 1; do maskgen -q --shard $r/2 --epochs 3 --batch 3 --seed 4 -o $r.masked train.tok; done
"""
EVAL = "--eval-every 7 --eval"
MLM = "mlm --config tiny --dropout 0.1 --save-every 3"
CELLS = "cells --label cell_type --init base --lr 0.003 --save-every 3"
GENES = "genes --gene-labels labels.tsv --init base --lr 0.003 --save-every 3"
VALUE = "value --config tiny --save-every 3"
NB = "nb --config mlp-nb-tiny --save-every 4"
RANKS = 2
TASKS = {
    "mlm": f"{MLM} train.masked",
    "mlm-eval": f"{MLM} {EVAL} held.masked train.masked",
    "cells": f"{CELLS} train.none",
    "cells-eval": f"{CELLS} {EVAL} held.none --best loss train.none",
    "genes": f"{GENES} train.none",
    "genes-eval": f"{GENES} {EVAL} held.none train.none",
    "value": f"{VALUE} train.values",
    "value-eval": f"{VALUE} {EVAL} held.values train.values",
    "nb": f"{NB} train.columns",
    "nb-eval": f"{NB} {EVAL} held.columns --best last train.columns",
    "nb-curriculum": f"{NB} --curriculum easy-to-hard train.columns",
    "mlm-mpi": f"{MLM} --mpi $R.masked",
    "mlm-mpi-eval": f"{MLM} --mpi {EVAL} held.masked $R.masked",
}
TIMES = (4, 5)  # columns of train.tsv: tokens per second, seconds
PATIENCE = 60  # seconds; Open MPI 4.1's mpirun may wait for ever for a rank that was killed while it connected. Not ours: counted apart


class Endless(Exception):
    """A training does not end."""


class Training:
    launcher_hangs = False

    def __init__(self, task, output, resume=True):
        command = f"exec sctrain {TASKS[task]} -q -o {output}" + " --resume" * resume
        self.ranks = RANKS if "--mpi" in command else 0
        self.start = time.monotonic()
        if self.ranks:
            for r in range(self.ranks):
                if os.path.exists(f"pid.{r}"):
                    os.unlink(f"pid.{r}")
            command = "mpirun --oversubscribe --bind-to none -n %d sh -c 'R=$OMPI_COMM_WORLD_RANK; echo $$ >pid.$R; %s'" % (self.ranks, command)
            command = "exec " + command
        self.log = open("log", "w+")
        self.process = subprocess.Popen(["sh", "-c", command], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def pid(self, rank):
        try:
            with open(f"pid.{rank}") as f:
                return int(f.read())
        except (OSError, ValueError):
            return None  # not started yet

    def send(self, sig, rng):
        """Send it to the training, or to a rank or, one time in ten, to mpirun. Returns who got it, or None."""
        who = "mpirun" if self.ranks else "sctrain"
        if self.process.poll() is not None:
            return None
        pid = self.process.pid
        if self.ranks and rng.random() < 0.9:
            who = rng.randrange(self.ranks)
            pid, who = self.pid(who), f"rank {who}"
        try:
            os.kill(pid or 0x7FFFFFFF, sig)
        except ProcessLookupError:
            return None
        return who

    def end(self):
        """Wait for the end of all its processes: the status of the shell, and the seconds."""
        try:
            status = self.process.wait(PATIENCE)
            for r in range(self.ranks):  # a killed mpirun leaves its ranks to notice it
                while (pid := self.pid(r)) and alive(pid):
                    if time.monotonic() - self.start > PATIENCE:
                        raise subprocess.TimeoutExpired("rank", PATIENCE)
                    time.sleep(0.02)
        except subprocess.TimeoutExpired as e:
            self.launcher_hangs = self.ranks > 0 and not any(alive(self.pid(r) or 0) for r in range(self.ranks))
            left = [p for p in [self.process.pid, *(self.pid(r) for r in range(self.ranks))] if p and alive(p)]
            shown = subprocess.run(["ps", "-o", "pid,ppid,stat,wchan,args", "-p", ",".join(map(str, left))], capture_output=True, text=True).stdout
            for pid in left:
                os.kill(pid, signal.SIGKILL)
            self.process.wait()
            if self.launcher_hangs:
                return 137
            self.log.seek(0)
            raise Endless(f"{e.cmd} does not end\n{shown}{self.log.read()}") from e
        self.seconds = time.monotonic() - self.start
        self.log.seek(0)
        self.said = self.log.read()
        self.log.close()
        return status if status >= 0 else 128 - status


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (OSError, IndexError):
        return False


def data(path):
    """What must be equal in a file."""
    with open(path, "rb") as f:
        content = f.read()
    if path.endswith("train.tsv"):
        return [[x for i, x in enumerate(line.split(b"\t")) if i not in TIMES] for line in content.split(b"\n")]
    if path.endswith("trainer_state.json"):
        state = json.loads(content)
        del state["digest"]
        state.pop("seconds", None)
        return state
    return content


def differences(whole, killed):
    """What differs, as a list of texts, and the number of checkpoints that were compared."""
    names, others = sorted(os.listdir(whole)), sorted(os.listdir(killed))
    checkpoints = [x for x in names if x.startswith("checkpoint-") and x in others]
    plain = [x for x in names if not x.startswith("checkpoint-")]
    found = [f"the folder has {x}" for x in others if not x.startswith("checkpoint-") and x not in plain or x.endswith(".tmp")]
    files = plain + [f"{c}/{x}" for c in checkpoints for x in sorted(set(os.listdir(f"{whole}/{c}")) | set(os.listdir(f"{killed}/{c}")))]
    for x in files:
        if not os.path.exists(f"{killed}/{x}") or not os.path.exists(f"{whole}/{x}"):
            found.append(f"{x} is missing in one")
        elif data(f"{whole}/{x}") != data(f"{killed}/{x}"):
            found.append(f"{x} differs")
    return found, len(checkpoints)


def disturb(training, moment, name, rng, history):
    """Send a signal after some seconds. Returns whether there was a training to get it, and what was wrong with its end."""
    time.sleep(moment)
    number = getattr(signal, "SIG" + name)
    hit = training.send(number, rng)
    history.append(f"{name} to {hit} after {moment:.3f} s")
    status = training.end()
    history[-1] += f": status {status}"
    expected = {0, 128 + number} if hit else {0}
    if training.ranks and hit:
        expected |= {1, 137, 143}  # mpirun's own, for a job that was ended
        if os.path.exists("killed/model.safetensors"):
            expected.add(status)  # the model was complete already, and mpirun tells of the signal
    if status not in expected:
        return hit, f"status {status}: {training.said}"
    if not training.ranks and training.said.count("\n") > 2:
        return hit, f"more than two lines: {training.said}"
    return hit, None


def sweep(task, kills, rng):
    """Returns the row of the table, and what was wrong."""
    wrong, hits, late, trainings, compared, hangs = [], dict.fromkeys(("KILL", "TERM", "INT"), 0), 0, 0, 0, 0
    whole = Training(task, "whole --keep-checkpoints 99", resume=False)
    if whole.end():
        sys.exit(f"kills.py: {task} fails undisturbed: {whole.said}")
    seconds = whole.seconds
    while sum(hits.values()) < kills and len(wrong) < 5 and trainings < 3 * kills + 10:
        trainings += 1
        shutil.rmtree("killed", ignore_errors=True)
        output = "killed" + rng.choice(("", " --keep-checkpoints 99"))  # the old checkpoints go away, or stay to be compared
        history, found = [], []
        try:
            for _ in range(rng.randint(1, 3)):
                name = rng.choice(sorted(hits))
                training = Training(task, output)
                hit, bad = disturb(training, rng.random() * seconds, name, rng, history)
                hits[name] += hit is not None
                hangs += training.launcher_hangs
                late += hit is None
                found += [bad] if bad else []
            last = Training(task, output)
            status = last.end()
            seconds = last.seconds if last.seconds > seconds else 0.9 * seconds + 0.1 * last.seconds
            if status:
                found.append(f"--resume has status {status}: {last.said}")
            else:
                different, n = differences("whole", "killed")
                found += different
                compared += n
        except Endless as e:
            found.append(str(e))
        if found:
            wrong.append(f"{task}: {'; '.join(history)}: {', '.join(found[:3])}")
            print(f"wrong: {wrong[-1]}", file=sys.stderr, flush=True)
    if sum(hits.values()) < kills and not wrong:
        wrong.append(f"{task}: only {sum(hits.values())} signals met a running training")
    shutil.rmtree("whole")
    return (task, trainings, *hits.values(), late, compared, hangs, len(wrong)), wrong


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("-n", type=int, default=20)
    p.add_argument("-s", type=int, default=random.randrange(2**31))
    p.add_argument("task", nargs="*", default=list(TASKS))
    o = p.parse_args()
    for t in o.task:
        if t not in TASKS:
            sys.exit(f"kills.py: no task {t}: expected one of {', '.join(TASKS)}")
    os.environ["PATH"] = os.path.realpath(os.environ.get("BIN", "bin")) + ":" + os.environ["PATH"]
    os.environ.update(OMP_WAIT_POLICY="passive", OPENBLAS_NUM_THREADS="1", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    print(f"seed {o.s}")
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        subprocess.run(["bash", "-ec", INPUTS], check=True)
        print("| task | trainings | KILL | TERM | INT | too late | checkpoints compared | mpirun hangs | wrong |\n|---|---|---|---|---|---|---|---|---|")
        for task in o.task:
            row, wrong = sweep(task, o.n, random.Random(f"{o.s} {task}"))
            print("|", " | ".join(map(str, row)), "|", flush=True)
            failed += wrong
        os.chdir("/")
    sys.exit(bool(failed))


main()
