"""Training steps of the recurrent translators, ours and PyTorch's: called by `benchmarks/run recurrent`.

    recurrent.py compare BINARY DATA [--quick] [--precision f32|bf16|both]
                                            alternates the contenders, prints medians and ratios
    recurrent.py torch FILE WARM_UP PRECISION CONTEXT MODE
                                            one PyTorch run (MODE: packed or padded), prints a JSON line

All train the same network (a bidirectional GRU of 256, a GRU decoder with additive attention or with one fixed context,
tied embeddings, dropout 0.2, label smoothing 0.1, Adam) on the same padded batches with the same number of threads.
Timed is the step: forward, backward, gradient norm, Adam. PyTorch's GRU layer is its own, fused one; with attention its
decoder is a loop of GRUCell, since every step needs the one before. Packed sequences skip padding, padded ones do not
(and compute something else behind a sentence's end); the faster of both counts.
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

from training import THREADS, last_json

WIDTH, PAD, DROPOUT = 256, 2, 0.2


def torch_run(file, warm_up, precision, context, mode):
    import torch
    from torch import nn
    from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

    torch.set_num_threads(THREADS)
    torch.manual_seed(1)
    work = json.load(open(file))
    vocab = work["vocab"]

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(vocab, WIDTH)
            nn.init.xavier_uniform_(self.embedding.weight)
            self.encoder = nn.GRU(WIDTH, WIDTH, batch_first=True, bidirectional=True)
            self.start = nn.Linear(2 * WIDTH, WIDTH)
            self.context = nn.Linear(2 * WIDTH, 3 * WIDTH, bias=False)
            self.readout = nn.Linear(4 * WIDTH, WIDTH)
            self.bias = nn.Parameter(torch.zeros(vocab))
            self.dropout = nn.Dropout(DROPOUT)
            if context == "attention":
                self.cell = nn.GRUCell(WIDTH, WIDTH)
                self.query = nn.Linear(WIDTH, WIDTH, bias=False)
                self.key = nn.Linear(2 * WIDTH, WIDTH, bias=False)
                self.score = nn.Linear(WIDTH, 1, bias=False)
            else:
                # The context goes through the input, which is therefore as wide as both.
                self.decoder = nn.GRU(3 * WIDTH, WIDTH, batch_first=True)

        def embed(self, ids):
            return self.dropout(self.embedding(ids) * math.sqrt(WIDTH))

        def encode(self, src):
            lengths = (src != PAD).sum(1)
            embedded = self.embed(src)
            if mode == "packed":
                packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
                states, last = self.encoder(packed)
                states, _ = pad_packed_sequence(states, batch_first=True, total_length=src.shape[1])
            else:
                states, last = self.encoder(embedded)
            return states, torch.cat([last[0], last[1]], dim=1)

        def forward(self, src, tgt):
            states, last = self.encode(src)
            state = torch.tanh(self.start(last))
            embedded = self.embed(tgt)
            if context == "attention":
                hidden = (src == PAD)[:, None, :]
                keys = self.key(states)
                # One product for the tokens of all steps, as in ours; a cell takes it apart again.
                tokens = nn.functional.linear(embedded, self.cell.weight_ih, self.cell.bias_ih)
                outputs, contexts = [], []
                for t in range(tgt.shape[1]):
                    features = torch.tanh(self.query(state)[:, None] + keys)
                    scores = self.score(features).transpose(1, 2).masked_fill(hidden, -1e9)
                    average = (torch.softmax(scores, dim=-1) @ states)[:, 0]
                    inputs = tokens[:, t] + self.context(average)
                    gates = nn.functional.linear(state, self.cell.weight_hh, self.cell.bias_hh)
                    r_x, z_x, n_x = inputs.chunk(3, 1)
                    r_h, z_h, n_h = gates.chunk(3, 1)
                    r, z = torch.sigmoid(r_x + r_h), torch.sigmoid(z_x + z_h)
                    n = torch.tanh(n_x + r * n_h)
                    state = n + z * (state - n)
                    outputs.append(state)
                    contexts.append(average)
                both = torch.cat([torch.stack(outputs, 1), torch.stack(contexts, 1)], 2)
            else:
                wide = last[:, None].expand(-1, tgt.shape[1], -1)
                outputs, _ = self.decoder(torch.cat([embedded, wide], 2), state[None])
                both = torch.cat([outputs, wide], 2)
            read = self.dropout(torch.tanh(self.readout(torch.cat([embedded, both], 2))))
            return nn.functional.linear(read, self.embedding.weight, self.bias)

    smoothing = work["label_smoothing"]
    others = smoothing / (vocab - 2)
    entropy = (1 - smoothing) * math.log(1 - smoothing) + smoothing * math.log(others)

    def loss_of(logits, targets):
        log_probs = torch.log_softmax(logits.view(-1, vocab), dim=-1)
        targets = targets.reshape(-1)
        truth = log_probs.gather(1, targets[:, None]).squeeze(1)
        everything = log_probs.sum(-1) - log_probs[:, PAD]
        row = entropy - (1 - smoothing - others) * truth - others * everything
        return (row * (targets != PAD)).sum()

    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=work["learning_rate"], betas=(0.9, 0.98), eps=1e-9, fused=True)
    tokens, start, loss = 0, time.perf_counter(), None
    for index, rows in enumerate(work["batches"]):
        if index == warm_up:
            tokens, start = 0, time.perf_counter()
        src = torch.tensor(rows["src"]).view(rows["rows"], rows["src_len"])
        tgt = torch.tensor(rows["tgt"]).view(rows["rows"], rows["tgt_len"])
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16"):
            logits = model(src, tgt[:, :-1])
        loss = loss_of(logits.float(), tgt[:, 1:]) / rows["tokens"]
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1e9, foreach=True)
        optimizer.step()
        tokens += rows["tokens"]
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"tokens_per_second": tokens / seconds, "peak_mib": peak, "last_loss": loss.item()}))


def compare(options):
    count, warm_up, rounds = (12, 4, 1) if options.quick else (24, 6, 3)
    precisions = ["f32", "bf16"] if options.precision == "both" else [options.precision]
    print(f"{'context':10} {'':5} {'contender':14} {'tokens/s':>9} {'memory':>10} {'last loss':>10}")
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "batches.json")
        subprocess.run([options.binary, "batches", "small", options.data, str(count), file], check=True)
        for context in ["fixed", "attention"]:
            for precision in precisions:
                torch = [sys.executable, __file__, "torch", file, str(warm_up), precision, context]
                contenders = {
                    "attentive": [options.binary, "recurrent", file, str(warm_up), precision, context],
                    "torch packed": [*torch, "packed"],
                    "torch padded": [*torch, "padded"],
                }
                results = {name: [] for name in contenders}
                for _ in range(rounds):
                    for name, command in list(contenders.items()):
                        result, error = last_json(command)
                        if error:
                            print(f"{context:10} {precision:5} {name:14} does not run here: {error[0]}")
                            del contenders[name]
                        else:
                            results[name].append(result)
                speed = {}
                for name in contenders:
                    runs = results[name]
                    speed[name] = statistics.median(run["tokens_per_second"] for run in runs)
                    memory = statistics.median(run["peak_mib"] for run in runs)
                    print(
                        f"{context:10} {precision:5} {name:14} {speed[name]:9.0f} {memory:6.0f} MiB "
                        f"{runs[-1]['last_loss']:10.4f}",
                        flush=True,
                    )
                theirs = max(value for name, value in speed.items() if name != "attentive")
                ratios.append(f"{context}-{precision}={speed['attentive'] / theirs:.2f}")
    print("\n" + " ".join(ratios))


if __name__ == "__main__":
    if sys.argv[1:2] == ["torch"]:
        torch_run(sys.argv[2], int(sys.argv[3]), *sys.argv[4:7])
    else:
        parser = argparse.ArgumentParser(prog="benchmarks/run recurrent")
        parser.add_argument("command", choices=["compare"], help=argparse.SUPPRESS)
        parser.add_argument("binary", help=argparse.SUPPRESS)
        parser.add_argument("data", help=argparse.SUPPRESS)
        parser.add_argument("--quick", action="store_true", help="one short round instead of three")
        parser.add_argument("--precision", choices=["f32", "bf16", "both"], default="both")
        compare(parser.parse_args())
