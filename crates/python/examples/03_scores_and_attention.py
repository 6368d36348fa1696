"""Scores as sacreBLEU computes them, and a look at the attention weights."""

from attentive import Translator
from attentive.score import BLEU, CHRF

translator = Translator("de-en")
sources = ["Ein Hund rennt.", "Zwei Katzen schlafen."]
references = [["A dog is running.", "Two cats are sleeping."]]

hypotheses = [translation.text for translation in translator.translate(sources)]
for metric in (BLEU(), CHRF(word_order=2)):
    print(metric.corpus_score(hypotheses, references), metric.get_signature())

attention = translator.attention(sources[0])
last_layer = attention.cross.tolist()[-1]
for row, token in enumerate(attention.target_tokens):
    mean = [sum(head[row][column] for head in last_layer) / len(last_layer) for column in range(len(last_layer[0][0]))]
    print(f"{token:>12} looks at {attention.source_tokens[mean.index(max(mean))]}")
