"""Glossaries and long sentences: what they change in quality and speed.

    terms.py terms BINARY DATA [--model de-en] [--beams 4,1]     a term for each of 1,000 sentences of Multi30k
    terms.py adversarial BINARY DATA [--model de-en]             terms that can do harm: empty, endless, conflicting
    terms.py long BINARY SOURCE REFERENCE [--model de-en]        long sentences, cut at different lengths

Terms: of each reference of test_2016_flickr one content word (letters only, three or more, no function word) that the
translation without a glossary lacks, the longest one; where it lacks none, the longest that it has. The source term is
the whole source sentence, so that every sentence has exactly its own term. Reported: how many translations contain
their term as a word, BLEU with and without, and the time of both (medians of three runs in turns).

Long sentences: those of at least 15 words in the source, by length (200 of each at most); BLEU with sources cut at 24
tokens and more.
BLEU is that of `attentive score`.
"""

import argparse
import gzip
import pathlib
import re
import statistics
import subprocess
import tempfile
import time

FUNCTION_WORDS = set(
    """a an the this that these those his her its their my your our is are was were be been being am has have had do
    does did will would can could should may might must and or but nor so yet if while when where who whom whose which
    what as at by for from in into of off on onto out over through to under up upon with without about above across
    after against along among around before behind below beneath beside between beyond down during inside near next
    outside past since than toward towards until via within he she it they we you him them us me not no yes all any
    both each few more most other some such only own same too very just there here then also another one two three
    four five six seven eight nine ten""".split()
)


def read(path):
    opened = gzip.open if str(path).endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8") as lines:
        return [line.rstrip("\n") for line in lines]


def write(path, lines):
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def translate(binary, model, source, target, *options):
    """Seconds and messages."""
    start = time.perf_counter()
    command = [binary, "translate", "-m", model, "-i", str(source), "-o", str(target), *options]
    ran = subprocess.run(command, check=True, capture_output=True, text=True)
    return time.perf_counter() - start, ran.stderr


def bleu(binary, reference, hypothesis):
    out = subprocess.run(
        [binary, "score", str(reference), "-i", str(hypothesis), "-m", "bleu", "-b", "-w", "2"],
        check=True, capture_output=True, text=True,
    ).stdout
    return float(re.search(r"(\d+\.\d+)", out).group(1))


def has(text, term):
    return re.search(rf"(?<!\w){re.escape(term)}(?!\w)", text, re.IGNORECASE) is not None


def content_words(text):
    words = re.findall(r"(?<![\w'-])[A-Za-z]{3,}(?![\w'-])", text)
    return sorted({w for w in words if w.lower() not in FUNCTION_WORDS}, key=lambda w: (-len(w), w))


def choose(reference, found):
    words = content_words(reference)
    lacking = [word for word in words if not has(found, word)]
    return (lacking or words or [""])[0]


def terms(args, folder):
    source = read(pathlib.Path(args.data) / "multi30k/test_2016_flickr.de.gz")
    reference = read(pathlib.Path(args.data) / "multi30k/test_2016_flickr.en.gz")
    src = write(folder / "src.de", source)
    ref = write(folder / "ref.en", reference)
    for beam in args.beams.split(","):
        options = ["--whole-lines", "--beam", beam]
        plain, bound = folder / "plain.en", folder / "bound.en"
        translate(args.binary, args.model, src, plain, *options)
        found = read(plain)
        wanted = [choose(r, f) for r, f in zip(reference, found)]
        lacked = sum(not has(f, w) for f, w in zip(found, wanted) if w)
        glossary = write(folder / "terms.tsv", [f"{s}\t{w}\texact" for s, w in zip(source, wanted) if w])
        times = {"plain": [], "bound": []}
        for _ in range(args.repeat):
            times["plain"].append(translate(args.binary, args.model, src, plain, *options)[0])
            seconds, messages = translate(args.binary, args.model, src, bound, *options, "--glossary", str(glossary))
            times["bound"].append(seconds)
        output = read(bound)
        required = [(o, w) for o, w in zip(output, wanted) if w]
        present = sum(has(o, w) for o, w in required)
        without, with_terms = (statistics.median(times[kind]) for kind in ("plain", "bound"))
        print(f"beam {beam}: {present} of {len(required)} terms present ({lacked} lacked before); "
              f"BLEU {bleu(args.binary, ref, plain):.2f} -> {bleu(args.binary, ref, bound):.2f}; "
              f"{without:.2f} s -> {with_terms:.2f} s, {without / with_terms:.2f}x the speed")
        for (o, w) in [pair for pair in required if not has(*pair)][:5]:
            print(f"   lacks {w!r}: {o}")
        if messages:
            print("   " + messages.strip().replace("\n", "\n   "))


