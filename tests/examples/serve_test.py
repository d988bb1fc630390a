# SPDX-License-Identifier: Apache-2.0
"""serve_test.py prefork|asynchronous: tests a server of examples/serve with clients that
never pause, while its model is replaced twice: no request fails, each response is right,
and the new model serves. Malformed requests and a damaged replacement are refused
with the reason. Exits with 77 if byoc, NumPy, or gunicorn (prefork) or uvicorn
(asynchronous) is not installed. PYTHONPATH leads to the package byoc."""

import contextlib
import http.client
import importlib.util
import io
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
DIGITS, SERVE = TOP / "examples/digits", TOP / "examples/serve"
kind = sys.argv[1]
needs = {"prefork": "gunicorn", "asynchronous": "uvicorn"}[kind]
for name in needs, "numpy", "byoc":
    if importlib.util.find_spec(name) is None:
        print(f"note: serve_{kind} was not tried: no Python package {name}; "
              "scripts/deps cluster installs gunicorn and uvicorn")  # fmt: skip
        sys.exit(77)

sys.path.insert(0, str(SERVE))
import byoc  # noqa: E402
import numpy  # noqa: E402
import service  # noqa: E402


def check(what, found, expected):
    if found != expected:
        raise SystemExit(f"{what}: found {found}, expected {expected}")


def wait_until(what, condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"{what}: timed out after {seconds} s")
        time.sleep(0.01)


def text_of(path):
    with contextlib.suppress(FileNotFoundError):
        return path.read_text()
    return ""


