"""A SigOpt server for tests: sigopt_server.py FOLDER TOKEN [MISBEHAVIOUR...]

Checks every request against the API's documented rules, proposes at random (always the same), and can misbehave. Writes to FOLDER:
port (when it listens), state.json (after each request: experiments, suggestions, observations, requests) and violations (what broke
a rule; the request is then refused with status 400).

MISBEHAVIOUR is WHAT:WHICH, where WHICH counts requests from 1, or is `all`, or begins with a method and a last part of the path:
    429:3  500:4  cut:5  slow:6  nonsense:7  empty:8  number:9  list:10  noid:11  unknown:12  echo:13  hang:suggestions
cut answers half of a response; slow waits half a second; hang waits until the client goes; echo refuses and repeats the token;
unknown proposes a value that was not on offer.
"""
import base64
import json
import os
import random
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

folder, token = sys.argv[1:3]
misbehaviour = [m.split(":") for m in sys.argv[3:]]
lock = threading.Lock()
rng = random.Random(4)
state = {"experiments": {}, "suggestions": {}, "observations": [], "repeated": [], "requests": []}


class Refused(Exception):
    """An answer with a status and a reason."""


def need(condition, rule):
    if not condition:
        with open(folder + "/violations", "a") as f:
            f.write(rule + "\n")
        raise Refused(400, rule)


def is_number(x):
    return isinstance(x, (int, float)) and not isinstance(x, bool) and x == x and abs(x) != float("inf")


def check_name(name, limit, what):
    need(isinstance(name, str) and 0 < len(name) <= limit, f"{what}: {name!r}, need 1 to {limit} characters")


def check_parameter(p):
    need(set(p) <= {"name", "type", "bounds", "categorical_values"}, f"keys of a parameter: {sorted(p)}")
    check_name(p.get("name"), 100, "name of a parameter")
    need(p.get("type") in ("int", "double", "categorical"), f"type of {p['name']}")
    if p["type"] == "categorical":
        values = p.get("categorical_values")
        need("bounds" not in p and isinstance(values, list) and len(values) >= 2, f"{p['name']}: need two values or more")
        for v in values:
            check_name(v, 50, f"a value of {p['name']}")
        need(len(set(values)) == len(values), f"{p['name']}: a value is there twice")
    else:
        b = p.get("bounds", {})
        need("categorical_values" not in p and is_number(b.get("min")) and is_number(b.get("max")) and b["min"] < b["max"],
             f"bounds of {p['name']}")


def check_metric(m):
    need(set(m) <= {"name", "objective", "strategy", "threshold"}, f"keys of a metric: {sorted(m)}")
    check_name(m.get("name"), 100, "name of a metric")
    need(m.get("objective") in ("maximize", "minimize"), f"objective of {m['name']}")
    need(m.get("strategy") in ("optimize", "constraint", "store"), f"strategy of {m['name']}")
    need(("threshold" in m) == (m["strategy"] == "constraint") and is_number(m.get("threshold", 0)), f"threshold of {m['name']}")


def create_experiment(body):
    keys = {"name", "project", "parameters", "metrics", "observation_budget", "parallel_bandwidth", "metadata"}
    need(set(body) <= keys, f"keys of an experiment: {sorted(set(body) - keys)}")
    check_name(body.get("name"), 99, "name of the experiment")
    check_name(body.get("project"), 100, "project")
    need(isinstance(body.get("parameters"), list) and body["parameters"], "an experiment needs parameters")
    for p in body["parameters"]:
        check_parameter(p)
    need(len({p["name"] for p in body["parameters"]}) == len(body["parameters"]), "two parameters have one name")
    for m in body.get("metrics", []):
        check_metric(m)
    need([m["strategy"] for m in body["metrics"]].count("optimize") == 1, "one metric is optimised")
    for key in ("observation_budget", "parallel_bandwidth"):
        need(isinstance(body.get(key), int) and body[key] >= 1, key)
    metadata = body.get("metadata", {})
    need(len(metadata) <= 100, f"{len(metadata)} keys of metadata")
    for key, value in metadata.items():
        need(len(key) <= 100 and (value is None or is_number(value) or len(value) <= 500), f"metadata {key}")
    number = str(1000 + len(state["experiments"]))
    state["experiments"][number] = {"id": number, "state": "active", **body}
    return 200, state["experiments"][number]


def create_suggestion(experiment, body):
    need(body == {}, f"body of a suggestion: {body}")
    number = str(50000 + len(state["suggestions"]))
    state["suggestions"][number] = {
        "id": number, "experiment": experiment["id"], "state": "open",
        "assignments": {p["name"]: rng.choice(p["categorical_values"]) for p in experiment["parameters"]}}
    return 200, state["suggestions"][number]


