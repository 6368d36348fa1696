"""One training step after another, ours and PyTorch's: called by `benchmarks/run training`.

    training.py compare BINARY DATA [--quick] [--sizes tiny,small,base] [--precision f32|bf16|both]
                                            alternates the contenders, prints medians and ratios
    training.py torch FILE WARM_UP PRECISION MODE
                                            one PyTorch run (MODE: eager or compile), prints a JSON line

All train the same model (pre-norm, tied embeddings, dropout 0.1, label smoothing 0.1, Adam) on the same
padded batches with the same number of threads. Timed is the step: forward, backward, gradient norm, Adam.
In bf16, PyTorch runs its forward pass under autocast, and the loss in f32 as ours does.
"""

import argparse
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

THREADS = os.cpu_count()
# PyTorch's allocations come from the C library, which hands large blocks back to the kernel and takes page
# faults to get them again; told to keep them, PyTorch is about 6% faster here, so it gets that.
KEEP_PAGES = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 32),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 34),
    "MALLOC_TOP_PAD_": str(1 << 28),
}
SIZES = {"tiny": (40, 8), "small": (26, 6), "base": (7, 2)}  # batches, of which so many warm up
QUICK = {"tiny": (24, 6), "small": (14, 4), "base": (4, 1)}


def torch_model(work):
    """PyTorch's model of a file of batches, and its loss summed over the targets."""
    import torch
    from torch import nn

    torch.manual_seed(1)
    d_model, vocab, pad = work["d_model"], work["vocab"], 2

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(vocab, d_model)
            nn.init.xavier_uniform_(self.embedding.weight)
            arguments = dict(
                d_model=d_model,
                nhead=work["heads"],
                dim_feedforward=work["d_ff"],
                dropout=work["dropout"],
                batch_first=True,
                norm_first=True,
            )
            encoder = nn.TransformerEncoderLayer(**arguments)
            decoder = nn.TransformerDecoderLayer(**arguments)
            norm = lambda: nn.LayerNorm(d_model)
            self.encoder = nn.TransformerEncoder(encoder, work["layers"], norm(), enable_nested_tensor=False)
            self.decoder = nn.TransformerDecoder(decoder, work["layers"], norm())
            self.dropout = nn.Dropout(work["dropout"])
            self.bias = nn.Parameter(torch.zeros(vocab))
            position = torch.arange(1024)[:, None]
            rate = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
            table = torch.zeros(1024, d_model)
            table[:, 0::2], table[:, 1::2] = torch.sin(position * rate), torch.cos(position * rate)
            self.register_buffer("positions", table)

        def embed(self, ids):
            return self.dropout(self.embedding(ids) * math.sqrt(d_model) + self.positions[: ids.shape[1]])

        def forward(self, src, tgt):
            hidden = src == pad
            causal = torch.ones(tgt.shape[1], tgt.shape[1], dtype=torch.bool).triu(1)
            memory = self.encoder(self.embed(src), src_key_padding_mask=hidden)
            decoded = self.decoder(
                self.embed(tgt),
                memory,
                tgt_mask=causal,
                tgt_key_padding_mask=tgt == pad,
                memory_key_padding_mask=hidden,
            )
            return nn.functional.linear(decoded, self.embedding.weight, self.bias)

    smoothing = work["label_smoothing"]
    others = smoothing / (vocab - 2)
    entropy = (1 - smoothing) * math.log(1 - smoothing) + smoothing * math.log(others)

    def loss_of(logits, targets):
        log_probs = torch.log_softmax(logits.view(-1, vocab), dim=-1)
        targets = targets.reshape(-1)
        truth = log_probs.gather(1, targets[:, None]).squeeze(1)
        everything = log_probs.sum(-1) - log_probs[:, pad]
        row = entropy - (1 - smoothing - others) * truth - others * everything
        return (row * (targets != pad)).sum()

    return Model(), loss_of


def torch_run(file, warm_up, precision, mode):
    import torch

    torch.set_num_threads(THREADS)
    work = json.load(open(file))
    model, loss_of = torch_model(work)
    forward = torch.compile(model, dynamic=True) if mode == "compile" else model
    optimizer = torch.optim.Adam(model.parameters(), lr=work["learning_rate"], betas=(0.9, 0.98), eps=1e-9, fused=True)
    tokens, start, loss = 0, time.perf_counter(), None
    for index, rows in enumerate(work["batches"]):
        if index == warm_up:
            tokens, start = 0, time.perf_counter()
        src = torch.tensor(rows["src"]).view(rows["rows"], rows["src_len"])
        tgt = torch.tensor(rows["tgt"]).view(rows["rows"], rows["tgt_len"])
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16"):
            logits = forward(src, tgt[:, :-1])
        loss = loss_of(logits.float(), tgt[:, 1:]) / rows["tokens"]
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1e9, foreach=True)
        optimizer.step()
        tokens += rows["tokens"]
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"tokens_per_second": tokens / seconds, "peak_mib": peak, "last_loss": loss.item()}))


