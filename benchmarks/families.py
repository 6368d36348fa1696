"""The families beside PyTorch: called by `benchmarks/run families`.

    families.py gpt BINARY TEXT [--quick]   training of recipes/gpt-shakespeare.toml and generation with a KV cache,
                                            alternating with PyTorch; prints medians and ratios
    families.py minilm BINARY MODEL TEXT [--quick]
                                            sentence vectors of all-MiniLM-L6-v2 (MODEL, a folder of Hugging Face), alternating
                                            with PyTorch; prints the largest difference, medians and ratios
    families.py torch-train TEXT STEPS PRECISION MODE
                                            one PyTorch training run (MODE: eager or compile), prints a JSON line
    families.py torch-generate TOKENS MODE  one PyTorch generation of that many tokens, prints a JSON line
    families.py torch-embed MODEL TEXT ORDER VECTORS
                                            PyTorch's vectors of all lines (ORDER: file, or length as sentence-transformers has
                                            it) into a JSON file, prints a JSON line

Both train the same model (4 layers, 4 heads, 128 wide, context 64, tied embeddings, GELU) on batches of 12 texts with
AdamW and gradient clipping, and with the same number of threads. PyTorch has its fused attention and optimizer.
Timed are steps 50 to the end; validation and checkpoints are not.
"""

import gzip
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

THREADS = os.cpu_count()
VOCAB, WIDTH, HEADS, LAYERS, CONTEXT, BATCH = 69, 128, 4, 4, 64, 12
WARM_UP = 50


