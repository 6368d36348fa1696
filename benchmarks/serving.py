"""Serving beside a plain FastAPI + CTranslate2 server, same weights, same beam: called by `benchmarks/run serving`.

    serving.py compare ATTENTIVE LOAD MODEL DATA [--quick] [--json FILE]    requests/s, p50, p99 by number of clients
    serving.py serve DIR TOKENIZER PORT                                     the peer

Both get single sentences of Multi30k's test set over loopback, each client one after the other on a connection of its
own, from the same load generator (crates/server/benches/serving). Both compute in int8 on all cores, beam 4, and
the cache of recent sentences is off. The two servers take turns.
"""

import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, os.path.dirname(__file__))

CLIENTS = (1, 8, 64, 256)
PAUSE = 2.0  # What the peer's thread pool has begun goes on, and CTranslate2's threads spin for a while after it.


def serve(folder, tokenizer, port):
    """As the documentation of both would have it: a handler that calls the translator, in FastAPI's thread pool."""
    import ctranslate2
    import uvicorn
    from fastapi import FastAPI
    from pydantic import BaseModel
    from tokenizers import Tokenizer
    from translation import SPECIALS

    cores = os.cpu_count()
    translator = ctranslate2.Translator(folder, compute_type="int8", inter_threads=cores, intra_threads=1)
    tokenizer = Tokenizer.from_file(tokenizer)
    app = FastAPI()

    class Request(BaseModel):
        q: str
        source: str
        target: str

    name = lambda token: SPECIALS[token] if token < len(SPECIALS) else str(token)
    number = lambda token: SPECIALS.index(token) if token in SPECIALS else int(token)

    @app.post("/translate")
    def translate(request: Request):
        # Our tokenizers put a space before the first word.
        ids = tokenizer.encode(" " + request.q, add_special_tokens=False).ids
        tokens = [name(token) for token in ids] + ["</s>"]
        found = translator.translate_batch([tokens], beam_size=4, length_penalty=1.0)[0].hypotheses[0]
        return {"translatedText": tokenizer.decode([number(token) for token in found]).strip()}

    @app.get("/ready")
    def ready():
        return {}

    uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="warning")


def wait(port):
    for _ in range(600):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=1)
            return
        except OSError:
            time.sleep(0.1)
    sys.exit(f"the server on port {port} does not start")


def ask(port, text):
    body = json.dumps({"q": text, "source": "de", "target": "en"}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/translate", body, {"content-type": "application/json"})
    return json.load(urllib.request.urlopen(request))["translatedText"]


def compare(attentive, load, model, data, *options):
    from translation import convert

    quick = "--quick" in options
    seconds = "3" if quick else "10"
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = os.path.join(folder, "ours"), os.path.join(folder, "theirs")
        sentences = os.path.join(folder, "sentences")
        with gzip.open(os.path.join(data, "test_2016_flickr.de.gz"), "rb") as packed, open(sentences, "wb") as file:
            file.write(packed.read())
        subprocess.run([attentive, "--quiet", "quantize", model, "--out", ours], check=True)
        convert(model, theirs)
        tokenizer = os.path.join(model, "tokenizer.json")
        servers = {
            "attentive": (5801, [attentive, "--quiet", "serve", "--port", "5801", "--cache", "0", "--model", f"de-en={ours}"]),
            "FastAPI + CTranslate2": (5802, [sys.executable, __file__, "serve", theirs, tokenizer, "5802"]),
        }
        rows, running = [], []
        try:
            for port, command in servers.values():
                running.append(subprocess.Popen(command))
                wait(port)
            with open(sentences) as file:
                first = [next(file).strip() for _ in range(20)]
            same = sum(ask(5801, text) == ask(5802, text) for text in first)
            print(f"{same} of {len(first)} translations are the same")
            for clients in CLIENTS[::2] if quick else CLIENTS:
                for name, (port, _) in servers.items():
                    time.sleep(PAUSE)
                    out = subprocess.run([load, "load", f"127.0.0.1:{port}", str(clients), seconds, sentences], check=True, capture_output=True, text=True)
                    rows.append({"server": name, **json.loads(out.stdout)})
                    row = rows[-1]
                    print(f"{clients:4} clients  {name:22}  {row['per_second']:8.1f}/s  p50 {row['p50_ms'] or 0:8.1f} ms  p99 {row['p99_ms'] or 0:8.1f} ms  {row['statuses']}", flush=True)
        finally:
            for process in running:
                process.terminate()
                process.wait()
    for mine, other in zip(rows[::2], rows[1::2]):
        speed, tail = mine["per_second"] / other["per_second"], mine["p99_ms"] / other["p99_ms"]
        print(f"{mine['clients']:4} clients: {speed:.2f} times the requests per second, p99 {tail:.2f} times as long")
    if "--json" in options:
        with open(options[options.index("--json") + 1], "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    {"compare": compare, "serve": serve}[sys.argv[1]](*sys.argv[2:])