def matrix_peak(binary, precision):
    """The machine's matrix product in GFLOPS: the faster of PyTorch's library and ours."""
    dtype = {"f32": "float32", "bf16": "bfloat16"}[precision]
    code = (
        "import torch,time,statistics;torch.set_num_threads(%d);a=torch.rand(2048,2048,dtype=torch.%s);b=a.clone();t=[]\n"
        "for _ in range(12):\n s=time.perf_counter();a@b;t.append(time.perf_counter()-s)\n"
        "print(2*2048**3/statistics.median(t[2:])/1e9)" % (THREADS, dtype)
    )
    commands = [sys.executable, "-c", code], [binary, "peak", precision]
    theirs, ours = (float(subprocess.run(c, check=True, capture_output=True, text=True).stdout) for c in commands)
    print(
        f"one matrix product in {precision}, 2048 x 2048 x 2048, {THREADS} threads: "
        f"torch {theirs:.0f}, attentive {ours:.0f} GFLOPS"
    )
    return max(theirs, ours)


def step_flops(work):
    """Floating-point operations of matrix products per target token, forward and backward."""
    d, ff, layers, vocab = work["d_model"], work["d_ff"], work["layers"], work["vocab"]
    total = 0
    for rows in work["batches"]:
        src, tgt = rows["rows"] * rows["src_len"], rows["rows"] * (rows["tgt_len"] - 1)
        encoder = src * layers * (4 * d * d + 2 * d * ff)
        decoder = layers * (tgt * (6 * d * d + 2 * d * ff) + src * 2 * d * d)
        total += 6 * (encoder + decoder + tgt * d * vocab)
    return total / sum(rows["tokens"] for rows in work["batches"])


def last_json(command):
    environment = {**os.environ, "RAYON_NUM_THREADS": str(THREADS), **KEEP_PAGES}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        return None, done.stderr.strip().splitlines()[-1:] or ["failed"]
    return json.loads(done.stdout.strip().splitlines()[-1]), None


def leave_out_the_slower_torch(contenders, results):
    """Only PyTorch's best counts; what trails it clearly after one round need not be waited for again."""
    speed = {name: results[name][0]["tokens_per_second"] for name in contenders if name != "attentive"}
    for name in speed:
        if speed[name] < 0.93 * max(speed.values()):
            del contenders[name]


def compare_one(binary, file, warm_up, rounds, size, precision, peak):
    """Alternates the contenders on one file of batches; returns how many times as fast as PyTorch's best ours is."""
    flops = step_flops(json.load(open(file)))
    torch = [sys.executable, __file__, "torch", file, str(warm_up), precision]
    contenders = {
        "attentive": [binary, "time", file, str(warm_up), precision],
        "torch eager": [*torch, "eager"],
        "torch compile": [*torch, "compile"],
    }
    results = {name: [] for name in contenders}
    for round in range(rounds):
        if round == 1:
            leave_out_the_slower_torch(contenders, results)
        for name, command in list(contenders.items()):
            result, error = last_json(command)
            if error:
                print(f"{size:6} {precision:5} {name:14} does not run here: {error[0]}")
                del contenders[name]
            else:
                results[name].append(result)
    speed = {}
    for name, runs in results.items():
        if not runs:
            continue
        speed[name] = statistics.median(run["tokens_per_second"] for run in runs)
        share = speed[name] * flops / peak / 1e9
        memory = statistics.median(run["peak_mib"] for run in runs)
        loss = runs[-1]["last_loss"]
        print(f"{size:6} {precision:5} {name:14} {speed[name]:9.0f} {share:7.0%} {memory:6.0f} MiB {loss:10.4f}", flush=True)
    return speed["attentive"] / max(value for name, value in speed.items() if name != "attentive")


def compare(options):
    sizes, rounds = (QUICK, 1) if options.quick else (SIZES, 3)
    precisions = ["f32", "bf16"] if options.precision == "both" else [options.precision]
    peaks = {precision: matrix_peak(options.binary, precision) for precision in precisions}
    print(f"\n{'size':6} {'':5} {'contender':14} {'tokens/s':>9} {'of peak':>8} {'memory':>9} {'last loss':>10}")
    ratios = []
    for size in options.sizes:
        count, warm_up = sizes[size]
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "batches.json")
            subprocess.run([options.binary, "batches", size, options.data, str(count), file], check=True)
            for precision in precisions:
                ratio = compare_one(options.binary, file, warm_up, rounds, size, precision, peaks[precision])
                ratios.append(f"{size}-{precision}={ratio:.2f}")
    print("\n" + " ".join(ratios))


def sizes(text):
    chosen = text.split(",")
    if not set(chosen) <= set(SIZES):
        raise argparse.ArgumentTypeError(f"{text}: sizes are {', '.join(SIZES)}, with commas between them")
    return chosen


if __name__ == "__main__":
    if sys.argv[1:2] == ["torch"]:
        torch_run(sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5])
    else:
        parser = argparse.ArgumentParser(prog="benchmarks/run training")
        parser.add_argument("command", choices=["compare"], help=argparse.SUPPRESS)
        parser.add_argument("binary", help=argparse.SUPPRESS)
        parser.add_argument("data", help=argparse.SUPPRESS)
        parser.add_argument("--quick", action="store_true", help="one short round instead of three")
        parser.add_argument("--sizes", type=sizes, default=list(SIZES), help="some of tiny,small,base")
        parser.add_argument("--precision", choices=["f32", "bf16", "both"], default="both")
        compare(parser.parse_args())
