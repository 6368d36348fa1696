"""An OPUS-MT model in transformers, in CTranslate2 and here, same weights: called by `benchmarks/run opus-mt`.

    opus_mt.py ATTENTIVE TEXT [--quick]

The model has the size of OPUS-MT's (512 wide, 6 + 6 layers, swish) and random weights, so that nothing must be
downloaded; TEXT gives its SentencePiece vocabulary and the sentences. Targets end after 32 tokens, with every
program. Text to text, f32, two threads, each program with its best batch size, without loading: of ours a process for one
word and one token is timed, too, and its time is taken away. Contenders take turns, medians are compared.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import ctranslate2
import sentencepiece
import torch
from transformers import GenerationConfig, MarianConfig, MarianMTModel, MarianTokenizer

LENGTH = 32


def make(folder, text):
    """A model folder as the hub has it."""
    prefix = os.path.join(folder, "spm")
    sentencepiece.SentencePieceTrainer.train(
        input=text, model_prefix=prefix, vocab_size=4000, character_coverage=1.0, bos_id=-1, pad_id=-1, unk_id=0, eos_id=1,
    )
    pieces = sentencepiece.SentencePieceProcessor(model_file=prefix + ".model")
    tokens = ["</s>", "<unk>"] + [pieces.id_to_piece(i) for i in range(len(pieces)) if not pieces.is_control(i) and not pieces.is_unknown(i)]
    tokens += [f"<extra {i}>" for i in range(32000 - 1 - len(tokens))] + ["<pad>"]
    with open(os.path.join(folder, "vocab.json"), "w") as file:
        json.dump({token: i for i, token in enumerate(tokens)}, file)
    for name in ("source.spm", "target.spm"):
        with open(prefix + ".model", "rb") as source, open(os.path.join(folder, name), "wb") as target:
            target.write(source.read())
    with open(os.path.join(folder, "tokenizer_config.json"), "w") as file:
        json.dump({"tokenizer_class": "MarianTokenizer", "source_lang": "de", "target_lang": "en"}, file)
    pad = len(tokens) - 1
    torch.manual_seed(1)
    config = MarianConfig(
        vocab_size=len(tokens), d_model=512, encoder_layers=6, decoder_layers=6, encoder_ffn_dim=2048,
        decoder_ffn_dim=2048, encoder_attention_heads=8, decoder_attention_heads=8, activation_function="swish",
        scale_embedding=True, pad_token_id=pad, eos_token_id=0, decoder_start_token_id=pad, forced_eos_token_id=0,
        max_position_embeddings=512, max_length=LENGTH, num_beams=1, bad_words_ids=[[pad]], init_std=0.05,
    )
    model = MarianMTModel(config).eval()
    # Without this the end of a sentence may come by chance, and targets would differ in length.
    model.final_logits_bias[0, 0] = -1e4
    model.generation_config = GenerationConfig(
        max_length=LENGTH, num_beams=1, bad_words_ids=[[pad]], pad_token_id=pad, eos_token_id=0,
        decoder_start_token_id=pad, forced_eos_token_id=0,
    )
    model.save_pretrained(folder)
    return model


def main():
    attentive, text = sys.argv[1:3]
    quick = "--quick" in sys.argv
    rounds, count = (1, 32) if quick else (3, 64)
    lines = open(text, encoding="utf-8").read().splitlines()[:count]
    torch.set_num_threads(2)
    work = tempfile.mkdtemp()
    folder, imported, converted = (os.path.join(work, name) for name in ("opus", "ours", "ct2"))
    os.mkdir(folder)
    network = make(folder, text)
    tokenizer = MarianTokenizer.from_pretrained(folder)
    subprocess.run([attentive, "import", folder, "--out", imported, "--quiet"], check=True)
    ctranslate2.converters.TransformersConverter(folder).convert(converted)
    translator = ctranslate2.Translator(converted, compute_type="float32", inter_threads=1, intra_threads=2)

    def hugging_face(beam, batch):
        out = []
        for start in range(0, len(lines), batch):
            inputs = tokenizer(lines[start : start + batch], return_tensors="pt", padding=True)
            with torch.no_grad():
                ids = network.generate(**inputs, num_beams=beam)
            out += tokenizer.batch_decode(ids, skip_special_tokens=True)
        return out

    def peer(beam, batch):
        tokens = [tokenizer.convert_ids_to_tokens(tokenizer(line).input_ids) for line in lines]
        found = translator.translate_batch(
            tokens, beam_size=beam, max_batch_size=batch, max_decoding_length=LENGTH - 1, length_penalty=1 if beam > 1 else 0,
        )
        ids = [tokenizer.convert_tokens_to_ids(one.hypotheses[0]) for one in found]
        return tokenizer.batch_decode(ids, skip_special_tokens=True)

    def ours(beam, _, lines=lines, extra=()):
        command = [attentive, "translate", "--model", imported, "--beam", str(beam), "--whole-lines", "--quiet",
                   "--threads", "2", "--allow-repetition", *extra]
        done = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    def start(beam, _):
        return ours(beam, 0, lines=["Ja"], extra=["--max-length", "1"])

    for beam in (1, 4):
        contenders = [("transformers", hugging_face, (8, 32)), ("ctranslate2", peer, (8, 32)), ("attentive", ours, (0,)),
                      ("start", start, (0,))]
        times, texts = {}, {}
        for round in range(rounds + 1):
            for name, translate, batches in contenders:
                for batch in batches:
                    began = time.perf_counter()
                    texts[name] = translate(beam, batch)
                    times.setdefault((name, batch), []).append(time.perf_counter() - began)
        best = {}
        for (name, _), found in times.items():
            best[name] = min(best.get(name, 1e9), statistics.median(found[1:]))
        whole = best["attentive"]
        best["attentive"] = whole - best["start"]
        equal = sum(a == b for a, b in zip(texts["attentive"], texts["transformers"]))
        print(
            f"beam {beam}: {len(lines) / best['attentive']:.1f} sentences/s; {best['transformers'] / best['attentive']:.2f} "
            f"times transformers, {best['ctranslate2'] / best['attentive']:.2f} times CTranslate2 (with our loading "
            f"{best['transformers'] / whole:.2f} and {best['ctranslate2'] / whole:.2f}); "
            f"{equal} of {len(lines)} equal to transformers"
        )


main()
