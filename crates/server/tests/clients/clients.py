"""Real clients of LibreTranslate and DeepL, unmodified, against `attentive serve` with the built-in models.

    clients.py ATTENTIVE FOLDER

`run` beside this file installs what is needed and calls it: this Python has libretranslatepy, argostranslate, deep-translator,
deepl, requests and schemathesis, FOLDER has npm's `translate`. It starts the server on a free port, asks with each client, runs
the curl lines of README and docs/serving.md and schemathesis over the OpenAPI document, and ends with 1 if anything is wrong.
"""

import importlib.util
import io
import json
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


def ask_npm(url, expected, folder):
    """npm's `translate` asks LibreTranslate's API with JSON."""
    script = f"""
        import translate from "translate";
        translate.engine = "libre"; translate.url = "{url}/translate"; translate.from = "de";
        console.log(await translate({json.dumps(TEXT)}, "en"));
        try {{ await translate("Ja.", "fr"); }} catch (error) {{ console.log(error.message); }}
    """
    path = os.path.join(folder, "ask.mjs")
    with open(path, "w") as file:
        file.write(script)
    found = subprocess.run(["node", path], capture_output=True, text=True, cwd=folder)
    lines = found.stdout.splitlines() or [found.stderr]
    yield check("npm translate", lines[0] == expected, lines[0])
    yield check("npm translate refuses", "fr is not supported" in lines[-1], lines[-1])


def ask_curl(url):
    """The lines that people copy. `# ...` after a line is a part of its answer."""
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../..")
    for name in ("README.md", "docs/serving.md"):
        with open(os.path.join(root, name)) as file:
            lines = [line.strip() for line in file if line.startswith("curl ")]
        for line in lines:
            command, _, part = line.partition(" # ")
            command = command.replace("localhost:5000", url.removeprefix("http://"))
            found = subprocess.run(["bash", "-c", command + " --fail-with-body"], capture_output=True, text=True)
            answer = found.stdout + found.stderr
            yield check(f"{name}: {line[:60]}", found.returncode == 0 and part.strip() in answer, answer)
        yield check(f"{name} has lines", len(lines) > 0, len(lines))


def ask_schemathesis(url, folder):
    """Requests made up from the OpenAPI document, a few seconds for each of its operations and always the same."""
    config = os.path.join(os.path.dirname(os.path.abspath(__file__)), "schemathesis.toml")
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", config, "run", url + "/v1/openapi.json"]
    limits = ["--max-examples", EXAMPLES, "--seed", "1", "--workers", "1", "--generation-database", "none", "--no-color"]
    found = subprocess.run(command + limits + ["--continue-on-failure"], capture_output=True, text=True, cwd=folder)
    if found.returncode != 0:
        print(found.stdout[-20_000:], found.stderr[-2000:])
    yield check("schemathesis", found.returncode == 0, found.stdout.strip().splitlines()[-1:])


EXAMPLES = os.environ.get("SCHEMATHESIS_EXAMPLES", "10")


def main(binary, folder):
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
        results = []
        for clients in (ask_all(url, expected), ask_npm(url, expected, folder), ask_curl(url), ask_schemathesis(url, folder)):
            results += clients
    finally:
        server.send_signal(signal.SIGTERM)
        code = server.wait(timeout=60)
    print(f"{sum(results)} of {len(results)} are right; the server ended with {code}")
    sys.exit(0 if all(results) and code == 0 else 1)


if __name__ == "__main__":
    main(*sys.argv[1:])
