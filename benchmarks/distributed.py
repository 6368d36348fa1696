"""Training over several processes: called by `benchmarks/run distributed`.

    distributed.py ranks BINARY BATCHES DATA [--sizes tiny,small]   two ranks beside one process with two threads, and PyTorch
                                                                    DDP (gloo) beside PyTorch in one process
    distributed.py links BINARY DATA [--size small]                 over links with a bandwidth and a latency: overlap and bf16
                                                                    measured, the model of step time fitted and checked
    distributed.py plan ...                                         the paper's recipes on 1 to 64 workers, by the model
    distributed.py torch FILE WARM_UP RANK SIZE THREADS             one PyTorch process, prints a JSON line

BINARY is `attentive` with the feature `mpi`, BATCHES the program of the bench `training`. docs/scaling.md has the model.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CORES = os.cpu_count()
WARM_UP = 3
TOKENS = int(os.environ.get("TOKENS", "2048"))  # of a batch
ADDRESS = ("127.0.0.1", "29571")


# Runs of our own program.


def settings(size, data, **more):
    """The recipe of all measurements but for what `more` says."""
    chosen = {
        "model.preset": size,
        "data.dir": data,
        "optimizer.kind": "adam",
        "augmentation.subword_dropout": 0,
        "training.ema_decay": 0,
        "training.batch_tokens": TOKENS,
        "training.log_every": 1,
        "training.epochs": 100,
        "validation.every_epochs": 0,
        "validation.bleu": "false",
        "checkpoints.every_minutes": 0,
        "data.val_src": "[]",
        "data.val_tgt": "[]",
        **more,
    }
    return [word for key, value in chosen.items() for word in ("--set", f"{key}={value}")]


def first_model(binary, size, data, folder):
    """A model whose vocabulary the runs share, so that none has to learn it."""
    path = os.path.join(folder, f"first-{size}")
    command = [binary, "train", "recipes/multi30k.toml", "--out", path, "--quiet"]
    subprocess.run([*command, *settings(size, data, **{"training.max_steps": 1})], check=True)
    return os.path.join(path, "last")


def measured(command, run, steps):
    """Seconds per step and tokens per second, without the first steps."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    lines = [json.loads(line) for line in open(os.path.join(run, "metrics.jsonl"))]
    lines = [line for line in lines if line["event"] == "step"][WARM_UP:]
    seconds = [after["seconds"] - before["seconds"] for before, after in zip(lines, lines[1:])]
    tokens = lines[-1]["tokens"] - lines[0]["tokens"]
    shutil.rmtree(run)
    return {"step": statistics.median(seconds), "mean": sum(seconds) / len(seconds), "tokens_per_second": tokens / sum(seconds)}


def train(binary, size, data, folder, start, ranks=1, threads=1, steps=12, hosts=None, **more):
    run = os.path.join(folder, "run")
    words = [binary, "train", "recipes/multi30k.toml", "--out", run, "--quiet", "--threads", str(threads)]
    words += settings(size, data, **{"training.max_steps": steps, "training.start_from": start, **more})
    if ranks > 1:
        mpi = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]
        if hosts:
            # One address for each rank; a script takes the place of ssh and enters the namespace.
            mpi = ["ip", "netns", "exec", "rank0", *mpi, "--host", ",".join(f"10.77.0.{i + 1}:1" for i in range(ranks))]
            mpi += ["--mca", "plm_rsh_agent", agent(folder), "--mca", "btl", "tcp,self", "--mca", "pml", "ob1"]
            mpi += ["--mca", "btl_tcp_if_include", "10.77.0.0/24", "--mca", "oob_tcp_if_include", "10.77.0.0/24"]
        words = [*mpi, *words]
    return measured(words, run, steps)


def agent(folder):
    path = os.path.join(folder, "agent")
    with open(path, "w") as file:
        file.write(
            "#!/bin/sh\n# Called as ssh is: the host, then the command.\n"
            'host="$1"\nshift\nnumber=$((${host##*.} - 1))\n'
            'exec ip netns exec "rank$number" unshare --uts sh -c "hostname rank$number; $*"\n'
        )
    os.chmod(path, 0o755)
    return path


