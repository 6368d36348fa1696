"""An OPUS-MT model in transformers, in CTranslate2 and here, same weights: called by `benchmarks/run opus-mt`.

    opus_mt.py ATTENTIVE TEXT [--size base|tc-big] [--sentences N] [--rounds N] [--threads N] [--quick]
    opus_mt.py ATTENTIVE TEXT --equal [--size base|tc-big] [--sentences N] [--threads N]

The model has the size of OPUS-MT's and random weights, so that nothing must be downloaded; TEXT gives its SentencePiece
vocabulary and the sentences. `base` is 512 wide (feed-forward 2048, 8 heads, 6 + 6 layers, swish, f32), `tc-big` 1024
wide (4096, 16 heads, 6 + 6 layers, relu, saved in f16). Every program computes in f32. Targets end after 32 tokens, with
every program.

The first form takes times: text to text, two threads, each program with its best batch size, without loading. Of ours a
process for one word and one token is timed, too, and its time is taken away. Contenders take turns, medians are compared.
Ours runs twice: in plain f32, and with the output layer in int8 and in f32 again for the tokens that may be the best
(`--compute f32-int8-output`), which in greedy search gives the tokens of f32 by proof.

The second form counts which of 200 translations are those of transformers, greedy and with a beam of 4, and how far our
log-probability of a translation is from the one that transformers gives to the same tokens. A difference of a whole
translation is the sum over its tokens, so that it bounds what a single one can be off on average.
"""

import argparse
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
SIZES = {
    "base": {"d_model": 512, "ffn": 2048, "heads": 8, "activation": "swish", "half": False, "scale": 0.5},
    "tc-big": {"d_model": 1024, "ffn": 4096, "heads": 16, "activation": "relu", "half": True, "scale": 0.3},
}


def make(folder, text, size):
    """A model folder as the hub has it, and the model in f32 with the weights that were saved."""
    size = SIZES[size]
    prefix = os.path.join(folder, "spm")
    sentencepiece.SentencePieceTrainer.train(
        input=text, model_prefix=prefix, vocab_size=4000, minloglevel=2, character_coverage=1.0, bos_id=-1, pad_id=-1, unk_id=0, eos_id=1,
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
        vocab_size=len(tokens), d_model=size["d_model"], encoder_layers=6, decoder_layers=6, encoder_ffn_dim=size["ffn"],
        decoder_ffn_dim=size["ffn"], encoder_attention_heads=size["heads"], decoder_attention_heads=size["heads"],
        activation_function=size["activation"], scale_embedding=True, pad_token_id=pad, eos_token_id=0,
        decoder_start_token_id=pad, forced_eos_token_id=0, max_position_embeddings=512, max_length=LENGTH, num_beams=1,
        bad_words_ids=[[pad]], init_std=0.05,
    )
    model = MarianMTModel(config).eval()
    vary(model, size["scale"])
    # Without this the end of a sentence may come by chance, and targets would differ in length.
    model.final_logits_bias[0, 0] = -1e4
    model.generation_config = GenerationConfig(
        max_length=LENGTH, num_beams=1, bad_words_ids=[[pad]], pad_token_id=pad, eos_token_id=0,
        decoder_start_token_id=pad, forced_eos_token_id=0,
    )
    if not size["half"]:
        model.save_pretrained(folder)
        return model
    model.half().save_pretrained(folder)
    return MarianMTModel.from_pretrained(folder, dtype=torch.float32).eval()


def vary(model, scale):
    """Makes the next token depend on the ones before it.

    With the weights as they are drawn, what a decoder adds to its inputs drowns them, or the tied embeddings answer a token
    with itself: a translation is then one token, thirty times, which any faulty search finds. With smaller layers, and random
    signs in the last norm, most tokens of a translation are different ones.
    """
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "layers." in name and name.endswith("weight") and "norm" not in name:
                parameter.mul_(scale)
        last = model.model.decoder.layers[-1].final_layer_norm.weight
        last.copy_(torch.randint(0, 2, last.shape) * 2.0 - 1.0)


class Programs:
    """The same model in every program; each way to translate takes the size of the beam and that of the batch."""

    def __init__(self, options, lines):
        self.attentive, self.threads, self.lines = options.attentive, options.threads, lines
        torch.set_num_threads(options.threads)
        work = tempfile.mkdtemp()
        self.folder, self.imported = os.path.join(work, "opus"), os.path.join(work, "ours")
        converted = os.path.join(work, "ct2")
        os.mkdir(self.folder)
        self.network = make(self.folder, options.text, options.size)
        self.tokenizer = MarianTokenizer.from_pretrained(self.folder)
        subprocess.run([self.attentive, "import", self.folder, "--out", self.imported, "--quiet"], check=True)
        ctranslate2.converters.TransformersConverter(self.folder).convert(converted)
        self.translator = ctranslate2.Translator(
            converted, compute_type="float32", inter_threads=1, intra_threads=options.threads,
        )

    def generated(self, beam, batch):
        """The ids of the sources and of the translations of transformers, batch by batch."""
        for start in range(0, len(self.lines), batch):
            inputs = self.tokenizer(self.lines[start : start + batch], return_tensors="pt", padding=True)
            with torch.no_grad():
                yield inputs, self.network.generate(**inputs, num_beams=beam)

    def hugging_face(self, beam, batch):
        out = []
        for _, ids in self.generated(beam, batch):
            out += self.tokenizer.batch_decode(ids, skip_special_tokens=True)
        return out

    def peer(self, beam, batch, length=LENGTH - 1):
        tokens = [self.tokenizer.convert_ids_to_tokens(self.tokenizer(line).input_ids) for line in self.lines]
        found = self.translator.translate_batch(
            tokens, beam_size=beam, max_batch_size=batch, max_decoding_length=length, length_penalty=1 if beam > 1 else 0,
        )
        ids = [self.tokenizer.convert_tokens_to_ids(one.hypotheses[0]) for one in found]
        return self.tokenizer.batch_decode(ids, skip_special_tokens=True)

    def ours(self, beam, _, lines=None, extra=()):
        command = [self.attentive, "translate", "--model", self.imported, "--beam", str(beam), "--whole-lines", "--quiet",
                   "--threads", str(self.threads), "--allow-repetition", *extra]
        text = "\n".join(self.lines if lines is None else lines) + "\n"
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    def ours_int8_output(self, beam, _):
        return self.ours(beam, 0, extra=["--compute", "f32-int8-output"])

    def start(self, beam, _):
        return self.ours(beam, 0, lines=["Ja"], extra=["--max-length", "1"])

    def start_int8_output(self, beam, _):
        return self.ours(beam, 0, lines=["Ja"], extra=["--max-length", "1", "--compute", "f32-int8-output"])


