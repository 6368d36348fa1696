"""Table 1 of the paper, measured: called by `benchmarks/run layers`.

    layers.py BINARY [--quick] [--picture FILE.svg]

One layer each of recurrence (GRU), convolution (k = 3) and self-attention, in f32: seconds of a forward and of a backward
pass for growing length and width, with as many tokens in every run; steps that wait for each other; and how many layers
lie between the last output and the first input (layers are added until the gradient is no longer zero). Beside the
seconds stands what the operations of table 1 would predict: n²d, nd² and knd², relative to the shortest or narrowest.
"""

import argparse
import json
import math
import subprocess

KINDS = {
    "recurrence": ("n d²", lambda n, d: n * d * d, "O(n)"),
    "convolution": ("k n d²", lambda n, d: 3 * n * d * d, "O(1)"),
    "attention": ("n² d", lambda n, d: n * n * d, "O(1)"),
}
TOKENS = 4096  # in a run, whatever the length
COLORS = {"recurrence": "#b35806", "convolution": "#1b7837", "attention": "#2166ac"}


def run(binary, *words):
    done = subprocess.run([binary, *map(str, words)], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def picture(path, times, lengths, widths):
    """Two panels with logarithmic axes: seconds by length and by width."""
    width, height, gap = 360, 260, 70
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * width + 3 * gap} {height + 130}" '
        'font-family="DejaVu Sans, sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{gap}" y="26" font-size="16">One layer, forward and backward, {TOKENS} tokens</text>',
    ]
    for index, (xs, key, label) in enumerate(
        [(lengths, lambda x: (x, widths[1]), f"length n (d = {widths[1]})"),
         (widths, lambda x: (lengths[1], x), f"width d (n = {lengths[1]})")]
    ):  # fmt: skip
        left, top = gap + index * (width + gap), 50
        seconds = {kind: [sum(times[kind, *key(x)]) for x in xs] for kind in KINDS}
        every = [value for row in seconds.values() for value in row]
        low, high = math.floor(math.log10(min(every))), math.ceil(math.log10(max(every)))
        place_x = lambda x: left + width * math.log(x / xs[0]) / math.log(xs[-1] / xs[0])
        place_y = lambda y: top + height * (high - math.log10(y)) / (high - low)
        parts.append(f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="none" stroke="#999"/>')
        for x in xs:
            parts.append(f'<text x="{place_x(x):.1f}" y="{top + height + 18}" text-anchor="middle">{x}</text>')
        for power in range(low, high + 1):
            y = place_y(10.0**power)
            parts.append(f'<line x1="{left}" x2="{left + width}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
            parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g} s</text>')
        parts.append(f'<text x="{left + width / 2}" y="{top + height + 40}" text-anchor="middle">{label}</text>')
        for kind, row in seconds.items():
            points = " ".join(f"{place_x(x):.1f},{place_y(y):.1f}" for x, y in zip(xs, row))
            parts.append(f'<polyline points="{points}" fill="none" stroke="{COLORS[kind]}" stroke-width="2"/>')
            for x, y in zip(xs, row):
                parts.append(f'<circle cx="{place_x(x):.1f}" cy="{place_y(y):.1f}" r="3" fill="{COLORS[kind]}"/>')
    for index, kind in enumerate(KINDS):
        x, y = gap + index * 190, height + 112
        parts.append(f'<line x1="{x}" x2="{x + 24}" y1="{y - 4}" y2="{y - 4}" stroke="{COLORS[kind]}" stroke-width="2"/>')
        parts.append(f'<text x="{x + 30}" y="{y}">{kind} ({KINDS[kind][0]})</text>')
    open(path, "w").write("\n".join([*parts, "</svg>", ""]))


def main(options):
    lengths = [32, 128, 512] if options.quick else [32, 128, 512, 2048]
    widths = [64, 256] if options.quick else [64, 256, 512]
    runs = 3 if options.quick else 7
    times = {}
    print(f"seconds of one layer, forward + backward, {TOKENS} tokens; in brackets what the operations predict\n")
    for title, cells in [
        (f"by length n, d = {widths[1]}", [(n, widths[1]) for n in lengths]),
        (f"by width d, n = {lengths[1]}", [(lengths[1], d) for d in widths]),
    ]:
        print(title)
        for kind, (formula, operations, _) in KINDS.items():
            row = []
            for n, d in cells:
                if (kind, n, d) not in times:
                    found = run(options.binary, "time", kind, n, d, max(1, TOKENS // n), runs)
                    times[kind, n, d] = (found["forward"], found["backward"])
                forward, backward = times[kind, n, d]
                # For as many tokens: operations of one sequence, times the sequences.
                cost = operations(n, d) / n
                first = operations(*cells[0]) / cells[0][0]
                row.append(f"{forward * 1e3:8.1f} +{backward * 1e3:8.1f} ms [{cost / first:5.1f}]")
            print(f"  {kind:12} {formula:7} " + "  ".join(row), flush=True)
        print("  " + " " * 21 + "  ".join(f"n = {n}, d = {d}".ljust(29) for n, d in cells) + "\n")
    print("between the last output and the first input")
    for kind, (_, _, steps) in KINDS.items():
        for n in [8, 32, 128]:
            found = run(options.binary, "path", kind, n)
            print(
                f"  {kind:12} n = {n:4}: {found['layers']:3} layers, {found['steps']:3} steps in sequence ({steps}), "
                f"gradient {found['gradient']:.1e}",
                flush=True,
            )
    if options.picture:
        picture(options.picture, times, lengths, widths)
        print(f"\npicture: {options.picture}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="benchmarks/run layers")
    parser.add_argument("binary", help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="fewer lengths, widths and runs")
    parser.add_argument("--picture", metavar="FILE.svg", help="draw the seconds")
    main(parser.parse_args())
