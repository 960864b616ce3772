"""MCP clients, over pipes and over HTTP, that do nothing else than send a request and read its answer, so that what is
timed is the server."""

import http.client
import json
import subprocess
import time


HANDSHAKE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


class PipeClient:
    """Starts a server and talks to it over its pipes. `seconds` is how long the last request took."""

    def __init__(self, command, env=None):
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=env)
        self.last_id = 0
        self.seconds = 0.0
        self.instructions = self.request("initialize", HANDSHAKE).get("instructions", "")
        self._send({"method": "notifications/initialized"})

    def _send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def request(self, method, params):
        self.last_id += 1
        began = time.perf_counter()
        self._send({"id": self.last_id, "method": method, "params": params})
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError("the server has ended")
            message = json.loads(line)
            if message.get("id") == self.last_id:
                break
        self.seconds = time.perf_counter() - began
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']}")
        return message["result"]

    def call(self, tool, arguments):
        return self.request("tools/call", {"name": tool, "arguments": arguments})

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=30)


class HttpClient:
    """Talks to a server that answers with JSON, over one connection. `seconds` is how long the last request took."""

    def __init__(self, port, path):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self.path = path
        self.headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        self.last_id = 0
        self.seconds = 0.0
        self.request("initialize", HANDSHAKE)
        self._post({"method": "notifications/initialized"})

    def _post(self, message):
        # As bytes it leaves in one packet with the head.
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.connection.request("POST", self.path, body, self.headers)
        response = self.connection.getresponse()
        if session := response.headers.get("Mcp-Session-Id"):
            self.headers |= {"Mcp-Session-Id": session, "Mcp-Protocol-Version": HANDSHAKE["protocolVersion"]}
        return response.read()

    def request(self, method, params):
        self.last_id += 1
        began = time.perf_counter()
        message = json.loads(self._post({"id": self.last_id, "method": method, "params": params}))
        self.seconds = time.perf_counter() - began
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']}")
        return message["result"]

    def call(self, tool, arguments):
        return self.request("tools/call", {"name": tool, "arguments": arguments})