def adversarial(args, folder):
    source = read(pathlib.Path(args.data) / "multi30k/test_2016_flickr.de.gz")[:200]
    reference = read(pathlib.Path(args.data) / "multi30k/test_2016_flickr.en.gz")[:200]
    src, ref = write(folder / "src.de", source), write(folder / "ref.en", reference)
    plain, bound = folder / "plain.en", folder / "bound.en"
    translate(args.binary, args.model, src, plain, "--whole-lines")
    print(f"without: BLEU {bleu(args.binary, ref, plain):.2f}")
    for name, lines in {
        "empty": ["Mann\t", "\tman", "Frau\t |  | ", " \t "],
        "absent": ["Quantenchromodynamik\tquantum chromodynamics"],
        "fifty tokens": ["Mann\t" + " ".join(["very long term"] * 17)],
        "overlapping": ["Mann in\tman in", "in einem\tin a", "Mann\tman", "ein Mann\ta man", "Ein Mann in\tA man in"],
        "not in the vocabulary": ["Mann\t\U0001f468\U0001f3fd\u200d\U0001f9b1 \u4eba \u0bb5 \U00013000"],
        "twice": ["Mann\tman", "Mann\tman", "mann\tman"],
        "conflicting": ["Mann\tman", "Mann\tgentleman", "Mann\tbloke\texact", "Mann\tguy\tcase"],
        "special tokens": ["Mann\t</s>", "Frau\t<unk> <s>", "Hund\t\u2581"],
        "all": [f"{w}\t{w.upper()}" for w in {w for line in source for w in re.findall(r"\w{4,}", line)}],
    }.items():
        glossary = write(folder / "terms.tsv", lines)
        seconds, messages = translate(args.binary, args.model, src, bound, "--whole-lines", "--glossary", str(glossary))
        assert len(read(bound)) == len(source)
        print(f"{name}: BLEU {bleu(args.binary, ref, bound):.2f}, {seconds:.2f} s, longest "
              f"{max(len(line.split()) for line in read(bound))} words")
        for message in messages.strip().split("\n")[:3]:
            print("   " + message)


def long(args, folder):
    pairs = list(zip(read(args.source), read(args.reference)))
    for least, most in [(15, 20), (20, 25), (25, 30), (30, 40), (40, 1000)]:
        chosen = [(s, r) for s, r in pairs if least <= len(s.split()) < most][:200]
        if not chosen:
            continue
        src = write(folder / "src", [s for s, _ in chosen])
        ref = write(folder / "ref", [r for _, r in chosen])
        scores = []
        for limit in [512, 64, 48, 40, 32, 24]:
            out = folder / "out"
            translate(args.binary, args.model, src, out, "--max-source-length", str(limit), *args.options.split())
            scores.append(f"{limit}: {bleu(args.binary, ref, out):.2f}")
        print(f"{len(chosen)} sentences of {least} to {most} words: " + ", ".join(scores))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, function in [("terms", terms), ("adversarial", adversarial), ("long", long)]:
        command = commands.add_parser(name)
        command.set_defaults(function=function)
        command.add_argument("binary")
        if name == "long":
            command.add_argument("source")
            command.add_argument("reference")
            command.add_argument("--options", default="")
        else:
            command.add_argument("data")
        command.add_argument("--model", default="de-en")
        command.add_argument("--beams", default="4,1")
        command.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        args.function(args, pathlib.Path(folder))


if __name__ == "__main__":
    main()
