"""What transformers, onnxruntime and CTranslate2 make of a model that attentive exported.

    python check_exports.py ATTENTIVE MODEL TEXT [LINES]

ATTENTIVE is the program, MODEL a model directory with norms before the sub-layers or after them (f32, subword
tokenizer), TEXT a file of source sentences. Exports the model in every format, translates with each program (greedy
search) and compares with attentive's own translations; ONNX graphs are also held to the logits of transformers, with
the norms of the exported model. Ends with an error where something differs.

Needs: pip install torch transformers onnx onnxruntime ctranslate2 numpy
"""

import json
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

BOS, EOS, PAD = 0, 1, 2
failures = []


def check(what, holds, found):
    print(f"{'ok  ' if holds else 'FAIL'} {what}: {found}")
    if not holds:
        failures.append(what)


def ours(attentive, model, lines):
    command = [attentive, "translate", "--model", model, "--beam", "1", "--quiet"]
    done = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def same(what, found, expected, least):
    equal = sum(a == b for a, b in zip(found, expected))
    check(what, equal >= least * len(expected), f"{equal} of {len(expected)} sentences equal")


def with_past(folder, tokenizer, batch):
    """Greedy search with the three graphs."""
    encoder, decoder, step = (
        onnxruntime.InferenceSession(folder / f"{name}.onnx")
        for name in ("encoder_model", "decoder_model", "decoder_with_past_model")
    )
    ids, mask = batch["input_ids"].numpy(), batch["attention_mask"].numpy()
    (hidden,) = encoder.run(None, {"input_ids": ids, "attention_mask": mask})
    inputs = {"input_ids": np.full((len(ids), 1), BOS), "encoder_hidden_states": hidden}
    session, past, tokens, done = decoder, {}, [], np.zeros(len(ids), bool)
    for _ in range(80):
        names = [output.name for output in session.get_outputs()]
        outputs = dict(zip(names, session.run(None, {**inputs, **past, "encoder_attention_mask": mask})))
        logits = outputs.pop("logits")[:, -1]
        past.update({name.replace("present", "past_key_values"): value for name, value in outputs.items()})
        logits[:, [BOS, PAD]] = -np.inf
        newest = np.where(done, PAD, logits.argmax(-1))
        tokens.append(newest)
        done |= newest == EOS
        if done.all():
            break
        session, inputs = step, {"input_ids": newest[:, None]}
    return hidden, tokenizer.batch_decode(np.array(tokens).T, skip_special_tokens=True)


def main():
    attentive, model, text, *count = sys.argv[1:]
    lines = Path(text).read_text().splitlines()[: int(count[0]) if count else 50]
    folder = Path(tempfile.mkdtemp())
    run = lambda *command: subprocess.run([attentive, *map(str, command)], check=True, stdout=subprocess.DEVNULL)
    run("quantize", model, "--out", folder / "int8")
    for name, source in (("f32", model), ("int8", folder / "int8")):
        for kind in ("huggingface", "onnx", "ctranslate2"):
            run("export", source, "--format", kind, "--out", folder / f"{kind}-{name}")
    expected = {"f32": ours(attentive, model, lines), "int8": ours(attentive, str(folder / "int8"), lines)}

    tokenizer = AutoTokenizer.from_pretrained(folder / "huggingface-f32")
    network = AutoModelForSeq2SeqLM.from_pretrained(folder / "huggingface-f32").eval()
    batch = tokenizer(lines, return_tensors="pt", padding=True)
    batch = {key: batch[key] for key in ("input_ids", "attention_mask")}
    generated = network.generate(**batch, num_beams=1, do_sample=False, max_new_tokens=80)
    same("transformers", tokenizer.batch_decode(generated, skip_special_tokens=True), expected["f32"], 1.0)

    # transformers has its own epsilon in the norms; the graphs have the model's.
    epsilon = json.loads((folder / "huggingface-f32/config.json").read_text())["attentive"]["config"]["norm_epsilon"]
    for module in network.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = epsilon
    for name, tolerance in (("f32", 1e-4), ("int8", None)):
        graphs = folder / f"onnx-{name}"
        for path in sorted(graphs.glob("*.onnx")):
            onnx.checker.check_model(path, full_check=True)
        hidden, translated = with_past(graphs, tokenizer, batch)
        # In int8 the sentences of a batch share one scale of each activation; our rows have scales of their own.
        same(f"onnxruntime {name}", translated, expected[name], 1.0 if name == "f32" else 0.8)
        targets = generated[:, :12]
        session = onnxruntime.InferenceSession(graphs / "decoder_model.onnx")
        (logits,) = session.run(["logits"], {
            "input_ids": targets.numpy(),
            "encoder_attention_mask": batch["attention_mask"].numpy(),
            "encoder_hidden_states": hidden,
        })
        with torch.no_grad():
            reference = network(**batch, decoder_input_ids=targets).logits.numpy()
        if tolerance:
            difference = np.abs(logits - reference).max()
            check(f"onnxruntime {name} logits", difference < tolerance, f"largest difference {difference:.2e}")

    for name in ("f32", "int8"):
        translator = ctranslate2.Translator(str(folder / f"ctranslate2-{name}"), intra_threads=1)
        tokens = [tokenizer.convert_ids_to_tokens(tokenizer(line).input_ids)[:-1] for line in lines]
        results = translator.translate_batch(tokens, beam_size=1)
        ids = [tokenizer.convert_tokens_to_ids(result.hypotheses[0]) for result in results]
        found = tokenizer.batch_decode(ids, skip_special_tokens=True)
        same(f"ctranslate2 {name}", found, expected[name], 1.0 if name == "f32" else 0.9)
    sys.exit(f"failed: {', '.join(failures)}" if failures else 0)


main()
