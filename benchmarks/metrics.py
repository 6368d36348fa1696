"""Times the metrics beside sacreBLEU 2.6.0, in turns, and checks that the scores are equal.

    metrics.py BINARY DATA [TASK...]     (benchmarks/run metrics calls this; TASK: bleu chrf ter significance)

What is timed, on both sides: computing only, in a running process, from text in memory to scores. Starting
Python, importing and reading files are left out; they would only flatter us. Per metric: reading the
references once and scoring six systems. Significance: paired bootstrap (1,000 samples) and paired
approximate randomization (10,000 trials) of BLEU, five systems against a baseline.

Both sides run as they come: sacreBLEU in one process, ours on all cores (RAYON_NUM_THREADS=1 for one).
REPEAT sets how often each is measured; medians count. The last line has the ratios.
"""

import gzip
import json
import logging
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time

from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest

SYSTEMS = ["C-3MA", "FBK", "KIT", "LIUM-NMT", "LMU-nmt-reranked", "LMU-nmt-single"]
METRICS = {"bleu": BLEU, "chrf": CHRF, "ter": TER}
REPEATS = {"bleu": 5, "chrf": 5, "ter": 3, "significance": 3}
logging.disable(logging.CRITICAL)


def read(path):
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as lines:
        return [line.rstrip() for line in lines]


def theirs(task, reference, systems):
    """Seconds and scores of sacreBLEU. New objects each time, so that no cache is warm."""
    start = time.perf_counter()
    if task == "significance":
        results = []
        for test in ("bs", "ar"):
            paired = PairedTest(list(zip(SYSTEMS, systems)), {"BLEU": BLEU(references=[reference])}, None, test_type=test)
            results += paired()[1]["BLEU"]
        seconds = time.perf_counter() - start
        return seconds, [value for r in results for value in (r.score, r.p_value if r.p_value is not None else 0.0)]
    metric = METRICS[task](references=[reference])
    scores = [metric.corpus_score(system, None).score for system in systems]
    return time.perf_counter() - start, scores


def ours(task, binary, data):
    output = subprocess.run([binary, task, data], check=True, capture_output=True, text=True).stdout
    found = json.loads(output)
    return found["seconds"], found["scores"]


def cpu():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if os.path.exists("/proc/cpuinfo") else []:
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def main():
    binary, data = sys.argv[1:3]
    folder = pathlib.Path(data)
    reference = read(folder / "reference.de.gz")
    systems = [read(folder / f"{name}.de.gz") for name in SYSTEMS]
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    print(f"{cpu()}, {os.cpu_count()} cores; {len(SYSTEMS)} systems of {len(reference)} lines; commit {commit}")
    ratios = []
    for task in sys.argv[3:] or REPEATS:
        repeats = int(os.environ.get("REPEAT", REPEATS[task]))
        times = {"sacrebleu": [], "attentive": []}
        for _ in range(repeats):
            seconds, expected = theirs(task, reference, systems)
            times["sacrebleu"].append(seconds)
            seconds, scores = ours(task, binary, data)
            times["attentive"].append(seconds)
            assert len(scores) == len(expected)
            worst = max(abs(a - b) for a, b in zip(scores, expected))
            assert worst < 1e-9, f"{task}: scores differ by {worst}"
        theirs_median, ours_median = (statistics.median(times[name]) for name in ("sacrebleu", "attentive"))
        ratios.append(f"{task}={theirs_median / ours_median:.1f}")
        print(f"{task}: sacreBLEU {theirs_median:.3f} s, attentive {ours_median:.4f} s, medians of {repeats}, equal scores", flush=True)
    print(" ".join(ratios))


if __name__ == "__main__":
    main()
