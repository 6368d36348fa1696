"""A plugin of pytest's that runs sacreBLEU's own tests with attentive's metrics in the place of sacreBLEU's.

`tests/run` fetches the source distribution of sacreBLEU, whose tests these are, and calls pytest with `-p in_place`. Left out
are the tests of what is no part of scoring (data sets) or not public (the tokenizer of TER), and those of the significance tests: they
pass, too, but need minutes (`test/test_significance.py`).
"""

import sacrebleu
import sacrebleu.compat
import sacrebleu.metrics
import sacrebleu.significance

from attentive import score

replaced = 0
for module in (sacrebleu, sacrebleu.compat, sacrebleu.metrics):
    for name in score.__all__:
        if hasattr(module, name):
            setattr(module, name, getattr(score, name))
            replaced += 1

assert replaced >= 20, replaced
assert sacrebleu.metrics.BLEU.__module__ == "attentive.score"


def pytest_report_header() -> str:
    return f"sacreBLEU {sacrebleu.__version__} with {replaced} names of attentive.score in the place of its own"