def timed(programs, rounds):
    contenders = [
        ("transformers", programs.hugging_face, (8, 32)), ("ctranslate2", programs.peer, (8, 32)),
        ("attentive, f32", programs.ours, (0,)), ("attentive, int8 output layer with exact re-scoring", programs.ours_int8_output, (0,)),
        ("start of attentive, f32", programs.start, (0,)),
        ("start of attentive, int8 output layer with exact re-scoring", programs.start_int8_output, (0,)),
    ]
    count = len(programs.lines)
    for beam in (1, 4):
        times, texts = {}, {}
        for _ in range(rounds + 1):
            for name, translate, batches in contenders:
                for batch in batches:
                    began = time.perf_counter()
                    texts[name] = translate(beam, batch)
                    times.setdefault((name, batch), []).append(time.perf_counter() - began)
        best = {}
        for (name, _), found in times.items():
            best[name] = min(best.get(name, 1e9), statistics.median(found[1:]))
        print(f"beam {beam}: transformers {count / best['transformers']:.1f} sentences/s, CTranslate2 {count / best['ctranslate2']:.1f}")
        for name in [name for name in best if name.startswith("attentive")]:
            whole, alone = best[name], best[name] - best[f"start of {name}"]
            equal = sum(a == b for a, b in zip(texts[name], texts["transformers"]))
            print(
                f"  {name}: {count / alone:.1f} sentences/s; {best['transformers'] / alone:.2f} times transformers, "
                f"{best['ctranslate2'] / alone:.2f} times CTranslate2 (with our loading {best['transformers'] / whole:.2f} "
                f"and {best['ctranslate2'] / whole:.2f}); {equal} of {count} equal to transformers"
            )


def log_probability(network, inputs, ids):
    """What transformers gives to its own translations, without the last token, which is forced and not chosen."""
    with torch.no_grad():
        logits = network(**inputs, decoder_input_ids=ids[:, :-1]).logits.double()
    chosen = torch.log_softmax(logits, -1).gather(-1, ids[:, 1:, None])[:, :, 0]
    return chosen[:, :-1].sum(-1).tolist()


def equal(programs):
    count, chosen = len(programs.lines), LENGTH - 2
    for beam in (1, 4):
        texts, probabilities, tokens = [], [], []
        for inputs, ids in programs.generated(beam, 8):
            texts += programs.tokenizer.batch_decode(ids, skip_special_tokens=True)
            probabilities += log_probability(programs.network, inputs, ids)
            tokens += [len(set(row[1:-1])) for row in ids.tolist()]
        found = [json.loads(line) for line in programs.ours(beam, 0, extra=["--json"])]
        same = [one["text"] == text for one, text in zip(found, texts)]
        difference = max(abs(one["log_prob"] - theirs) for one, theirs, same in zip(found, probabilities, same) if same)
        print(
            f"beam {beam}: {sum(same)} of {count} equal to transformers ({len(set(texts))} of them different, of {chosen} tokens "
            f"{statistics.mean(tokens):.0f}); log-probabilities of translations ({min(probabilities):.0f} to "
            f"{max(probabilities):.0f}) differ by at most {difference:.1e}, {difference / chosen:.1e} for each token"
        )
        rounded = sum(a == b for a, b in zip(programs.ours_int8_output(beam, 0), texts))
        # CTranslate2 chooses the token at whose place the others end: it is told to end before it.
        peer = sum(a == b for a, b in zip(programs.peer(beam, 8, LENGTH - 2), texts))
        print(f"  with the output layer in int8 and exact re-scoring {rounded}; CTranslate2 {peer} equal to transformers", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("attentive")
    parser.add_argument("text")
    parser.add_argument("--size", choices=sorted(SIZES), default="base")
    parser.add_argument("--equal", action="store_true", help="compare translations and probabilities instead of times")
    parser.add_argument("--sentences", type=int, help="how many [default: 64 for times, 200 with --equal]")
    parser.add_argument("--rounds", type=int, help="how often each is timed, after one that does not count [default: 3]")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="32 sentences, one round")
    options = parser.parse_args()
    count = options.sentences or (200 if options.equal else 32 if options.quick else 64)
    with open(options.text, encoding="utf-8") as file:
        lines = file.read().splitlines()[:count]
    programs = Programs(options, lines)
    if options.equal:
        equal(programs)
    else:
        timed(programs, options.rounds or (1 if options.quick else 3))


main()