def torch_model():
    import torch
    from torch import nn
    from torch.nn import functional as F

    torch.set_num_threads(THREADS)
    torch.manual_seed(1)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.inner, self.outer = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x, past=None):
            batch, length, _ = x.shape
            q, k, v = self.qkv(self.ln_1(x)).view(batch, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
            if past is not None:
                k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
            x = x + self.out(y.transpose(1, 2).reshape(batch, length, WIDTH))
            return x + self.outer(F.gelu(self.inner(self.ln_2(x)))), (k, v)

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.positions = nn.Embedding(VOCAB, WIDTH), nn.Embedding(CONTEXT, WIDTH)
            self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
            self.norm = nn.LayerNorm(WIDTH)
            for name, p in self.named_parameters():
                if p.dim() == 2:
                    small = math.sqrt(2 * LAYERS) if name.endswith(("out.weight", "outer.weight")) else 1
                    nn.init.normal_(p, std=0.02 / small)

        def forward(self, ids, past=None):
            start = 0 if past is None else past[0][0].shape[2]
            x = self.tokens(ids) + self.positions.weight[start : start + ids.shape[1]]
            kept = []
            for number, block in enumerate(self.blocks):
                x, kv = block(x, None if past is None else past[number])
                kept.append(kv)
            return F.linear(self.norm(x), self.tokens.weight), kept

    return Gpt()


def torch_train(text, steps, precision, mode):
    import torch
    from torch.nn import functional as F

    text = gzip.open(text, "rt").read() if text.endswith(".gz") else open(text).read()
    ids = {c: 4 + i for i, c in enumerate(sorted(set(text)))}
    data = torch.tensor([ids[c] for c in text[: int(0.9 * len(text))]])
    model = torch_model()
    forward = torch.compile(model) if mode == "compile" else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1, fused=True)
    start = time.perf_counter()
    for step in range(steps):
        if step == WARM_UP:
            start = time.perf_counter()
        at = torch.randint(len(data) - CONTEXT - 1, (BATCH,))
        x = torch.stack([data[i : i + CONTEXT] for i in at])
        y = torch.stack([data[i + 1 : i + 1 + CONTEXT] for i in at])
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16"):
            logits, _ = forward(x)
        loss = F.cross_entropy(logits.float().flatten(0, 1), y.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimizer.step()
    seconds = time.perf_counter() - start
    rate = (steps - WARM_UP) * BATCH * CONTEXT / seconds
    print(json.dumps({"tokens_per_second": rate, "loss": loss.item()}))


def torch_generate(tokens, mode):
    import torch

    model = torch_model().eval()
    forward = torch.compile(model, dynamic=True) if mode == "compile" else model
    with torch.inference_mode():
        for timed in (False, True):
            written, start, ids, past = 0, time.perf_counter(), torch.tensor([[5]]), None
            text = [5]
            while written < tokens:
                # As ours: when the context is full, the older half is forgotten.
                if past is not None and past[0][0].shape[2] == CONTEXT:
                    ids, past = torch.tensor([text[-CONTEXT // 2 - 1 :]]), None
                logits, past = forward(ids, past)
                probabilities = torch.softmax(logits[0, -1] / 0.8, -1)
                text.append(int(torch.multinomial(probabilities, 1)))
                ids, written = torch.tensor([text[-1:]]), written + 1
            seconds = time.perf_counter() - start
    print(json.dumps({"tokens_per_second": tokens / seconds}))


def torch_embed(folder, text, order, vectors):
    import torch
    from transformers import AutoModel, AutoTokenizer

    torch.set_num_threads(THREADS)
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    lines = open(text).read().splitlines()
    numbers = range(len(lines))
    if order == "length":
        numbers = sorted(numbers, key=lambda i: -len(lines[i]))
    found = [None] * len(lines)
    with torch.inference_mode():
        for timed in (False, True):
            start = time.perf_counter()
            for at in range(0, len(lines) if timed else 64, 32):
                chosen = numbers[at : at + 32]
                batch = tokenizer([lines[i] for i in chosen], return_tensors="pt", padding=True, truncation=True,
                                  max_length=512)  # fmt: skip
                mask = batch["attention_mask"][:, :, None].float()
                mean = (model(**batch).last_hidden_state * mask).sum(1) / mask.sum(1)
                for i, vector in zip(chosen, torch.nn.functional.normalize(mean, dim=1).tolist()):
                    found[i] = vector
            seconds = time.perf_counter() - start
    json.dump(found, open(vectors, "w"))
    print(json.dumps({"texts_per_second": len(lines) / seconds}))


def our_embed(binary, model, text):
    command = [binary, "embed", "--model", model, "--input", text, "--json"]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    vectors = [json.loads(line)["vector"] for line in run.stdout.splitlines()]
    rate = run.stderr.splitlines()[-1].split(", ")[-1].split(" a second")[0]
    return vectors, float(rate.replace(",", ""))


def minilm(binary, model, text, quick):
    rounds, count = (1, 300) if quick else (3, 1500)
    lines = (gzip.open(text, "rt") if text.endswith(".gz") else open(text)).read().splitlines()[:count]
    print(f"all-MiniLM-L6-v2, {len(lines)} sentences, batches of 32, {THREADS} threads, {rounds} rounds")
    with tempfile.TemporaryDirectory() as folder:
        text, vectors = f"{folder}/text", f"{folder}/vectors.json"
        open(text, "w").write("".join(line + "\n" for line in lines))
        ours, in_order, by_length = [], [], []
        for _ in range(rounds):
            found, rate = our_embed(binary, model, text)
            ours.append(rate)
            in_order.append(last_json("torch-embed", model, text, "file", vectors)["texts_per_second"])
            by_length.append(last_json("torch-embed", model, text, "length", vectors)["texts_per_second"])
        expected = json.load(open(vectors))
        worst = max(abs(a - b) for x, y in zip(found, expected) for a, b in zip(x, y))
    print(f"  largest difference of a number: {worst:.1e}")
    fast = row("attentive", ours, "sentences/s")
    best = max(row("PyTorch", in_order, "sentences/s"), row("PyTorch, by length", by_length, "sentences/s"))
    print(f"  {fast / best:.2f} times PyTorch's best")


def last_json(*arguments):
    command = [sys.executable, __file__, *map(str, arguments)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(output.splitlines()[-1])


def our_training(binary, text, steps, precision, folder):
    out = tempfile.mkdtemp(dir=folder)
    settings = {
        "data.text": text, "training.max_steps": steps, "training.precision": precision, "training.log_every": WARM_UP,
        "validation.every_steps": 0, "data.val_share": 0.1, "validation.samples": 0, "checkpoints.every_minutes": 0,
    }  # fmt: skip
    command = [binary, "train", "recipes/gpt-shakespeare.toml", "--out", out, "--quiet"]
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    subprocess.run(command, check=True)
    lines = [json.loads(line) for line in open(f"{out}/metrics.jsonl")]
    # Each line has the rate since the one before it; the first is warming up.
    rates = [line["tokens_per_second"] for line in lines if line["event"] == "step"][1:]
    return out, len(rates) / sum(1 / rate for rate in rates)


def our_generation(binary, model, tokens):
    command = [binary, "generate", "--model", model, "ROMEO:", "--max-tokens", str(tokens)]
    notes = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    written, rate = notes.splitlines()[-1].split(" tokens, ")
    return float(rate.split(" a second")[0].replace(",", ""))


def row(name, rates, unit="tokens/s"):
    print(f"  {name:<24}{statistics.median(rates):>12,.0f} {unit}   ({', '.join(f'{rate:,.0f}' for rate in rates)})")
    return statistics.median(rates)


def gpt(binary, text, quick):
    rounds, steps, tokens = (1, 150, 300) if quick else (3, 300, 1000)
    text = os.path.abspath(text)
    print(f"GPT, {LAYERS} layers, {WIDTH} wide, context {CONTEXT}, batch {BATCH}, {THREADS} threads, {rounds} rounds")
    with tempfile.TemporaryDirectory() as folder:
        for precision in ("f32", "bf16"):
            ours, eager, compiled = [], [], []
            for _ in range(rounds):
                model, rate = our_training(binary, text, steps, precision, folder)
                ours.append(rate)
                eager.append(last_json("torch-train", text, steps, precision, "eager")["tokens_per_second"])
                compiled.append(last_json("torch-train", text, steps, precision, "compile")["tokens_per_second"])
            print(f"training, {precision}")
            fast = row("attentive", ours)
            best = max(row("PyTorch", eager), row("PyTorch, torch.compile", compiled))
            print(f"  {fast / best:.2f} times PyTorch's best")
        ours, eager = [], []
        for _ in range(rounds):
            ours.append(our_generation(binary, model, tokens))
            eager.append(last_json("torch-generate", tokens, "eager")["tokens_per_second"])
        print("generation with a KV cache, one text")
        fast = row("attentive", ours)
        print(f"  {fast / row('PyTorch', eager):.2f} times PyTorch")


if __name__ == "__main__":
    command, *rest = sys.argv[1:]
    if command == "gpt":
        gpt(rest[0], rest[1], "--quick" in rest)
    elif command == "minilm":
        minilm(rest[0], rest[1], rest[2], "--quick" in rest)
    elif command == "torch-embed":
        torch_embed(*rest)
    elif command == "torch-train":
        torch_train(rest[0], int(rest[1]), rest[2], rest[3])
    elif command == "torch-generate":
        torch_generate(int(rest[0]), rest[1])
