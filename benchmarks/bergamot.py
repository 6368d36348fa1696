"""A Firefox translation model in its original engine and here: called by `benchmarks/run bergamot`.

    bergamot.py compare ATTENTIVE MODEL TEXT [--quick]
    bergamot.py serve MODULE MODEL WORKERS WORDS SHORTLIST       one process of the original engine

MODEL is a folder of such a model (int8 with alphas, lexical shortlist, vocabulary), TEXT a file of sentences. The
original engine is PyPI's bergamot 0.4.5, for Python 3.10; its native module is loaded alone. It runs with one and with
two workers and with batches of several sizes, and its best counts. Text to text for both, without loading: of ours a
process for one word is timed, too, and its time is taken away (the speed of the whole process is printed beside it).
Contenders take turns, medians are compared.
"""

import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time


def serve(module, folder, workers, words, shortlist):
    """Answers requests on standard input: a JSON list of lines gives a JSON object with seconds and lines."""
    spec = importlib.util.spec_from_file_location("_bergamot", module)
    bergamot = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bergamot)
    path = lambda end: next(os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(end))
    vocabulary = path(".spm")
    config = f"""
models: [{path(".alphas.bin")}]
vocabs: [{vocabulary}, {vocabulary}]
{f'shortlist: [{path(".s2t.bin")}, false]' if shortlist == "on" else ""}
beam-size: 1
normalize: 1.0
word-penalty: 0
max-length-break: 128
mini-batch-words: {words}
workspace: 128
max-length-factor: 2.5
skip-cost: true
cpu-threads: 0
quiet: true
quiet-translation: true
gemm-precision: int8shiftAlphaAll
alignment: soft
"""
    service = bergamot.Service(bergamot.ServiceConfig(numWorkers=int(workers), cacheSize=0, logLevel="off"))
    model = service.modelFromConfig(config)
    options = bergamot.ResponseOptions(qualityScores=False, alignment=False, HTML=False, sentenceMappings=False)
    print("ready", flush=True)
    for line in sys.stdin:
        lines = bergamot.VectorString(json.loads(line))
        began = time.perf_counter()
        responses = service.translate(model, lines, options)
        seconds = time.perf_counter() - began
        print(json.dumps({"seconds": seconds, "lines": [response.target.text for response in responses]}), flush=True)


class Original:
    def __init__(self, module, model, workers, words, shortlist):
        self.name = f"{workers} workers, {words} words"
        command = [sys.executable, __file__, "serve", module, model, str(workers), str(words), shortlist]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"

    def translate(self, lines):
        self.process.stdin.write(json.dumps(lines) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        return answer["seconds"], answer["lines"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def ours(attentive, model, lines, shortlist, threads):
    command = [attentive, "translate", "--model", model, "--beam", "1", "--whole-lines", "--quiet", "--threads", str(threads)]
    if shortlist == "off":
        command.append("--no-shortlist")
    began = time.perf_counter()
    done = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    return time.perf_counter() - began, done.stdout.splitlines()


def our_latency(attentive, model, lines, shortlist):
    command = [attentive, "translate", "--model", model, "--beam", "1", "--whole-lines", "--quiet", "--unbuffered"]
    if shortlist == "off":
        command.append("--no-shortlist")
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    seconds = []
    for line in lines:
        began = time.perf_counter()
        process.stdin.write(line + "\n")
        process.stdin.flush()
        process.stdout.readline()
        seconds.append(time.perf_counter() - began)
    process.stdin.close()
    process.wait()
    return statistics.median(seconds[5:])


def compare(module, attentive, folder, text, quick):
    lines = open(text, encoding="utf-8").read().splitlines()[: 300 if quick else 1000]
    rounds = 2 if quick else 5
    model = os.path.join(tempfile.mkdtemp(), "model")
    subprocess.run([attentive, "import", folder, "--out", model, "--quiet"], check=True)
    result = {}
    for shortlist in ("on", "off"):
        originals = [
            Original(module, folder, workers, words, shortlist)
            for workers in (1, 2)
            for words in ((1024,) if quick else (512, 1024, 2048))
        ]
        times = {original.name: [] for original in originals}
        own, starts = [], []
        for round in range(rounds + 1):
            for original in originals:
                times[original.name].append(original.translate(lines)[0])
                time.sleep(0.2)
            own.append(ours(attentive, model, lines, shortlist, 2)[0])
            starts.append(ours(attentive, model, ["Yes"], shortlist, 2)[0])
        medians = {name: statistics.median(found[1:]) for name, found in times.items()}
        best = min(medians, key=medians.get)
        whole = statistics.median(own[1:])
        mine = whole - statistics.median(starts[1:])
        for original in originals:
            original.close()
        single = Original(module, folder, 1, 1024, shortlist)
        few = lines[:100]
        waits = [single.translate([line])[0] for line in few]
        single.close()
        theirs_ms = statistics.median(waits[5:]) * 1000
        ours_ms = our_latency(attentive, model, few, shortlist) * 1000
        result[shortlist] = {
            "original_per_second": len(lines) / medians[best],
            "original_best": best,
            "ours_per_second": len(lines) / mine,
            "ours_with_loading_per_second": len(lines) / whole,
            "original_ms": theirs_ms,
            "ours_ms": ours_ms,
        }
        print(
            f"shortlist {shortlist}: {len(lines) / mine:.0f} sentences/s beside {len(lines) / medians[best]:.0f} ({best}): "
            f"{medians[best] / mine:.2f} times ({medians[best] / whole:.2f} with our loading); one sentence {ours_ms:.2f} ms beside {theirs_ms:.2f}: "
            f"{ours_ms / theirs_ms:.2f}"
        )
    print(json.dumps(result))


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(*sys.argv[2:])
    else:
        module, attentive, folder, text = sys.argv[2:6]
        compare(module, attentive, folder, text, "--quick" in sys.argv)
