#!/usr/bin/env python3
"""Real HTML pages through `attentive translate --format html`, looked at by another parser (Python's).

    benchmarks/markup.py ATTENTIVE PAGE.html ...      (for example /usr/share/doc/debian-handbook/html/de-DE/*.html)

For each page: every tag with its attributes is there exactly as often as before, block elements are in the same order and
nested in the same way, comments, scripts and code are the same, and how many words the text has. Exits with 1 if not.
"""

import collections
import html.parser
import subprocess
import sys

INLINE = set(
    "a abbr acronym b bdi bdo big cite data del dfn em font i ins label mark nobr q rp rt ruby s small span strike strong "
    "sub sup time tt u wbr img input code kbd samp var math svg".split()
)
READ = {"alt", "title", "placeholder", "aria-label", "content", "value"}


class Structure(html.parser.HTMLParser):
    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.tags, self.blocks, self.kept, self.words = collections.Counter(), [], collections.Counter(), 0
        self.code, self.open_inline = [], []
        self.is_well_nested = True
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        attributes = tuple((name, None if name in READ else value) for name, value in attributes)
        self.tags[tag, attributes] += 1
        if tag in ("code", "pre", "kbd", "samp", "script", "style"):
            self.code.append(tag)
        if tag not in INLINE:
            self.blocks.append(tag)

    def handle_endtag(self, tag):
        self.tags["/" + tag] += 1
        if self.code and self.code[-1] == tag:
            self.code.pop()
        if tag not in INLINE:
            self.blocks.append("/" + tag)

    def handle_comment(self, comment):
        self.kept[comment] += 1

    def handle_decl(self, declaration):
        self.kept[declaration] += 1

    def handle_data(self, data):
        if self.code:
            self.kept[data] += 1
        else:
            self.words += len(data.split())


def main(program, pages):
    failed = 0
    for path in pages:
        source = open(path, encoding="utf-8").read()
        command = [program, "translate", "--format", "html", "--model", "de-en", "-i", path]
        run = subprocess.run(command, capture_output=True, check=True)
        before, after = Structure(source), Structure(run.stdout.decode())
        equal = {
            "tags": before.tags == after.tags,
            "blocks": before.blocks == after.blocks,
            "kept": before.kept == after.kept,
        }
        failed += not all(equal.values())
        wrong = ", ".join(name for name, is_equal in equal.items() if not is_equal) or "all equal"
        print(f"{path}: {sum(before.tags.values())} tags, {before.words} -> {after.words} words: {wrong}", flush=True)
        if not equal["tags"]:
            print("   ", list((before.tags - after.tags).items())[:3], list((after.tags - before.tags).items())[:3])
    print(f"{len(pages) - failed} of {len(pages)} pages have the same structure")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
