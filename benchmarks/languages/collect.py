"""Sentences of many languages out of the translations of programs, for `benchmarks/run languages`.

    collect.py OUT FOLDER... [--most N] [--least N]

Every FOLDER holds translations as programs install them (CODE/LC_MESSAGES/*.mo, at any depth). A folder stands for what
its predecessors have too little of: a language is taken from the first that gives enough sentences. What was measured
in docs/languages.md came from packages of Debian 12:

    apt-get download wesnoth-1.16-data wesnoth-1.16-{did,httt,l,sof,trow,tsg,ttb,utbs} tuxpaint tuxpaint-data \\
        libgtk-3-common nautilus-data evolution-common evolution-data-server-common gimp-data epiphany-browser-data \\
        gnome-control-center-data
    for file in *.deb; do
        case $file in wesnoth*) out=wesnoth ;; tuxpaint*) out=tuxpaint ;; *) out=desktop ;; esac
        dpkg-deb -x "$file" $out
    done
    python3 collect.py OUT wesnoth tuxpaint desktop

A text is taken if it is one sentence of 3 to 25 words (6 to 60 letters where words are not apart), has no markup, and
differs from its English original. Which ones are taken, if there are too many, depends on a hash of the text alone.
English is what was translated. Writes OUT/CODE.txt.
"""

import argparse
import hashlib
import re
import struct
from pathlib import Path

# The variants of a language that are taken for it, and those that are other ways to write one.
NAMES = {"nb": "no", "nb_NO": "no", "zh_CN": "zh"}
MARKUP = re.compile(r"[<>{}$%|\\=_@#*\[\]~^+/\d\n\t\x00]|\w-\w+-\w|https?:")
INNER = re.compile(r"[.!?…:;。！？؟۔।՞։][\"'”»“’)]*\s*\S")
END = re.compile(r"[.!?…。！？؟۔।՞։][\"'”»“’)]*$")
TIGHT = {"ja", "zh", "th", "my", "km", "lo", "bo"}


def is_sentence(text, code):
    """Whether a text is one whole sentence without anything but words."""
    if MARKUP.search(text) or not END.search(text) or INNER.search(text) or text != text.strip():
        return False
    if code in TIGHT:
        return 6 <= len(text) <= 60
    return 3 <= len(text.split()) <= 25


def catalog(data):
    """The pairs of a .mo file."""
    if len(data) < 20:
        return
    order = "<" if data[:4] == b"\xde\x12\x04\x95" else ">"
    count, sources, targets = struct.unpack_from(f"{order}3I", data, 8)
    for i in range(count):
        pair = []
        for table in (sources, targets):
            length, start = struct.unpack_from(f"{order}2I", data, table + 8 * i)
            pair.append(data[start : start + length].decode("utf-8", "replace"))
        if pair[0]:
            yield pair


def sentences(folder):
    """The sentences of each language in a folder of translations."""
    found, english = {}, set()
    for path in sorted(folder.rglob("LC_MESSAGES/*.mo")):
        name = path.parent.parent.name
        code = NAMES.get(name, name)
        if not re.fullmatch("[a-z]{2}", code):
            continue
        for source, target in catalog(path.read_bytes()):
            source = source.split("\x04")[-1].split("^")[-1]
            if is_sentence(source, "en"):
                english.add(source)
            if target != source and is_sentence(target, code):
                found.setdefault(code, set()).add(target)
    found["en"] = english
    for code in found.keys() - {"en"}:
        found[code] -= english
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--most", type=int, default=400)
    parser.add_argument("--least", type=int, default=100)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    taken = {}
    for folder in options.folders:
        for code, texts in sentences(folder).items():
            if len(texts) >= options.least and code not in taken:
                ordered = sorted(texts, key=lambda text: hashlib.sha256(text.encode()).digest())
                taken[code] = (folder.name, ordered[: options.most])
    for code, (folder, texts) in sorted(taken.items()):
        (options.out / f"{code}.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
        print(code, folder, len(texts))


main()
