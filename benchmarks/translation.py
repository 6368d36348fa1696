"""Translation beside CTranslate2, same weights, same tokens: called by `benchmarks/run translation`.

    translation.py compare BINARY MODEL DATA [--quick] [--size SIZE] [--isa ISA] [--threads N] [--shortlist] [--json FILE]
                                                                            tables, then the ratios
    translation.py scaling BINARY MODEL DATA [--quick] [--json FILE]        ours for batches, beams and threads
    translation.py serve DIR SOURCES COMPUTE INTER INTRA                    one CTranslate2 process

A contender is a process that has loaded the model and waits for requests (the protocol is that of
crates/runtime/benches/translation.rs). They take turns, so that a change in the machine's mood hits all,
and medians are compared. Timed is tokens to tokens, for both. Memory is the peak of the process less what
it had before it loaded the model, so that the Python interpreter does not count against CTranslate2.
"""

import gzip
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time

import numpy as np

SPECIALS = ["<s>", "</s>", "<blank>", "<unk>"]
ALPHA = 0.6
PAUSE = 0.3  # CTranslate2's threads spin for a while after their work.

# What makes everyone do without better instructions: CTranslate2's own kernels, and the libraries that it calls.
INSTRUCTIONS = {
    "avx512": {"CT2_FORCE_CPU_ISA": "AVX512", "ONEDNN_MAX_CPU_ISA": "AVX512_CORE", "MKL_ENABLE_INSTRUCTIONS": "AVX512"},
    "avx2": {"CT2_FORCE_CPU_ISA": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"},
}


# --- Weights ---------------------------------------------------------------------------------------------


def read_weights(folder):
    with open(os.path.join(folder, "model.safetensors"), "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    header.pop("__metadata__", None)
    return {
        name: np.frombuffer(data[slice(*info["data_offsets"])], np.float32).reshape(info["shape"])
        for name, info in header.items()
    }


def write_weights(folder, tensors):
    tensors = {name: np.ascontiguousarray(tensor, np.float32) for name, tensor in tensors.items()}
    header, offset = {}, 0
    for name, tensor in tensors.items():
        end = offset + tensor.nbytes
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            file.write(tensor.tobytes())


def sinusoids(length, width):
    """As crates/nn/src/layers: sines at even places, cosines at odd ones."""
    position = np.arange(length)[:, None]
    rate = np.exp(np.arange(0, width, 2) * (-np.log(10000.0) / width))
    table = np.zeros((length, width), np.float32)
    table[:, 0::2], table[:, 1::2] = np.sin(position * rate), np.cos(position * rate)
    return table


def widened(folder, out, positions=512):
    """A model of twice the width, heads and layers that computes the same function: the work of `base` with the
    sentences of a trained `small`. Every vector x becomes [x, x], so that norms see the same mean and variance,
    every matrix W becomes [[W, W], [W, W]] / 2, and each new layer adds nothing (its last matrices are 0)."""
    config = json.load(open(os.path.join(folder, "config.json")))
    assert config["positions"] == "sinusoidal" and config["tying"] == "all" and config["norm"] == "pre", config
    width, layers = config["d_model"], config["encoder_layers"]
    # Embeddings are multiplied by sqrt(d_model), which has grown; the projection sees two halves.
    scale = np.sqrt(width / (2 * width))
    small, large = read_weights(folder), {}
    for name, tensor in small.items():
        if name == "embeddings.target.weight":
            large[name] = np.concatenate([tensor, tensor], axis=1) * scale
        elif name == "embeddings.projection_bias":
            large[name] = tensor
        elif tensor.ndim == 1:
            large[name] = np.concatenate([tensor, tensor])
        else:
            large[name] = np.block([[tensor, tensor], [tensor, tensor]]) / 2
    for part in ("weight", "bias"):
        large[f"decoder.final_norm.{part}"] = large[f"decoder.final_norm.{part}"] / (2 * scale)
    for side in ("source", "target"):
        table = sinusoids(positions, width)
        large[f"embeddings.{side}_positions.weight"] = np.concatenate([table, table], axis=1)
    for name, tensor in list(large.items()):
        parts = name.split(".")
        if parts[1] != "layers":
            continue
        last = parts[-2] in ("output", "outer")
        parts[2] = str(int(parts[2]) + layers)
        large[".".join(parts)] = np.zeros_like(tensor) if last else tensor
    os.makedirs(out, exist_ok=True)
    write_weights(out, large)
    for key in ("d_model", "d_ff", "heads", "kv_heads", "encoder_layers", "decoder_layers"):
        if config.get(key) is not None:
            config[key] *= 2
    config.update(positions="learned", max_positions=positions)
    json.dump(config, open(os.path.join(out, "config.json"), "w"), indent=2)
    for name in os.listdir(folder):
        if name.endswith("tokenizer.json"):
            with open(os.path.join(folder, name), "rb") as file, open(os.path.join(out, name), "wb") as copy:
                copy.write(file.read())


def convert(folder, out, quantization=None):
    """The same model for CTranslate2. Our matrices are [in, out], its are [out, in]."""
    import ctranslate2

    config = json.load(open(os.path.join(folder, "config.json")))
    weights = read_weights(folder)
    tied_all, pre = config["tying"] == "all", config["norm"] == "pre"
    spec = ctranslate2.specs.TransformerSpec.from_config(
        (config["encoder_layers"], config["decoder_layers"]),
        config["heads"],
        pre_norm=pre,
        activation=ctranslate2.specs.Activation.RELU,
    )

    def linear(target, *names):
        target.weight = np.concatenate([weights[f"{name}.weight"].T for name in names])
        target.bias = np.concatenate([weights[f"{name}.bias"] for name in names])

    def norm(target, name):
        target.gamma, target.beta = weights[f"{name}.weight"], weights[f"{name}.bias"]

    def layer(target, name, cross):
        own = target.self_attention
        linear(own.linear[0], *(f"{name}.self_attention.{part}" for part in ("query", "key", "value")))
        linear(own.linear[1], f"{name}.self_attention.output")
        norm(own.layer_norm, f"{name}.self_attention_norm")
        if cross:
            other = target.attention
            linear(other.linear[0], f"{name}.cross_attention.query")
            linear(other.linear[1], *(f"{name}.cross_attention.{part}" for part in ("key", "value")))
            linear(other.linear[2], f"{name}.cross_attention.output")
            norm(other.layer_norm, f"{name}.cross_attention_norm")
        linear(target.ffn.linear_0, f"{name}.feed_forward.inner")
        linear(target.ffn.linear_1, f"{name}.feed_forward.outer")
        norm(target.ffn.layer_norm, f"{name}.feed_forward_norm")

    for side, stack, words in (("source", spec.encoder, "encoder"), ("target", spec.decoder, "decoder")):
        table = weights["embeddings.target.weight" if tied_all else f"embeddings.{side}.weight"]
        embeddings = stack.embeddings[0] if side == "source" else stack.embeddings
        embeddings.weight = table.copy()  # It is changed in place when it is quantized.
        stack.scale_embeddings = True
        learned = weights.get(f"embeddings.{side}_positions.weight")
        stack.position_encodings.encodings = sinusoids(2048, config["d_model"]) if learned is None else learned
        for index, target in enumerate(stack.layer):
            layer(target, f"{words}.layers.{index}", cross=side == "target")
        if pre:
            norm(stack.layer_norm, f"{words}.final_norm")
    projection = weights.get("embeddings.projection")
    projection = weights["embeddings.target.weight"] if projection is None else projection.T
    spec.decoder.projection.weight = projection.copy()
    spec.decoder.projection.bias = weights["embeddings.projection_bias"]

    vocabulary = lambda size: SPECIALS + [str(token) for token in range(len(SPECIALS), size)]
    spec.register_source_vocabulary(vocabulary(config["src_vocab"]))
    spec.register_target_vocabulary(vocabulary(config["tgt_vocab"]))
    spec.config.add_source_eos = False
    spec.config.layer_norm_epsilon = config["norm_epsilon"]
    spec.config.decoder_start_token = "<s>"
    spec.validate()
    spec.optimize(quantization=quantization)
    os.makedirs(out, exist_ok=True)
    spec.save(out)


def write_vmap(shortlist, folder):
    """The same shortlist for CTranslate2 (the file is described in crates/model/src/shortlist.rs)."""
    header = struct.Struct("<8s5I32s")
    with open(shortlist, "rb") as file:
        _, _, sources, _, always, count, _ = header.unpack(file.read(header.size))
        numbers = np.frombuffer(file.read(4 * (always + sources + 1 + count)), np.uint32)
    always, starts, lists = np.split(numbers, [always, always + sources + 1])
    name = lambda token: SPECIALS[token] if token < len(SPECIALS) else str(token)
    with open(os.path.join(folder, "vmap.txt"), "w") as file:
        print("", " ".join(map(name, always)), sep="\t", file=file)
        for source in range(sources):
            tokens = lists[starts[source] : starts[source + 1]]
            if len(tokens):
                print(name(source), " ".join(map(name, tokens)), sep="\t", file=file)


# --- Contenders ------------------------------------------------------------------------------------------


def memory_kib(key):
    for line in open("/proc/self/status"):
        if line.startswith(key):
            return int(line.split()[1])


def serve(folder, sources, compute, inter, intra):
    """CTranslate2 as a process that takes requests."""
    import ctranslate2

    name = lambda token: SPECIALS[token] if token < len(SPECIALS) else str(token)
    sources = [[name(token) for token in json.loads(line)] for line in open(sources)]
    start, clock = memory_kib("VmRSS"), time.perf_counter()
    translator = ctranslate2.Translator(
        folder, device="cpu", compute_type=compute, inter_threads=inter, intra_threads=intra
    )
    vmap = os.path.exists(os.path.join(folder, "vmap.txt"))
    loading = {"seconds": time.perf_counter() - clock, "start_kib": start, "loaded_kib": memory_kib("VmRSS")}

    def translate(lines, beam, batch):
        return translator.translate_batch(
            lines, max_batch_size=batch, beam_size=beam, length_penalty=ALPHA, max_decoding_length=200, use_vmap=vmap
        )

    for line in sys.stdin:
        request = line.split()
        if request[0] == "load":
            answer = loading
        elif request[0] == "speed":
            clock = time.perf_counter()
            translate(sources, int(request[1]), int(request[2]))
            answer = {"seconds": time.perf_counter() - clock, "peak_kib": memory_kib("VmHWM")}
        elif request[0] == "latency":
            seconds = []
            for source in sources[: int(request[2])]:
                clock = time.perf_counter()
                translate([source], int(request[1]), 1)
                seconds.append(time.perf_counter() - clock)
            answer = {"seconds": seconds}
        else:
            results = translate(sources, int(request[1]), 64)
            answer = {"outputs": [[int(token) for token in result.hypotheses[0] if token.isdigit()] for result in results]}
        print(json.dumps(answer), flush=True)


class Contender:
    def __init__(self, name, command, ours, environment=None):
        self.name, self.ours, self.command = name, ours, command
        self.environment = {**os.environ, **(environment or {})}
        self.process = None

    def start(self):
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(self.command, stdin=pipe, stdout=pipe, text=True, env=self.environment)
        return self.ask("load")

    def ask(self, *request):
        print(*request, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"{self.name} does not answer {request}: {self.command}")
        return json.loads(answer)

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


def contenders(binary, models, peer, sources, threads, shortlist):
    """Ours, and CTranslate2 in each of its ways; `models` and `peer` map a kind of number to a directory."""
    ours = [
        Contender(f"attentive {compute}", [binary, "serve", model, sources, compute, str(threads), *shortlist], True)
        for compute, model in models.items()
    ]
    theirs = []
    for compute in supported():
        for inter, intra in {(1, threads), (threads, 1), (1, 1)}:
            command = [sys.executable, __file__, "serve", peer[compute], sources, compute, str(inter), str(intra)]
            theirs.append(Contender(f"CTranslate2 {compute} {inter}x{intra}", command, False))
    return ours, sorted(theirs, key=lambda contender: contender.name)


def supported():
    import ctranslate2

    kinds = ctranslate2.get_supported_compute_types("cpu")
    return [kind for kind in ("float32", "int8", "bfloat16", "int8_bfloat16") if kind in kinds]


# --- Measuring -------------------------------------------------------------------------------------------


def ask_in_turn(contenders, rounds, *request):
    """Answers by contender's name; everyone once, then everyone again."""
    answers = {contender.name: [] for contender in contenders}
    for _ in range(rounds):
        for contender in contenders:
            time.sleep(PAUSE)
            answers[contender.name].append(contender.ask(*request))
    return answers


def median_seconds(answers):
    return {name: statistics.median(answer["seconds"] for answer in runs) for name, runs in answers.items()}


def best_batch(contender, beam, quick):
    """The batch size with which a contender is fastest, by the better of two tries each."""
    if contender.ours:
        return 0  # Its own choice.
    sizes = (16, 32) if quick else (8, 16, 32, 64, 128)
    return min(sizes, key=lambda size: min(contender.ask("speed", beam, size)["seconds"] for _ in range(2)))


def measure(size, binary, model, texts, references, folder, quick, threads, shortlist):
    sources = os.path.join(folder, "sources.jsonl")
    with open(sources, "w") as file:
        subprocess.run([binary, "encode", model], input="\n".join(texts) + "\n", stdout=file, text=True, check=True)
    peer = {}
    for compute in supported():
        quantization = None if compute == "float32" else compute
        peer[compute] = os.path.join(folder, f"{size}-{compute}")
        convert(model, peer[compute], quantization)
        for path in shortlist:
            write_vmap(path, peer[compute])
    models = {"f32": model, "f32-int8-output": model, "int8": os.path.join(folder, f"{size}-ours-int8")}
    subprocess.run([binary, "quantize", model, models["int8"]], check=True)
    ours, theirs = contenders(binary, models, peer, sources, threads, shortlist)
    everyone = ours + theirs
    # Where there are more threads, a single one is there for single sentences.
    busy = [contender for contender in everyone if threads == 1 or not contender.name.endswith("1x1")]
    table = {contender.name: {} for contender in everyone}
    for contender in everyone:
        contender.start()

    count, rounds = len(texts), 3 if quick else 5
    outputs = {}
    for beam, label in ((1, "greedy"), (4, "beam4")):
        for contender in busy:
            table[contender.name][f"{label}_batch"] = best_batch(contender, beam, quick)
        seconds = {contender.name: [] for contender in busy}
        for _ in range(rounds):
            for contender in busy:
                time.sleep(PAUSE)
                answer = contender.ask("speed", beam, table[contender.name][f"{label}_batch"])
                seconds[contender.name].append(answer["seconds"])
        for name, runs in seconds.items():
            table[name][label] = count / statistics.median(runs)
        for contender in busy:
            outputs[contender.name, label] = contender.ask("outputs", beam)["outputs"]
    few = 60 if quick else 200
    single = [contender for contender in everyone if contender.ours or " 1x" in contender.name]
    for beam, label in ((1, "greedy"), (4, "beam4")):
        for name, runs in ask_in_turn(single, 2 if quick else 3, "latency", beam, few).items():
            # Each sentence's median over the rounds, and then the percentiles over the sentences.
            times = sorted(map(statistics.median, zip(*(run["seconds"] for run in runs))))
            table[name][f"{label}_p50"] = 1000 * times[len(times) // 2]
            table[name][f"{label}_p95"] = 1000 * times[int(len(times) * 0.95)]
    for contender in everyone:
        contender.stop()

    # Memory and loading want a fresh process each time.
    for _ in range(1 if quick else 3):
        for contender in busy:
            load = contender.start()
            row = table[contender.name]
            row.setdefault("loads", []).append(load["seconds"])
            if contender.ours:
                row["tokenizer_ms"] = 1000 * load["tokenizer_seconds"]
            peak = contender.ask("speed", 4, row["beam4_batch"])["peak_kib"]
            row.setdefault("peaks", []).append((peak - load["start_kib"]) / 1024)
            contender.stop()
    for row in (table[contender.name] for contender in busy):
        row["load_ms"] = 1000 * statistics.median(row.pop("loads"))
        row["memory_mib"] = statistics.median(row.pop("peaks"))
    score(binary, model, table, outputs, references)
    return table, agreement(outputs)


def score(binary, model, table, outputs, references):
    import sacrebleu

    for (name, label), tokens in outputs.items():
        lines = "".join(json.dumps(ids) + "\n" for ids in tokens)
        done = subprocess.run([binary, "decode", model], input=lines, capture_output=True, text=True, check=True)
        table[name][f"{label}_bleu"] = sacrebleu.corpus_bleu(done.stdout.split("\n")[:-1], [references]).score


def agreement(outputs):
    """The share of sentences that two contenders translate alike."""
    peer = next(name for name, _ in outputs if name.startswith("CTranslate2 float32"))
    others = ("attentive f32-int8-output", "attentive int8")
    pairs = [("attentive f32", peer), *((other, "attentive f32") for other in others)]
    same = lambda one, other: sum(a == b for a, b in zip(one, other)) / len(one)
    return {
        f"{one} = {other}, {label}": same(outputs[one, label], outputs[other, label])
        for one, other in pairs
        for label in ("greedy", "beam4")
    }


COLUMNS = [
    ("greedy", "sent/s greedy", "{:.0f}"),
    ("beam4", "beam 4", "{:.0f}"),
    ("greedy_p50", "ms p50 greedy", "{:.2f}"),
    ("greedy_p95", "p95", "{:.2f}"),
    ("beam4_p50", "ms p50 beam 4", "{:.2f}"),
    ("beam4_p95", "p95", "{:.2f}"),
    ("memory_mib", "peak MiB", "{:.0f}"),
    ("load_ms", "load ms", "{:.1f}"),
    ("tokenizer_ms", "and tokenizer", "{:.1f}"),
    ("greedy_bleu", "BLEU greedy", "{:.2f}"),
    ("beam4_bleu", "beam 4", "{:.2f}"),
]


def print_table(size, table, same):
    print(f"\n### {size}\n")
    print("| contender | " + " | ".join(title for _, title, _ in COLUMNS) + " |")
    print("| --- |" + " --- |" * len(COLUMNS))
    for name, row in table.items():
        cells = [form.format(row[key]) if key in row else "" for key, _, form in COLUMNS]
        print(f"| {name} | " + " | ".join(cells) + " |")
    print()
    for pair, share in same.items():
        print(f"{pair}: {share:.1%} of the sentences are the same")


def ratios(table):
    """Ours at its best beside CTranslate2 at its best, in each column by itself."""
    ours = [row for name, row in table.items() if name.startswith("attentive")]
    theirs = [row for name, row in table.items() if not name.startswith("attentive")]
    best = lambda rows, key, choose: choose(row[key] for row in rows if key in row)
    most = lambda key: best(ours, key, max) / best(theirs, key, max)
    least = lambda key: best(ours, key, min) / best(theirs, key, min)
    f32 = lambda theirs: [row for name, row in table.items() if name.startswith(f"{theirs} f")]
    of_f32 = lambda key: best(f32("attentive"), key, max) / best(f32("CTranslate2"), key, max)
    # Memory and loading of the kind that is fastest, as one process is used for everything.
    fastest = lambda rows: max(rows, key=lambda row: row.get("beam4", 0))
    of_fastest = lambda key: fastest(ours)[key] / fastest(theirs)[key]
    return {
        "greedy": most("greedy"),
        "beam4": most("beam4"),
        "f32_greedy": of_f32("greedy"),
        "f32_beam4": of_f32("beam4"),
        "latency": max(least("greedy_p50"), least("beam4_p50")),
        "latency_greedy": least("greedy_p50"),
        "latency_beam4": least("beam4_p50"),
        "memory": of_fastest("memory_mib"),
        "load": of_fastest("load_ms"),
    }


def test_set(data):
    read = lambda name: gzip.open(os.path.join(data, name), "rt", encoding="utf-8").read().splitlines()
    return read("test_2016_flickr.de.gz"), read("test_2016_flickr.en.gz")


def compare(binary, model, data, quick, with_shortlist, json_file, size=None, isa=None, threads=None):
    if isa:
        # Before CTranslate2 is loaded, and for all contenders, which inherit it.
        os.environ.update(INSTRUCTIONS[isa], ATTENTIVE_ISA=isa)
    import ctranslate2

    threads = int(threads or os.cpu_count())
    texts, references = test_set(data)
    print(f"CTranslate2 {ctranslate2.__version__}, {threads} threads, test_2016_flickr{isa and f', {isa} only' or ''}{', with a shortlist' * with_shortlist}")
    result = {"threads": threads, "ctranslate2": ctranslate2.__version__, "isa": isa}
    with tempfile.TemporaryDirectory() as folder:
        shortlist = []
        if with_shortlist:
            shortlist = [os.path.join(folder, "shortlist")]
            corpus = [os.path.join(data, f"train.{side}.gz") for side in ("de", "en")]
            subprocess.run([binary, "shortlist", model, *corpus, *shortlist], check=True)
        base = os.path.join(folder, "base")
        widened(model, base)
        sizes = {"base": (base, 100 if quick else 1000), "small": (model, 300 if quick else 1000)}
        for name, (path, count) in sizes.items():
            if size not in (None, name):
                continue
            lines = texts[:count], references[:count]
            table, same = measure(name, binary, path, *lines, folder, quick, threads, shortlist)
            print_table(f"{name}, {count} sentences", table, same)
            result[name] = {"sentences": count, "contenders": table, "agreement": same, "ratios": ratios(table)}
    if json_file:
        json.dump(result, open(json_file, "w"), indent=1)
    print()
    for name in sizes.keys() & result.keys():
        print(f"{name}: " + " ".join(f"{key}={value:.2f}" for key, value in result[name]["ratios"].items()))
    last = result.get("small", result.get("base"))["ratios"]
    print(" ".join(f"{key}={last[key]:.2f}" for key in ("greedy", "beam4", "latency", "memory")))


def scaling(binary, model, data, quick, json_file):
    """Sentences per second for every batch size, beam and number of threads."""
    texts, _ = test_set(data)
    batches = (1, 8, 64, 512) if quick else (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
    beams = (1, 2, 4, 8)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        sources = os.path.join(folder, "sources.jsonl")
        with open(sources, "w") as file:
            subprocess.run([binary, "encode", model], input="\n".join(texts) + "\n", stdout=file, text=True, check=True)
        for compute in ("f32", "int8"):
            for threads in range(1, os.cpu_count() + 1):
                command = [binary, "serve", model, sources, compute, str(threads)]
                contender = Contender(f"attentive {compute}", command, True)
                contender.start()
                for beam in beams:
                    for batch in batches:
                        repeats = range(1 if quick else 2)
                        request = ("speed", beam, batch, 1_000_000)
                        seconds = min(contender.ask(*request)["seconds"] for _ in repeats)
                        rows.append(dict(compute=compute, threads=threads, beam=beam, batch=batch, speed=len(texts) / seconds))
                contender.stop()
    print("| numbers, threads, beam | " + " | ".join(f"batch {batch}" for batch in batches) + " |")
    print("| --- |" + " --- |" * len(batches))
    for start in range(0, len(rows), len(batches)):
        row = rows[start]
        speeds = " | ".join(f"{cell['speed']:.0f}" for cell in rows[start : start + len(batches)])
        print(f"| {row['compute']}, {row['threads']}, {row['beam']} | {speeds} |")
    if json_file:
        json.dump(rows, open(json_file, "w"), indent=1)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(*sys.argv[2:5], *map(int, sys.argv[5:7]))
    else:
        options = {"--json": None, "--size": None, "--isa": None, "--threads": None}
        arguments = sys.argv[2:]
        for name in options:
            if name in arguments:
                place = arguments.index(name)
                options[name] = arguments[place + 1]
                del arguments[place : place + 2]
        quick = "--quick" in arguments
        with_shortlist = "--shortlist" in arguments
        arguments = [argument for argument in arguments if argument not in ("--quick", "--shortlist")]
        if options["--isa"] not in (None, *INSTRUCTIONS):
            raise SystemExit(f"--isa takes one of {', '.join(INSTRUCTIONS)}")
        if sys.argv[1] == "compare":
            compare(*arguments, quick, with_shortlist, *options.values())
        else:
            scaling(*arguments, quick, options["--json"])
