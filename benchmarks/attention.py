"""Attention over long sequences, ours and PyTorch's: called by `benchmarks/run attention`.

    attention.py compare BINARY [--quick]                  alternates both, prints medians and ratios
    attention.py torch op LEN MASK DROPOUT RUNS            PyTorch's scaled_dot_product_attention, a JSON line
    attention.py torch encoder LEN DROPOUT RUNS            a training step of its encoder, a JSON line

Forward and backward of one sequence, 8 heads of 64, f32, the same number of threads; then a whole encoder of the
size `small` (3 layers of 256, 4 heads). Every figure is from a process of its own. Memory is what the runs add to
a process that has loaded its library and run once on 80 tokens. With dropout on the weights, which is how the
paper trains, PyTorch has no fused attention on the CPU.
"""

import json
import os
import statistics
import subprocess
import sys
import time

from training import KEEP_PAGES

THREADS = os.cpu_count()
HEADS, HEAD_DIM = 8, 64


def memory(key):
    """In MiB, as the kernel counts it."""
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key)) / 1024


def report(run, runs):
    open("/proc/self/clear_refs", "w").write("5")  # forgets the peak so far
    before, seconds = memory("VmRSS:"), []
    step = run()
    for _ in range(runs + 1):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    print(json.dumps({"seconds": statistics.median(seconds[1:]), "peak_mib": memory("VmHWM:") - before}))


def torch_operation(length, mask, dropout, runs):
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    torch.set_num_threads(THREADS)

    def prepare(length):
        shape = (1, HEADS, length, HEAD_DIM)
        inputs = [torch.randn(shape, requires_grad=True) for _ in range(3)]

        def step():
            out = scaled_dot_product_attention(*inputs, dropout_p=dropout, is_causal=mask == "causal")
            out.backward(torch.ones_like(out))
            for x in inputs:
                x.grad = None

        return step

    prepare(80)()
    report(lambda: prepare(length), runs)


def torch_encoder(length, dropout, runs):
    import torch
    from torch import nn

    torch.set_num_threads(THREADS)
    layer = nn.TransformerEncoderLayer(256, 4, 1024, dropout, batch_first=True, norm_first=True)
    encoder = nn.TransformerEncoder(layer, 3, nn.LayerNorm(256), enable_nested_tensor=False)
    embedding, drop = nn.Embedding(1000, 256), nn.Dropout(dropout)
    parameters = [*encoder.parameters(), *embedding.parameters()]

    def prepare(length):
        tokens = (torch.arange(length) % 990 + 4)[None]
        positions = torch.randn(1, length, 256)

        def step():
            hidden = encoder(drop(embedding(tokens) * 16 + positions))
            hidden.backward(torch.ones_like(hidden))
            for parameter in parameters:
                parameter.grad = None

        return step

    prepare(80)()
    report(lambda: prepare(length), runs)


def run(command, environment):
    environment = {**os.environ, "RAYON_NUM_THREADS": str(THREADS), **environment}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout.strip().splitlines()[-1])


def compare(binary, quick):
    lengths, rounds, runs = ((512, 2048), 1, 3) if quick else ((512, 1024, 2048, 4096), 3, 5)
    kinds = (("open", 0.0), ("causal", 0.0), ("open", 0.1))
    cases = [["op", length, *kind] for length in lengths for kind in kinds]
    cases += [["encoder", 2048, dropout] for dropout in (0.0, 0.1)]
    print(f"{'':7} {'tokens':>6} {'mask':6} {'dropout':>7} | {'ours':>9} {'torch':>9} {'speed':>6}", end="")
    print(f" | {'ours':>9} {'torch':>9} {'memory':>6}")
    for case in cases:
        arguments = [str(word) for word in [*case, runs]]
        times, peaks = {"ours": [], "torch": []}, {"ours": [], "torch": []}
        for _ in range(rounds):
            commands = {"ours": [binary], "torch": [sys.executable, __file__, "torch"]}
            for name, command in commands.items():
                # PyTorch is faster if its C library keeps freed pages and smaller if it does not: it gets both.
                times[name].append(run(command + arguments, KEEP_PAGES)["seconds"])
                peaks[name].append(run(command + arguments, {})["peak_mib"])
        times = {name: statistics.median(values) for name, values in times.items()}
        peaks = {name: statistics.median(values) for name, values in peaks.items()}
        what, length, *kind = case
        mask = kind[0] if what == "op" else "open"
        print(f"{what:7} {length:6} {mask:6} {kind[-1]:7} |", end="")
        print(f" {times['ours'] * 1e3:6.1f} ms {times['torch'] * 1e3:6.1f} ms {times['torch'] / times['ours']:5.2f}x", end="")
        print(f" | {peaks['ours']:5.0f} MiB {peaks['torch']:5.0f} MiB {peaks['ours'] / peaks['torch']:6.2f}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:3] == ["torch", "op"]:
        torch_operation(int(sys.argv[3]), sys.argv[4], float(sys.argv[5]), int(sys.argv[6]))
    elif sys.argv[1:3] == ["torch", "encoder"]:
        torch_encoder(int(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5]))
    else:
        compare(sys.argv[2], "--quick" in sys.argv)
