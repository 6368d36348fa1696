"""The server under load, alone: called by `benchmarks/run serving-load [PART ...]`, all parts without one.

    start      milliseconds from the start of the process to its first translation
    batching   requests/s with sentences of many clients in one batch, and with one at a time
    overload   requests/s at ten times the load that it can hold, and which statuses
    marked     100,000 sentences, each with its mark: is each translation the one that `translate` gives?
    reload     SIGHUP again and again meanwhile
    drain      SIGTERM under load, 200 times: is every request answered?
    soak       ten minutes at ten times the load: memory
    hostile    clients that are slow, broken or malicious
    replicas   one and two processes with one thread each behind nginx

    serving_load.py ATTENTIVE LOAD DATA [PART ...] [--quick] [--f32 MODEL] [--count MARKED]

The built-in model translates captions of Multi30k from German, int8, the cache of recent sentences off. The clients
(crates/server/benches/serving) run on the same cores, where nothing else is said. Rounds are interleaved, medians are reported.
"""

import contextlib
import gzip
import json
import os
import random
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request


class Server:
    """The real program on a free port."""

    def __init__(self, attentive, *arguments, model="de-en", cores=None):
        pin = ["taskset", "-c", cores] if cores else []
        command = [attentive, "serve", "--port", "0", "--cache", "0", "--model", model, *arguments]
        self.began = time.perf_counter()
        self.process = subprocess.Popen(pin + command, stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        self.address = re.search(r"http://(\S+)", line).group(1)
        threading.Thread(target=lambda: [None for _ in self.process.stderr], daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
        self.code = self.process.wait(timeout=90)

    def get(self, path):
        return urllib.request.urlopen(f"http://{self.address}{path}", timeout=60).read().decode()

    def translate(self, text):
        body = json.dumps({"q": text, "source": "de", "target": "en"}).encode()
        request = urllib.request.Request(f"http://{self.address}/translate", body, {"content-type": "application/json"})
        return json.load(urllib.request.urlopen(request, timeout=60))["translatedText"]

    def memory(self):
        """Megabytes that are in use."""
        with open(f"/proc/{self.process.pid}/status") as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1)) / 1024

    def work(self):
        """Sentences that were searched for so far, and seconds of a core that the process has used."""
        sentences = re.search(r"^attentive_sentences_total (\d+)", self.get("/metrics"), re.M).group(1)
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return int(sentences), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def connect(self):
        host, port = self.address.split(":")
        return socket.create_connection((host, int(port)), timeout=60)


