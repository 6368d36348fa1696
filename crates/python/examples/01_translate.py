"""Translating: one text, many, with alternatives and terms, and a stream without an end."""

from attentive import Translator

translator = Translator("de-en")

print(translator.translate("Guten Morgen! Wie geht es dir?").text)

for translation in translator.translate(["Ein Hund rennt.", "Zwei Katzen schlafen."], beam=8, n_best=3):
    print(f"{translation.score:.2f}", translation.text, [other.text for other in translation.alternatives])

print(translator.translate("Wo ist der Bahnhof?", glossary={"Bahnhof": "depot"}).text)
print(translator.translate("<b>Guten</b> Morgen!", html=True).text)

lines = (f"Ich habe {count} Bücher." for count in range(2, 5))
for translation in translator.translate_stream(lines):
    print(translation)
