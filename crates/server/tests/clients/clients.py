"""Real clients of LibreTranslate and DeepL, unmodified, against `attentive serve` with the built-in models.

    python -m venv .venv && .venv/bin/pip install libretranslatepy deep-translator deepl requests
    .venv/bin/pip install --no-deps argostranslate
    .venv/bin/python clients.py target/debug/attentive

Starts the server on a free port, asks with each client, and ends with 1 if an answer is wrong.
"""

import importlib.util
import io
import os
import signal
import site
import socket
import subprocess
import sys
import time
import urllib.request

TEXT = "Guten Morgen! Wie geht es dir?"


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def check(name, condition, found):
    print("ok  " if condition else "FAIL", name, "->", repr(found)[:120], flush=True)
    return condition


def argos_api():
    """argos-translate's client alone: the package around it would bring torch."""
    for folder in site.getsitepackages():
        path = os.path.join(folder, "argostranslate", "apis.py")
        if os.path.exists(path):
            spec = importlib.util.spec_from_file_location("argos_apis", path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    sys.exit("argostranslate is not installed")


def ask_all(url, expected):
    from libretranslatepy import LibreTranslateAPI

    client = LibreTranslateAPI(url + "/")
    yield check("libretranslatepy translate", client.translate(TEXT, "de", "en") == expected, client.translate(TEXT, "de", "en"))
    yield check("libretranslatepy detect", client.detect(TEXT)[0]["language"] == "de", client.detect(TEXT))
    yield check("libretranslatepy languages", {"de", "en"} == {one["code"] for one in client.languages()}, client.languages())

    argos = argos_api().LibreTranslateAPI(url + "/")
    yield check("argos translate", argos.translate(TEXT, "de", "en") == expected, argos.translate(TEXT, "de", "en"))
    yield check("argos languages", len(argos.languages()) == 2, argos.languages())
    yield check("argos detect", argos.detect(TEXT)[0]["language"] == "de", argos.detect(TEXT))

    from deep_translator import LibreTranslator

    deep = LibreTranslator(source="de", target="en", custom_url=url + "/", api_key="any")
    yield check("deep-translator", deep.translate(TEXT) == expected, deep.translate(TEXT))

    import requests

    # As Weblate and Mastodon ask.
    answer = requests.post(url + "/translate", json={"q": [TEXT, "Ja."], "source": "auto", "target": "en", "format": "text", "api_key": ""}).json()
    yield check("a list as in Weblate", answer["translatedText"][0] == expected and len(answer["detectedLanguage"]) == 2, answer)

    import deepl

    client = deepl.DeepLClient("any-key", server_url=url, send_platform_info=False)
    found = client.translate_text([TEXT, "Ja."], source_lang="DE", target_lang="EN-US")
    yield check("deepl translate_text", found[0].text == expected and found[0].billed_characters == len(TEXT), found[0].text)
    found = client.translate_text(TEXT, target_lang="EN-GB", split_sentences="1", formality="prefer_less", model_type="latency_optimized")
    yield check("deepl detection", found.detected_source_lang == "DE" and found.text == expected, found.text)
    sources, targets = client.get_source_languages(), client.get_target_languages()
    yield check("deepl languages", {one.code for one in targets} == {"DE", "EN-GB", "EN-US"} and len(sources) == 2, targets)
    usage = client.get_usage()
    yield check("deepl usage", usage.character.count > 0 and not usage.any_limit_reached, str(usage))
    translator = deepl.Translator("any-key", server_url=url)
    pairs = translator.get_glossary_languages()
    yield check("deepl glossary languages", len(pairs) == 2, pairs)
    glossary = translator.create_glossary("mine", "DE", "EN", {"Haus": "mansion", "Hund": "hound"})
    yield check("deepl glossary", glossary.entry_count == 2 and glossary.ready, glossary.creation_time)
    yield check("deepl entries", translator.get_glossary_entries(glossary) == {"Haus": "mansion", "Hund": "hound"}, "")
    yield check("deepl list", [one.glossary_id for one in translator.list_glossaries()] == [glossary.glossary_id], "")
    translator.delete_glossary(glossary)
    yield check("deepl delete", translator.list_glossaries() == [], "")
    try:
        translator.translate_text(TEXT, target_lang="FR")
        yield check("deepl refuses", False, "no error")
    except deepl.DeepLException as error:
        yield check("deepl refuses", "target_lang" in str(error), error)
    out = io.BytesIO()
    client.translate_document(io.BytesIO(TEXT.encode()), out, source_lang="DE", target_lang="EN-US", filename="letter.txt")
    yield check("deepl document", out.getvalue().decode() == expected, out.getvalue())


def main(binary):
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    expected = subprocess.run([binary, "translate", "--from", "de", TEXT], capture_output=True, text=True, check=True).stdout.strip()
    server = subprocess.Popen([binary, "serve", "--port", str(port)])
    try:
        for _ in range(200):
            try:
                urllib.request.urlopen(url + "/ready")
                break
            except OSError:
                time.sleep(0.05)
        results = list(ask_all(url, expected))
    finally:
        server.send_signal(signal.SIGTERM)
        code = server.wait(timeout=60)
    print(f"{sum(results)} of {len(results)} are right; the server ended with {code}")
    sys.exit(0 if all(results) and code == 0 else 1)


if __name__ == "__main__":
    main(sys.argv[1])
