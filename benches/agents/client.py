"""MCP clients, over pipes and over HTTP, that only send a request and read its answer, so that the time is that of the
server."""

import http.client
import json
import subprocess
import time


HANDSHAKE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


class Client:
    """Sends requests. `seconds` is how long the last one took."""

    def __init__(self):
        self.last_id = 0
        self.seconds = 0.0

    def exchange(self, message):
        """Sends a message, and returns the answer to it if it is a request."""
        raise NotImplementedError

    def shake(self):
        """The handshake. Returns what the server says of itself."""
        told = self.request("initialize", HANDSHAKE)
        self.exchange({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return told

    def request(self, method, params):
        self.last_id += 1
        began = time.perf_counter()
        answer = self.exchange({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params})
        self.seconds = time.perf_counter() - began
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def call(self, tool, arguments):
        return self.request("tools/call", {"name": tool, "arguments": arguments})


class PipeClient(Client):
    """Starts a server and talks to it over its pipes."""

    def __init__(self, command, env=None):
        super().__init__()
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=env)
        self.instructions = self.shake().get("instructions", "")

    def exchange(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        while "id" in message:
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError("the server has ended")
            answer = json.loads(line)
            if answer.get("id") == message["id"]:
                return answer
        return None

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=30)
        self.process.stdout.close()


class HttpClient(Client):
    """Talks to a server that answers with JSON, over one connection."""

    def __init__(self, port, path):
        super().__init__()
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self.path = path
        self.headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        self.shake()

    def exchange(self, message):
        self.connection.request("POST", self.path, json.dumps(message).encode(), self.headers)
        response = self.connection.getresponse()
        if session := response.headers.get("Mcp-Session-Id"):
            self.headers |= {"Mcp-Session-Id": session, "Mcp-Protocol-Version": HANDSHAKE["protocolVersion"]}
        body = response.read()
        return json.loads(body) if "id" in message else None