class Bench:
    def __init__(self, attentive, load, data, folder, options):
        self.attentive, self.load_program, self.folder = attentive, load, folder
        self.quick = "--quick" in options
        self.f32 = options[options.index("--f32") + 1] if "--f32" in options else None
        self.count = int(options[options.index("--count") + 1]) if "--count" in options else None
        self.sentences = os.path.join(folder, "sentences")
        with gzip.open(os.path.join(data, "test_2016_flickr.de.gz"), "rt") as packed, open(self.sentences, "w") as file:
            file.write(packed.read())

    def server(self, *arguments, **options):
        return Server(self.attentive, *arguments, **options)

    def client(self, *arguments, cores=None):
        pin = ["taskset", "-c", cores] if cores else []
        out = subprocess.run(pin + [self.load_program, *map(str, arguments)], check=True, capture_output=True, text=True)
        return json.loads(out.stdout)

    def load(self, server, clients, seconds, **options):
        """What the clients saw, and how many sentences the server translates in a second of one core."""
        before = server.work()
        row = self.client("load", server.address, clients, seconds, self.sentences, **options)
        sentences, used = (after - before for after, before in zip(server.work(), before))
        return {**row, "per_core_second": sentences / max(used, 0.01)}

    # --- Parts -------------------------------------------------------------------------------------------

    def start(self):
        ready, first = [], []
        for _ in range(5 if self.quick else 30):
            with self.server() as server:
                listening = time.perf_counter()
                server.translate("Guten Morgen!")
                first.append(1000 * (time.perf_counter() - server.began))
                ready.append(1000 * (listening - server.began))
        print(f"listening after {statistics.median(ready):.1f} ms, first translation after {statistics.median(first):.1f} ms (worst {max(first):.1f})")

    def batching(self):
        kinds = {"int8, beam 4": [], "int8, greedy": ["--beam", "1"]}
        if self.f32:
            kinds |= {f"f32, {name}": ["--beam", beam] for name, beam in (("beam 4", "4"), ("greedy", "1"))}
        for name, arguments in kinds.items():
            model = f"de-en={self.f32}" if name.startswith("f32") else "de-en"
            with self.server(*arguments, model=model) as together, self.server(*arguments, "--batch-size", "1", model=model) as alone:
                rounds = []
                for _ in range(1 if self.quick else 3):
                    rounds.append([self.load(server, 64, 5) for server in (together, alone)])
                for key in ("per_second", "per_core_second"):
                    pairs = [[row[key] for row in pair] for pair in rounds]
                    batched, single = (statistics.median(column) for column in zip(*pairs))
                    ratios = ", ".join(f"{a / b:.2f}" for a, b in pairs)
                    print(f"{name}, {key}: {batched:.0f} in batches, {single:.0f} one by one: {batched / single:.2f} (rounds {ratios})", flush=True)

    def overload(self):
        seconds = 5 if self.quick else 10
        for where, threads, own, others in (("shared cores", "2", None, None), ("a core each", "1", "0", "1")):
            with self.server("--threads", threads, cores=own) as server:
                peak = max(self.load(server, clients, seconds, cores=others)["per_second"] for clients in (32, 64, 128))
                print(f"{where}: peak {peak:.0f}/s", flush=True)
                runs = {f"{clients} clients": ("load", server.address, clients, seconds, self.sentences) for clients in (640, 2000)}
                runs["flood at 10x"] = ("flood", server.address, int(10 * peak), seconds, self.sentences)
                for name, run in runs.items():
                    rows = [self.client(*run, cores=others) for _ in range(1 if self.quick else 3)]
                    rows.sort(key=lambda row: row["per_second"])
                    row = rows[len(rows) // 2]
                    print(f"  {name}: {row['per_second']:.0f}/s, {row['per_second'] / peak:.0%} of the peak, p99 {row['p99_ms']:.0f} ms, {row['statuses']}", flush=True)

    def marked_sentences(self, count):
        """Captions with a web address each, which a translation keeps; and what `translate` makes of them."""
        with open(self.sentences) as file:
            captions = [line.strip() for line in file if line.strip()]
        marked, expected = os.path.join(self.folder, "marked"), os.path.join(self.folder, "expected")
        with open(marked, "w") as file:
            for number in range(count):
                file.write(f"{captions[number % len(captions)]} Siehe https://example.org/{number}\n")
        command = [self.attentive, "--quiet", "translate", "--model", "de-en", "--beam", "1", "-i", marked, "-o", expected]
        subprocess.run(command, check=True)
        with open(expected) as file:
            kept = sum(f"https://example.org/{number}" in line for number, line in enumerate(file))
        return marked, expected, kept

    def marked(self):
        count = self.count or (5000 if self.quick else 100_000)
        marked, expected, kept = self.marked_sentences(count)
        with self.server("--beam", "1") as server:
            found = self.client("check", server.address, 64, marked, expected)
        print(f"{kept} of {count} marks are kept by `translate`; {found['wrong']} of {found['asked']} answers differ from it; {found['statuses']} {found['first_wrong']}")

    def reload(self):
        marked, expected, _ = self.marked_sentences(2000 if self.quick else 10_000)
        with self.server("--beam", "1") as server:
            done, times = threading.Event(), [0]

            def again():
                while not done.wait(0.1):
                    server.process.send_signal(signal.SIGHUP)
                    times[0] += 1

            thread = threading.Thread(target=again)
            thread.start()
            found = self.client("check", server.address, 64, marked, expected)
            done.set()
            thread.join()
        print(f"loaded again {times[0]} times: {found['wrong']} of {found['asked']} answers are wrong; {found['statuses']}")

    def drain(self):
        counts, rounds = {}, 20 if self.quick else 200
        for number in range(rounds):
            with self.server() as server:
                clients = subprocess.Popen([self.load_program, "drain", server.address, "32", self.sentences], stdout=subprocess.PIPE, text=True)
                time.sleep(0.15 + 0.35 * random.random())
                server.process.terminate()
                for end, count in json.loads(clients.communicate(timeout=90)[0]).items():
                    counts[end] = counts.get(end, 0) + count
                server.process.wait(timeout=90)  # A second signal would end it at once.
            if server.code != 0:
                print(f"round {number}: the server ended with {server.code}")
        print(f"{rounds} drains under load: {counts}")

    def soak(self):
        minutes = 1 if self.quick else 10
        with self.server() as server:
            peak = self.load(server, 64, 5)["per_second"]
            seconds = 60 * minutes
            arguments = [self.load_program, "load", server.address, "2000", str(seconds), self.sentences]
            load = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
            samples = []
            while load.poll() is None:
                time.sleep(2)
                samples.append(server.memory())
            row = json.loads(load.communicate()[0])
        tenth = max(len(samples) // 10, 1)
        early, late = statistics.mean(samples[tenth : 2 * tenth]), statistics.mean(samples[-tenth - 2 : -2])
        print(f"{minutes} minutes with 2,000 clients: {row['per_second']:.0f}/s ({row['per_second'] / peak:.0%} of the peak), {row['statuses']}")
        print(f"memory: {early:.1f} MB in the second tenth, {late:.1f} in the last: {late / early - 1:+.2%} (largest {max(samples):.1f})")

    def hostile(self):
        with self.server() as server:
            for _ in range(3):
                self.load(server, 64, 2)
            expected, before = server.translate("Guten Morgen!"), server.memory()
            memory = []

            def answer(bytes_, more=()):
                with contextlib.closing(server.connect()) as one:
                    with contextlib.suppress(OSError):
                        one.sendall(bytes_)
                        for piece in more:
                            one.sendall(piece)
                    with contextlib.suppress(OSError):
                        return one.recv(65536).split(b"\r\n")[0].decode() or "closed"
                    return "closed"

            def report(name, what):
                alive = server.translate("Guten Morgen!") == expected
                print(f"{name}: {what}; translates: {alive}; memory {server.memory():.1f} MB ({before:.1f} before)", flush=True)

            for again in (1, 2):
                self.hostile_clients(server, answer, report)
                memory.append(server.memory())
                print(f"pass {again}: {memory[-1]:.1f} MB", flush=True)
            time.sleep(1)
            metrics = server.get("/metrics")
            left = re.search(r"^attentive_connections (\d+)", metrics, re.M).group(1)
            print(f"connections at the end: {left} (this one); memory after the second pass: {memory[1] / memory[0] - 1:+.1%}")
        print(f"the server ended with {server.code}")

    def hostile_clients(self, server, answer, report):
        """All of them, one kind after the other."""
        post = POST
        slow = [server.connect() for _ in range(1000)]
        for one in slow:
            one.sendall(b"POST /translate HTTP/1.1\r\nhost: loc")
        speed = self.load(server, 8, 3)["per_second"]
        began, ends = time.time(), {}
        while slow and time.time() - began < 60:
            for one in list(slow):
                try:
                    one.setblocking(False)
                    one.sendall(b"a")
                    end = one.recv(100).split(b"\r\n")[0].decode() or "closed"
                except BlockingIOError:
                    continue
                except OSError:
                    end = "closed"
                ends[end] = ends.get(end, 0) + 1
                slow.remove(one)
                one.close()
            time.sleep(1)
        report("slowloris, 1,000 connections", f"others {speed:.0f}/s; ended {ends} after at most {time.time() - began:.0f} s, {len(slow)} left")
        for one in slow:
            one.close()
        half = [server.connect() for _ in range(200)]
        for one in half:
            one.sendall(post + b"content-length: 1000\r\n\r\n{\"q\": \"a")
        ends = {}
        for one in half:
            end = one.recv(100).split(b"\r\n")[0].decode() or "closed"
            ends[end] = ends.get(end, 0) + 1
            one.close()
        report("half-sent bodies, 200", ends)
        for number in range(10_000):
            with contextlib.closing(server.connect()) as one:
                body = b'{"q": "Guten Morgen, wie geht es dir?", "source": "de", "target": "en"}'
                whole = post + b"content-length: %d\r\n\r\n" % len(body) + body
                one.sendall(whole[: len(whole) * (number % 4 + 1) // 4])
        report("10,000 disconnects", "done")
        megabyte = b"a" * (1 << 20)
        large = answer(post + b"content-length: %d\r\n\r\n" % (100 << 20), (megabyte for _ in range(100)))
        chunked = answer(post + b"transfer-encoding: chunked\r\n\r\n", (b"100000\r\n" + megabyte + b"\r\n" for _ in range(100)))
        report("100 MB bodies", f"{large}, in chunks {chunked}")
        deep = b"[" * 1_000_000
        wrong = b'{"q": "\xff\xfe", "source": "de", "target": "en"}'
        for name, body in (("deeply nested JSON", deep), ("invalid UTF-8", wrong)):
            report(name, answer(post + b"content-length: %d\r\n\r\n" % len(body) + body))
        many = answer(b"GET /health HTTP/1.1\r\nhost: localhost\r\n" + b"x: y\r\n" * 100_000 + b"\r\n")
        long = answer(b"GET /health HTTP/1.1\r\nhost: localhost\r\nx: " + b"y" * (10 << 20) + b"\r\n\r\n")
        report("header floods", f"many {many}, long {long}")

    def replicas(self):
        nginx = shutil.which("nginx") or "/usr/sbin/nginx"
        if not os.path.exists(nginx):
            sys.exit("replicas: nginx is missing")
        with self.server("--threads", "1") as one, self.server("--threads", "1") as two, self.server() as both:
            running, rows = [], {}
            for name, port, servers in (("1 process", 5811, [one]), ("2 processes", 5812, [one, two]), ("1 process with 2 threads", 5813, [both])):
                folder = os.path.join(self.folder, str(port))
                os.mkdir(folder)
                upstream = "\n".join(f"server {server.address};" for server in servers)
                with open(os.path.join(folder, "nginx.conf"), "w") as file:
                    file.write(NGINX.replace("FOLDER", folder).replace("UPSTREAM", upstream).replace("PORT", str(port)))
                running.append(subprocess.Popen([nginx, "-p", folder, "-c", os.path.join(folder, "nginx.conf"), "-g", "daemon off;"], stderr=subprocess.DEVNULL))
                rows[name] = (f"127.0.0.1:{port}", [])
            time.sleep(1)
            try:
                for _ in range(1 if self.quick else 3):
                    for address, found in rows.values():
                        found.append(self.client("load", address, 64, 5, self.sentences))
            finally:
                for process in running:
                    process.terminate()
                    process.wait()
            for name, (_, found) in rows.items():
                speed, tail = (statistics.median(row[key] for row in found) for key in ("per_second", "p99_ms"))
                print(f"{name} behind nginx: {speed:.0f}/s, p99 {tail:.0f} ms, {found[0]['statuses']}")


NGINX = """
worker_processes 1;
pid FOLDER/pid;
error_log FOLDER/error.log;
events { worker_connections 1024; }
http {
    access_log off;
    client_body_temp_path FOLDER/body; proxy_temp_path FOLDER/proxy; fastcgi_temp_path FOLDER/f; uwsgi_temp_path FOLDER/u; scgi_temp_path FOLDER/s;
    upstream attentive { least_conn; keepalive 64; UPSTREAM }
    server {
        listen 127.0.0.1:PORT;
        location / {
            proxy_pass http://attentive;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header Host $http_host;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_buffering off;
        }
    }
}
"""

POST = b"POST /translate HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"

PARTS = ("start", "batching", "overload", "marked", "reload", "drain", "soak", "hostile", "replicas")


def main(attentive, load, data, *options):
    parts = [option for option in options if option in PARTS] or PARTS
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(attentive, load, data, folder, list(options))
        for part in parts:
            print(f"--- {part}", flush=True)
            getattr(bench, part)()


if __name__ == "__main__":
    main(*sys.argv[1:])
