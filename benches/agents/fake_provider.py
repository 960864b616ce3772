"""A provider of language models on loopback, in the wire formats of OpenAI and Anthropic, that plays what it is told."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KEY = "key-of-the-fake-provider"


class Refused(Exception):
    """The provider answers with this status."""

    def __init__(self, status, headers=None):
        super().__init__(status)
        self.status, self.headers = status, headers or {}


class FakeProvider:
    """`play(system, messages)` is the text of each answer. A token is a word."""

    def __init__(self, play):
        self.play = play
        self.tokens = self.asked = 0
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def environment(self, provider):
        """The settings of a cx that asks this one."""
        return {
            "CX_LLM_PROVIDER": provider,
            "CX_LLM_MODEL": "fake",
            "CX_LLM_URL": f"http://127.0.0.1:{self.server.server_port}/v1",
            f"{provider.upper()}_API_KEY": KEY,
        }

    def answer(self, path, headers, asked):
        """The status, the headers and the body of an answer."""
        self.asked += 1
        messages = asked["messages"]
        if path.endswith("/messages"):
            key, system = headers.get("x-api-key"), asked.get("system", "")
        else:
            key = headers.get("authorization", "").removeprefix("Bearer ")
            system, messages = messages[0]["content"], messages[1:]
        if key != KEY:
            return 401, {}, {"error": {"message": "Incorrect API key provided"}}
        messages = [{"role": message["role"], "content": plain(message["content"])} for message in messages]
        try:
            text = self.play(plain(system), messages)
        except Refused as refused:
            return refused.status, refused.headers, {"error": {"message": "not now"}}
        asked_words = sum(len(message["content"].split()) for message in messages) + len(plain(system).split())
        answered_words = len(text.split())
        self.tokens += asked_words + answered_words
        if path.endswith("/messages"):
            return 200, {}, {
                "id": "1", "type": "message", "role": "assistant", "model": "fake", "stop_reason": "end_turn",
                "content": [{"type": "text", "text": text}],
                "usage": {"input_tokens": asked_words, "output_tokens": answered_words},
            }
        return 200, {}, {
            "id": "1", "object": "chat.completion", "model": "fake",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
            "usage": {
                "prompt_tokens": asked_words, "completion_tokens": answered_words,
                "total_tokens": asked_words + answered_words,
            },
        }

    def handler(self):
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
                status, headers, body = provider.answer(self.path, self.headers, asked)
                body = json.dumps(body).encode()
                try:
                    self.send_response(status)
                    for name, value in (headers | {"content-type": "application/json", "content-length": len(body)}).items():
                        self.send_header(name, str(value))
                    self.end_headers()
                    self.wfile.write(body)
                except ConnectionError:
                    # The client has disconnected.
                    pass

            def log_message(self, *_arguments):
                pass

        return Handler

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def plain(content):
    """The text of a message: a string, or blocks."""
    return content if isinstance(content, str) else "".join(block["text"] for block in content)