class Link:
    """Namespaces joined by a link of so many Mbit/s and milliseconds."""

    def __init__(self, count, mbit, milliseconds):
        command = [sys.executable, os.path.join(HERE, "link.py"), str(count), str(mbit), str(milliseconds)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()


# Two ranks on two cores, ours and PyTorch's.


def torch_run(file, warm_up, rank, size, threads):
    import importlib.util

    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    spec = importlib.util.spec_from_file_location("training", os.path.join(HERE, "training.py"))
    training = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(training)
    torch.set_num_threads(threads)
    work = json.load(open(file))
    model, loss_of = training.torch_model(work)
    forward = model
    if size > 1:
        os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = ADDRESS
        dist.init_process_group("gloo", rank=rank, world_size=size)
        forward = DistributedDataParallel(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=work["learning_rate"], betas=(0.9, 0.98), eps=1e-9, fused=True)
    # Two batches make a step: one in each of two ranks, or both in one process.
    steps = [work["batches"][i : i + 2] for i in range(0, len(work["batches"]) - 1, 2)]
    tokens, start = 0, time.perf_counter()
    for index, step in enumerate(steps):
        if index == warm_up:
            tokens, start = 0, time.perf_counter()
        own = step[rank::size]
        all_tokens = sum(rows["tokens"] for rows in step)
        optimizer.zero_grad(set_to_none=True)
        for rows in own:
            src = torch.tensor(rows["src"]).view(rows["rows"], rows["src_len"])
            tgt = torch.tensor(rows["tgt"]).view(rows["rows"], rows["tgt_len"])
            logits = forward(src, tgt[:, :-1])
            # DDP divides by the number of ranks.
            (loss_of(logits.float(), tgt[:, 1:]) * size / all_tokens).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1e9, foreach=True)
        optimizer.step()
        tokens += all_tokens
    seconds = time.perf_counter() - start
    if size > 1:
        dist.destroy_process_group()
    if rank == 0:
        print(json.dumps({"tokens_per_second": tokens / seconds}))


