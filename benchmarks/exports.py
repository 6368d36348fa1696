"""What other programs make of models that attentive wrote for them: called by `benchmarks/run exports`.

    exports.py ATTENTIVE TEXT [--sentences N] [--checked]

Models are the built-in de-en and tiny ones with random weights out of the tests' fixtures: one vocabulary, swish and norms
behind the sub-layers; two vocabularies and relu. Each is exported for Hugging Face, ONNX and CTranslate2 in f32, and the
translations of transformers, onnxruntime and CTranslate2 are compared with our own: greedy, and with a beam of 4 where
the program has a beam search. ONNX graphs are checked by `onnx.checker` and held to the logits of transformers.
TEXT is for the built-in model, which is made f32 by way of an export and an import; the others have sentences of their own.

`--checked` also runs `crates/convert/tests/peers/check_exports.py`, with int8 models, too, on the built-in model.

Nothing but the model is compared. The built-in models cut long sources at clauses (`max_source_length`) and have a
shortlist; both are left out. Sentences that repeat themselves are not searched again. Every program has its own rule of
when a beam search is over: ours is given that of the program (`beam_rule` in generation.json), the same limit of the
length, and what is done at the limit; for CTranslate2 also that the first token is not the end, and that no token is
forbidden. (An importer writes these settings of a program's models.)
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import ctranslate2
import numpy as np
import onnx
import onnxruntime
import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

FIXTURES = Path("crates/convert/tests/fixtures")
TINY = ["marian", "marian-relu-separate"]
BATCH = 20
LENGTH = 100
TOLERANCE = 1e-4
failures = []


def run(attentive, *command):
    subprocess.run([attentive, *map(str, command)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def ours(attentive, model, lines, beam):
    command = [attentive, "translate", "--model", model, "--beam", str(beam), "--whole-lines", "--allow-repetition", "--quiet"]
    done = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def models(attentive, folder, text):
    """Names, f32 model directories and their sentences."""
    run(attentive, "export", "de-en", "--format", "huggingface", "--out", folder / "built-in")
    run(attentive, "import", folder / "built-in", "--out", folder / "de-en")
    settings = folder / "de-en/generation.json"
    kept = json.loads(settings.read_text())
    kept.pop("max_source_length", None)
    settings.write_text(json.dumps(kept))
    yield "de-en", folder / "de-en", text
    for name in TINY:
        run(attentive, "import", FIXTURES / "huggingface" / name, "--out", folder / name)
        yield name, folder / name, (FIXTURES / "sentences.txt").read_text().splitlines()


def searching(model, folder, **settings):
    """The same model with other settings of the search."""
    shutil.copytree(model, folder)
    path = folder / "generation.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))
    return folder


class Peers:
    """A model in f32, exported for each program."""

    def __init__(self, attentive, model, folder):
        for kind in ("huggingface", "onnx", "ctranslate2"):
            run(attentive, "export", model, "--format", kind, "--out", folder / kind)
        self.folder = folder
        self.tokenizer = AutoTokenizer.from_pretrained(folder / "huggingface")
        self.network = AutoModelForSeq2SeqLM.from_pretrained(folder / "huggingface").eval()
        config = json.loads((folder / "huggingface/config.json").read_text())["attentive"]["config"]
        generation = self.network.generation_config
        self.start, self.end = generation.decoder_start_token_id, generation.eos_token_id
        self.forbidden = [ids[0] for ids in generation.bad_words_ids]
        self.epsilon = config["norm_epsilon"]

    def batches(self, lines):
        for at in range(0, len(lines), BATCH):
            found = self.tokenizer(lines[at : at + BATCH], return_tensors="pt", padding=True)
            yield {key: found[key] for key in ("input_ids", "attention_mask")}

    def text(self, ids):
        return self.tokenizer.batch_decode(ids, skip_special_tokens=True)

    def transformers(self, lines, beam):
        out = []
        for batch in self.batches(lines):
            ids = self.network.generate(
                **batch, num_beams=beam, do_sample=False, max_length=LENGTH + 1, forced_eos_token_id=self.end,
            )
            out += self.text(ids)
        return out

    def ctranslate2(self, lines, beam):
        translator = ctranslate2.Translator(str(self.folder / "ctranslate2"), intra_threads=1)
        folder = self.folder / "ctranslate2"
        file = next(path for path in (folder / "target_vocabulary.json", folder / "shared_vocabulary.json") if path.exists())
        vocabulary = json.loads(file.read_text())
        # The end of the source is not among the tokens: the exported configuration has CTranslate2 add it.
        found = translator.translate_batch(
            [self.tokenizer.tokenize(line) for line in lines], beam_size=beam, max_batch_size=BATCH, max_decoding_length=LENGTH,
        )
        places = {token: place for place, token in enumerate(vocabulary)}
        return self.text([[places[token] for token in one.hypotheses[0]] for one in found])

    def onnxruntime(self, lines):
        """Greedy search with the three graphs; and how far their logits are from those of transformers."""
        graphs = self.folder / "onnx"
        for path in sorted(graphs.glob("*.onnx")):
            onnx.checker.check_model(path, full_check=True)
        encoder, decoder, step = (
            onnxruntime.InferenceSession(graphs / f"{name}.onnx")
            for name in ("encoder_model", "decoder_model", "decoder_with_past_model")
        )
        # transformers has its own epsilon in the norms; the graphs have the model's.
        for module in self.network.modules():
            if isinstance(module, torch.nn.LayerNorm):
                module.eps = self.epsilon
        out, difference = [], 0.0
        for batch in self.batches(lines):
            ids, mask = batch["input_ids"].numpy(), batch["attention_mask"].numpy()
            (hidden,) = encoder.run(None, {"input_ids": ids, "attention_mask": mask})
            tokens = self.search(decoder, step, hidden, mask)
            out += self.text(tokens)
            targets = np.concatenate([np.full((len(ids), 1), self.start), tokens[:, :-1]], 1)
            (logits,) = decoder.run(["logits"], {
                "input_ids": targets, "encoder_attention_mask": mask, "encoder_hidden_states": hidden,
            })
            with torch.no_grad():
                reference = self.network(**batch, decoder_input_ids=torch.tensor(targets)).logits.numpy()
            difference = max(difference, float(np.abs(logits - reference).max()))
        return out, difference

    def search(self, decoder, step, hidden, mask):
        inputs = {"input_ids": np.full((len(hidden), 1), self.start), "encoder_hidden_states": hidden}
        session, past, tokens, done = decoder, {}, [], np.zeros(len(hidden), bool)
        while not done.all() and len(tokens) < LENGTH:
            names = [output.name for output in session.get_outputs()]
            outputs = dict(zip(names, session.run(None, {**inputs, **past, "encoder_attention_mask": mask})))
            logits = outputs.pop("logits")[:, -1]
            past.update({name.replace("present", "past_key_values"): value for name, value in outputs.items()})
            logits[:, self.forbidden] = -np.inf
            newest = np.where(done, self.end, logits.argmax(-1))
            if len(tokens) + 1 == LENGTH:
                newest[:] = self.end
            tokens.append(newest)
            done |= newest == self.end
            session, inputs = step, {"input_ids": newest[:, None]}
        return np.array(tokens).T


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("attentive")
    parser.add_argument("text", type=Path)
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--checked", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    text = options.text.read_text(encoding="utf-8").splitlines()
    work = Path(tempfile.mkdtemp())
    (work / "models").mkdir()
    print("sentences equal to ours, and the largest difference of logits between onnxruntime and transformers\n")
    print("| | transformers | beam 4 | CTranslate2 | beam 4 | onnxruntime | logits |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, model, lines in models(options.attentive, work / "models", text):
        lines = lines[: options.sentences]
        folder = work / name
        folder.mkdir()
        peers = Peers(options.attentive, model, folder)
        settings = {"max_length": LENGTH, "length_penalty": 1.0}
        hugging_face = searching(model, folder / "as-transformers", beam_rule="full", at_limit="force_end", **settings)
        ctranslate = searching(
            model, folder / "as-ctranslate2", beam_rule="full_until_enough", at_limit="cut", min_length=1, early_end="left_out",
            forbidden=[], **settings,
        )

        def count(found, model, beam):
            return sum(a == b for a, b in zip(found, ours(options.attentive, model, lines, beam)))

        ways = ((peers.transformers, hugging_face), (peers.ctranslate2, ctranslate))
        row = [count(way(lines, beam), model, beam) for way, model in ways for beam in (1, 4)]
        translated, difference = peers.onnxruntime(lines)
        row.append(count(translated, hugging_face, 1))
        print(f"| {name}, {len(lines)} sentences | {' | '.join(map(str, row))} | {difference:.1e} |", flush=True)
        if min(row[0], row[2], row[4]) < len(lines) or difference > TOLERANCE:
            failures.append(name)
    if options.checked:
        script = "crates/convert/tests/peers/check_exports.py"
        command = [sys.executable, script, options.attentive, work / "models/de-en", options.text, str(options.sentences)]
        print(f"\n{script}, de-en:\n", flush=True)
        if subprocess.run(command, stderr=subprocess.DEVNULL).returncode:
            failures.append(script)
    sys.exit(f"greedy translations or logits differ: {', '.join(failures)}" if failures else 0)


main()