def delete_suggestion(number):
    suggestion = state["suggestions"].get(number)
    need(suggestion and suggestion["state"] == "open", f"suggestion {number} cannot be deleted")
    suggestion["state"] = "deleted"
    return 204, None


def create_observation(experiment, body):
    need(set(body) in ({"suggestion", "values"}, {"suggestion", "failed"}), f"keys of an observation: {sorted(body)}")
    suggestion = state["suggestions"].get(body["suggestion"])
    need(suggestion and suggestion["experiment"] == experiment["id"], f"observation of an unknown suggestion {body['suggestion']}")
    if suggestion["state"] == "observed":
        state["repeated"].append(suggestion["id"])
        raise Refused(400, f"suggestion {suggestion['id']} has an observation")
    need(suggestion["state"] == "open", f"suggestion {suggestion['id']} was deleted")
    if "failed" in body:
        need(body["failed"] is True, "failed")
    else:
        need(sorted(v["name"] for v in body["values"]) == sorted(m["name"] for m in experiment["metrics"]), "a value of each metric")
        need(all(is_number(v["value"]) for v in body["values"]), "values are numbers")
    state["observations"].append(body)
    suggestion["state"] = "observed"
    return 200, {"id": str(len(state["observations"])), **body}


def answer(method, path, body):
    parts = path.split("/")[1:]
    if parts[:2] != ["v1", "experiments"]:
        raise Refused(404, "no such path")
    if method == "POST" and len(parts) == 2:
        return create_experiment(body)
    experiment = state["experiments"].get(parts[2])
    if not experiment:
        raise Refused(404, f"no experiment {parts[2]}")
    if method == "GET" and len(parts) == 3:
        return 200, experiment
    if method == "POST" and parts[3:] == ["suggestions"]:
        return create_suggestion(experiment, body)
    if method == "DELETE" and parts[3:4] == ["suggestions"] and len(parts) == 5:
        return delete_suggestion(parts[4])
    if method == "POST" and parts[3:] == ["observations"]:
        return create_observation(experiment, body)
    raise Refused(404, "no such path")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def read(self):
        """The body, as an object; the rules that hold for every request."""
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        expected = "Basic " + base64.b64encode((token + ":").encode()).decode()
        if self.headers.get("Authorization") != expected:
            raise Refused(401, "this token is not known")
        if self.command != "POST":
            need(not sent, f"{self.command} has a body")
            return None
        need(self.headers.get("Content-Type") == "application/json", "POST sends JSON")
        try:
            body = json.loads(sent)
        except ValueError:
            body = None
        need(isinstance(body, dict), "the body is a JSON object")
        return body

    def send(self, status, body, length=None, headers=()):
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data) if length is None else length))
        self.end_headers()
        self.wfile.write(data)

    def misbehaves(self):
        """What to do this time, if anything."""
        n = str(len(state["requests"]))
        for what, which in misbehaviour:
            if which in (n, "all") or self.path.endswith("/" + which):
                return what
        return None

    def handle_one(self):
        with lock:
            state["requests"].append(f"{self.command} {self.path}")
            what = self.misbehaves()
            try:
                body = self.read()
                if what in ("429", "500"):
                    raise Refused(int(what), "come back later")
                if what == "echo":
                    raise Refused(400, f"what is {token}?")
                status, result = answer(self.command, self.path, body)
            except Refused as e:
                status, result = e.args[0], {"message": e.args[1], "status": e.args[0]}
            with open(folder + "/state.tmp", "w") as f:
                json.dump(state, f)
            os.replace(folder + "/state.tmp", folder + "/state.json")
        if what == "slow":
            time.sleep(0.5)
        elif what == "hang":
            time.sleep(600)
        elif what == "cut":
            data = json.dumps(result).encode()
            self.send(status, data[:len(data) // 2], len(data))
            self.close_connection = True
            return
        elif what == "unknown":
            result = {**result, "assignments": {k: "something else" for k in result["assignments"]}}
        elif what == "noid":
            result = {k: v for k, v in result.items() if k != "id"}
        elif what in ("nonsense", "empty", "number", "list"):
            status, result = 200, {"nonsense": b"<html>", "empty": b"", "number": b"12", "list": b"[[]]"}[what]
        self.send(status, result, headers=[("Retry-After", "1")] if status == 429 else [])

    do_GET = do_POST = do_DELETE = handle_one


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
with open(folder + "/port.tmp", "w") as port:
    port.write(str(server.server_port))
os.replace(folder + "/port.tmp", folder + "/port")
server.serve_forever()