def torch_ranks(file, warm_up, size, threads):
    command = [sys.executable, __file__, "torch", file, str(warm_up)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    started = [
        subprocess.Popen([*command, str(rank), str(size), str(threads)], stdout=subprocess.PIPE, text=True, env=environment)
        for rank in range(size)
    ]
    outputs = [process.communicate()[0] for process in started]
    return json.loads(outputs[0].strip().splitlines()[-1])["tokens_per_second"]


LAYOUTS = [(1, 1), (1, 2), (2, 1)]  # processes, threads of each


def ranks(options):
    """Two ranks with one thread beside one process with two threads, and beside twice one process with one thread (what is
    called the efficiency of data-parallel training)."""
    columns = "".join(f"{f'{processes} x {threads}':>8}" for processes, threads in LAYOUTS)
    print(f"{'size':6} {'contender':10}{columns} {'2x1 / 1x2':>10} {'efficiency':>11}   processes x threads, tokens/s, medians")
    for size in options.sizes:
        with tempfile.TemporaryDirectory() as folder:
            start = first_model(options.binary, size, options.data, folder)
            file = os.path.join(folder, "batches.json")
            count, steps = {"tiny": (40, 40), "small": (26, 16)}[size]
            subprocess.run([options.batches, "batches", size, options.data, str(count), file], check=True)
            found = {who: {layout: [] for layout in LAYOUTS} for who in ("ours", "torch")}
            for _ in range(options.rounds):
                for processes, threads in LAYOUTS:
                    ours = train(
                        options.binary, size, options.data, folder, start, ranks=processes, threads=threads, steps=steps,
                        **{"training.accumulate": 2, "training.precision": "f32"},
                    )
                    found["ours"][processes, threads].append(ours["tokens_per_second"])
                    found["torch"][processes, threads].append(torch_ranks(file, WARM_UP, processes, threads))
        for who, rounds in found.items():
            single, threaded, two = (statistics.median(rounds[layout]) for layout in LAYOUTS)
            numbers = "".join(f"{number:8.0f}" for number in (single, threaded, two))
            print(f"{size:6} {who:10}{numbers} {two / threaded:10.2f} {two / (2 * single):11.2f}   {rounds}", flush=True)


# The model of step time.


def predicted(model, link, ranks=1, batches=4, wire=4, overlap=True):
    """Seconds of a step of so many batches. `model` is what was fitted, `link` (bytes per second, seconds of latency)."""
    rounds = -(-batches // ranks)
    crowded = max(1.0, ranks / CORES) if link["shared"] else 1.0
    slower = 1.0 if ranks == 1 else model["together"]
    compute = rounds * model["batch"] * slower * crowded
    step = model["step"] * crowded
    if ranks == 1:
        return compute + step
    # Reduce-scatter and all-gather: each rank sends and receives this much of the gradients, twice.
    share = 2 * wire * (ranks - 1) / ranks
    seconds = lambda numbers: share * numbers / link["bandwidth"]
    copying = model["copy"] * crowded
    window = model["window"] * model["batch"] * slower * crowded if overlap else 0.0
    exposed = max(seconds(model["tail"]), seconds(model["numbers"]) - window) if overlap else seconds(model["numbers"])
    return compute + step + copying + exposed + 3 * link["latency"]


def parameters_of(size, vocabulary=8000):
    """All parameters, and those whose gradients are complete only at the end of the backward pass (tied embeddings)."""
    d, ff, layers = {"tiny": (128, 256, 4), "small": (256, 1024, 3), "base": (512, 2048, 6), "big": (1024, 4096, 6)}[size]
    embedding = vocabulary * d
    return embedding + layers * (12 * d * d + 4 * d * ff), embedding


def fit(local, link, slow, size):
    """The numbers of the model from six runs of one size: one process with one and with four batches to a step, two and
    four ranks on one machine, two ranks over one link with and without overlap. And the share of the link's bytes that
    are gradients."""
    numbers, tail = parameters_of(size)
    batch = (local["1 rank, 4 batches"] - local["1 rank, 1 batch"]) / 3
    step = max(0.0, local["1 rank, 1 batch"] - batch)
    # Four ranks on two cores take turns: computing takes as long as with two, the rest twice as long.
    copy = max(0.0, local["4 ranks"] - local["2 ranks"] - step) if CORES == 2 else 0.0
    together = max(1.0, (local["2 ranks"] - step - copy) / (2 * batch))
    travelling = slow["f32, no overlap"] - local["2 ranks"] - 3 * link["latency"]
    goodput = min(1.0, 4 * numbers / travelling / link["bandwidth"])
    hidden = slow["f32, no overlap"] - slow["f32"]
    window = max(0.0, min(1.0, hidden / (batch * together)))
    model = {
        "batch": batch, "step": step, "numbers": numbers, "tail": tail, "copy": copy, "together": together, "window": window,
    }
    return model, goodput


def links(options):
    size, data = options.size, options.data
    one = {"training.accumulate": 1}
    four = {"training.accumulate": 4}
    ways = {
        "f32": {},
        "f32, no overlap": {"distributed.overlap": "false"},
        "bf16": {"distributed.wire": "bf16"},
        "bf16, no overlap": {"distributed.wire": "bf16", "distributed.overlap": "false"},
    }
    found = {"size": size, "local": {}, "links": []}
    with tempfile.TemporaryDirectory() as folder:
        start = first_model(options.binary, size, data, folder)
        run = lambda **more: train(options.binary, size, data, folder, start, steps=options.steps, **more)["mean"]
        found["local"]["1 rank, 1 batch"] = run(**one)
        found["local"]["1 rank, 4 batches"] = run(**four)
        for count in (2, 4):
            found["local"][f"{count} ranks"] = run(ranks=count, **four)
        print(json.dumps(found["local"]), flush=True)
        for mbit, milliseconds, count in options.links:
            with Link(count, mbit, milliseconds):
                entry = {"mbit": mbit, "milliseconds": milliseconds, "ranks": count}
                for name, more in ways.items():
                    entry[name] = run(ranks=count, hosts=True, **four, **more)
                found["links"].append(entry)
                print(json.dumps(entry), flush=True)
    if options.json:
        json.dump(found, open(options.json, "w"), indent=1)
    report(found)


def report(found):
    """Fits the model to some of the measurements, predicts all, and says how far off it is."""
    nominal = lambda entry: {"bandwidth": entry["mbit"] * 1e6 / 8, "latency": entry["milliseconds"] / 1e3, "shared": True}
    slow = min((entry for entry in found["links"] if entry["ranks"] == 2), key=lambda entry: entry["mbit"])
    model, goodput = fit(found["local"], nominal(slow), slow, found["size"])
    print("\nmodel:", json.dumps({key: round(value, 4) for key, value in {**model, "goodput": goodput}.items()}))
    memory = {"bandwidth": 1e12, "latency": 0.0, "shared": True}  # its cost is part of copying
    rows = []
    for name, seconds in found["local"].items():
        ranks, batches = int(name[0]), 1 if "1 batch" in name else 4
        rows.append((f"one machine, {name}", seconds, predicted(model, memory, ranks, batches)))
    for entry in found["links"]:
        link = nominal(entry)
        link["bandwidth"] *= goodput
        for name in ("f32", "f32, no overlap", "bf16", "bf16, no overlap"):
            wire, overlap = 2 if "bf16" in name else 4, "no overlap" not in name
            guess = predicted(model, link, entry["ranks"], 4, wire, overlap)
            place = f"{entry['mbit']:g} Mbit/s, {entry['milliseconds']:g} ms, {entry['ranks']} ranks"
            rows.append((f"{place}, {name}", entry[name], guess))
    print(f"\n{'run':52} {'measured':>9} {'model':>8} {'error':>6}   seconds of a step")
    for name, seconds, guess in rows:
        print(f"{name:52} {seconds:9.3f} {guess:8.3f} {guess / seconds - 1:+6.0%}")


def plan(options):
    """The paper's recipes: 25,000 target tokens to a step, on workers of one machine's speed each."""
    print(f"{'recipe':6} {'network':>10} {'wire':5}" + "".join(f"{count:>9}" for count in WORKERS) + "   steps per hour on so many workers")
    for size, token in options.seconds_per_token.items():
        numbers, tail = parameters_of(size, 37000)
        for network, bandwidth, latency in NETWORKS:
            for wire in (4, 2):
                row = []
                for count in WORKERS:
                    # Batches become smaller with more workers: one for each.
                    batch = 25000 / count * token
                    model = {
                        "batch": batch, "step": numbers * options.step, "numbers": numbers, "tail": tail,
                        "copy": numbers * options.copy, "together": 1.0, "window": options.window,
                    }
                    link = {"bandwidth": bandwidth, "latency": latency, "shared": False}
                    row.append(3600 / predicted(model, link, count, count, wire))
                print(f"{size:6} {network:>10} {'f32' if wire == 4 else 'bf16':5}" + "".join(f"{steps:9.0f}" for steps in row))


WORKERS = (1, 2, 4, 8, 16, 32, 64)
GOODPUT = 0.73  # of the bytes of a link, as fitted (benchmarks/RESULTS.md)
NETWORKS = [("1 Gbit/s", GOODPUT * 125e6, 2e-4), ("10 Gbit/s", GOODPUT * 1.25e9, 5e-5), ("100 Gbit/s", GOODPUT * 12.5e9, 1e-5)]


def pairs(text):
    return {name: float(value) for name, value in (part.split("=") for part in text.split(","))}


def link_list(text):
    return [tuple(float(part) if index < 2 else int(part) for index, part in enumerate(one.split(":"))) for one in text.split(",")]


if __name__ == "__main__":
    if sys.argv[1:2] == ["torch"]:
        torch_run(sys.argv[2], *(int(number) for number in sys.argv[3:]))
        sys.exit()
    parser = argparse.ArgumentParser(prog="benchmarks/run distributed")
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("ranks")
    one.set_defaults(run=ranks)
    one.add_argument("binary")
    one.add_argument("batches")
    one.add_argument("data")
    one.add_argument("--sizes", type=lambda text: text.split(","), default=["tiny", "small"])
    one.add_argument("--rounds", type=int, default=3)
    one = commands.add_parser("links")
    one.set_defaults(run=links)
    one.add_argument("binary")
    one.add_argument("data")
    one.add_argument("--size", default="small")
    one.add_argument("--steps", type=int, default=10)
    one.add_argument("--links", type=link_list, default=link_list("1000:0.2:2,100:5:2"), help="MBIT:MILLISECONDS:RANKS, with commas")
    one.add_argument("--json")
    one = commands.add_parser("report")
    one.set_defaults(run=lambda options: report(json.load(open(options.json))))
    one.add_argument("json")
    one = commands.add_parser("plan")
    one.set_defaults(run=plan)
    one.add_argument("--seconds-per-token", type=pairs, required=True, help="base=SECONDS,big=SECONDS of one worker")
    one.add_argument("--step", type=float, required=True, help="seconds of the optimizer for a parameter")
    one.add_argument("--copy", type=float, required=True, help="seconds of copying for a parameter")
    one.add_argument("--window", type=float, required=True, help="share of a batch's time in which gradients travel")
    options = parser.parse_args()
    options.run(options)