def post(port, body):
    """The status, the hash of the model that served, and the response."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    with contextlib.closing(connection):
        connection.request("POST", "/", body)
        response = connection.getresponse()
        return response.status, response.headers["X-Model"], response.read()


IMAGES = [(DIGITS / f"batch{i}.input_0.npy").read_bytes() for i in range(7)]
SCORES = [numpy.load(DIGITS / f"batch{i}.output_0.npy") for i in range(7)]


class Clients:
    """Threads that post image after image until stop()."""

    def __init__(self, port, n):
        self.port, self.faults = port, []
        self.served = []  # of each response, the client and the model
        self.ends = threading.Event()
        self.threads = [threading.Thread(target=self.work, args=(i,)) for i in range(n)]
        for thread in self.threads:
            thread.start()

    def work(self, client):
        i = client
        while not self.ends.is_set():
            i = (i + 1) % 7
            try:
                status, name, response = post(self.port, IMAGES[i])
                error = numpy.abs(numpy.load(io.BytesIO(response)) - SCORES[i]).max()
                if status != 200 or error > 1e-5:
                    self.faults.append((status, float(error)))
                self.served.append((client, name))
            except Exception as error:
                self.faults.append(repr(error))

    def models(self):
        """The models of all responses but the first of each client, which it may
        have requested earlier."""
        seen, names = set(), set()
        for client, name in list(self.served):
            if client in seen:
                names.add(name)
            seen.add(client)
        return names

    def stop(self):
        self.ends.set()
        for thread in self.threads:
            thread.join()


class Server:
    """A server of examples/serve, of the artifact model.so in the folder `top`."""

    def __init__(self, top):
        self.pid_file = top / "pid"
        self.model = top / "model.so"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        command = {
            "prefork": ["gunicorn", "--preload", "--workers", "2", "--bind",
                        f"127.0.0.1:{self.port}", "--pid", str(self.pid_file),
                        "prefork"],
            "asynchronous": ["uvicorn", "--port", str(self.port), "--log-level",
                             "warning", "asynchronous:application"],
        }[kind]  # fmt: skip
        environment = {
            **os.environ, "MODEL": str(self.model),
            "PYTHONPATH": f"{SERVE}:{os.environ['PYTHONPATH']}",
        }  # fmt: skip
        self.log = open(top / "log", "w+")
        self.pid = self.group = subprocess.Popen(
            [sys.executable, "-m", *command], cwd=top, env=environment,
            stdout=self.log, stderr=self.log, start_new_session=True,
        ).pid  # fmt: skip
        wait_until("the server responds", self.responds)

    def responds(self):
        with contextlib.suppress(OSError):
            return post(self.port, IMAGES[0])[0] == 200
        return False

    def log_has(self, text):
        self.log.flush()
        return text in pathlib.Path(self.log.name).read_text()

    def replace(self, artifact):
        """Rename another artifact to MODEL, and tell the server."""
        new = self.model.with_suffix(".new")
        shutil.copy(artifact, new)
        new.rename(self.model)
        if kind == "asynchronous":
            os.kill(self.pid, signal.SIGHUP)
            return
        os.kill(self.pid, signal.SIGUSR2)
        second = self.pid_file.with_suffix(".2")
        wait_until("a second gunicorn", lambda: text_of(second))
        second_text = second.read_text()
        os.kill(self.pid, signal.SIGTERM)
        wait_until("the first gunicorn ends",
                   lambda: text_of(self.pid_file) == second_text)  # fmt: skip
        self.pid = int(second_text)

    def stop(self):
        os.killpg(self.group, signal.SIGTERM)
        wait_until("the server ends", lambda: not self.responds())


def try_refusals(server):
    for body, says in (
        (b"", "magic string"),
        (b"no array", "magic string"),
        (IMAGES[0][:-5], "EOF"),
        (array(numpy.zeros((64, 1, 8, 9), "f4")), 'input "image": axis 3 is 9'),
        (array(numpy.zeros((64, 1, 8, 8), "f8")), 'input "image"'),
    ):
        status, _, response = post(server.port, body)
        check(f"status of {body[:10]} ({response})", status, 400)
        if says not in response.decode():
            raise SystemExit(f"response: found {response}, expected {says!r} in it")


def array(values):
    file = io.BytesIO()
    numpy.save(file, values)
    return file.getvalue()


def try_memory(artifact):
    """A limit on memory is a 503, not the end of the process."""
    try:
        service.Service(artifact, memory=1000)
    except byoc.NoMemoryError as error:
        status, text = service.Service(artifact).error_response(error)
        check("status beyond the memory limit", status[:3], "503")
        return
    raise SystemExit("a limit of 1000 bytes: found a model, expected NoMemoryError")


with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
    top = pathlib.Path(folder)
    byoc.compile(DIGITS / "digits.onnx", threads=1).write(top / "first.so")
    byoc.compile(DIGITS / "digits.onnx", backends=[], threads=1).write(top / "second.so")
    (top / "damaged.so").write_bytes((top / "first.so").read_bytes()[:5000])
    names = [service.Service(top / name).current[1] for name in ("first.so", "second.so")]
    check("two models", len(set(names)), 2)
    try_memory(top / "first.so")
    shutil.copy(top / "first.so", top / "model.so")
    server = Server(top)
    stack.callback(server.stop)
    try_refusals(server)
    clients = Clients(server.port, 4)
    stack.callback(clients.stop)
    for which, name in (("second.so", names[1]), ("first.so", names[0])):
        wait_until("requests", lambda: len(clients.served) > 50)
        clients.served.clear()
        server.replace(top / which)
        wait_until("the new model serves",
                   lambda: clients.served and clients.served[-1][1] == name)  # fmt: skip
        del clients.served[:]
        wait_until("requests after it", lambda: len(clients.served) > 50)
        check("the old model after the new one", clients.models(), {name})
    if kind == "asynchronous":
        server.replace(top / "damaged.so")
        wait_until("the log has the reason", lambda: server.log_has("model.so") or
              server.log_has("artifact"))  # fmt: skip
        check("the old model serves", post(server.port, IMAGES[0])[:2], (200, names[0]))
    clients.stop()
    check("failed requests", clients.faults, [])
print("two reloads, no request failed")
