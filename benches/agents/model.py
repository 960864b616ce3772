"""A language model, asked by `llm` of a separate cx. So the providers, their wire formats, the key and the budget are
those of docs/llm.md, and none of them is written a second time here.

It knows no tools in the provider's own form, so calls are JSON in the text of an answer: BFCL's prompting mode. It is the
same text for tools that are shown directly and for those of cx."""

import json
import os
import tempfile
import time
from pathlib import Path

from client import PipeClient

ASK = """try {
  return { text: await llm.think(input) }
} catch (error) {
  return { code: error.code, message: error.message, retryAfterMs: error.retryAfterMs }
}"""

# Variables that every process may need, and the settings and keys of docs/llm.md. A key is given to this process alone.
KEPT = ("PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "MISTRAL_API_KEY")

# A refused question is asked again, as long as the entry has time.
RETRY_SECONDS = 5.0


class ModelFailure(Exception):
    """The model was not asked, or has not answered: a failure of the provider and not of the model."""


class OutOfBounds(Exception):
    """The entry has used up its tokens or its time."""


class Model:
    """The provider of the environment: `CX_LLM_PROVIDER`, `CX_LLM_MODEL`, `CX_LLM_URL` and its key."""

    def __init__(self, cx, bounds, environment=os.environ):
        self.bounds = bounds
        self.home = tempfile.TemporaryDirectory()
        folder = Path(self.home.name) / ".config" / "cx"
        folder.mkdir(parents=True)
        # Answers have the benchmark's addresses and numbers in them, which the filter would take for a person's.
        settings = {"contentFilter": "off", "callTimeoutMs": int(bounds.answer_seconds * 1e3)}
        (folder / "config.json").write_text(json.dumps({"llm": settings}))
        kept = {name: value for name, value in environment.items() if name in KEPT + KEYS or name.startswith("CX_LLM_")}
        kept |= {"HOME": self.home.name, "CX_LLM": "true", "CX_LLM_ROUNDS": "1", "CX_LLM_TOKENS": str(bounds.tokens)}
        self.cx = PipeClient([cx, "serve", "--timeout", "600s", "--max-value", "1000000"], kept)

    def ask(self, system, messages, spent, deadline):
        """The text of the answer, and how many tokens the provider counted for question and answer."""
        while True:
            seconds = deadline - time.monotonic()
            left = self.bounds.tokens - spent
            if seconds <= 0:
                raise OutOfBounds("time")
            if left <= 0:
                raise OutOfBounds("tokens")
            result = self.cx.call(
                "executeTypescript",
                {
                    "code": ASK,
                    "input": {"messages": messages, "systemPrompt": system, "maxTokens": self.bounds.answer_tokens},
                    "maxSamplingTokens": left,
                    "timeoutMs": max(1, int(min(seconds, 600) * 1e3)),
                },
            )["structuredContent"]
            if error := result.get("error"):
                raise OutOfBounds("time") if error["code"] == "TIMEOUT" else ModelFailure(error["message"])
            answer = result["value"]
            tokens = result.get("samplingMetrics", {}).get("totalTokens", 0)
            if "text" in answer:
                return answer["text"], tokens
            if answer["code"] == "MODEL_BUDGET_EXCEEDED":
                raise OutOfBounds("tokens")
            if answer["code"] != "RATE_LIMITED":
                raise ModelFailure(f"{answer['code']}: {answer['message']}")
            wait = (answer.get("retryAfterMs") or RETRY_SECONDS * 1e3) / 1e3
            if wait >= deadline - time.monotonic():
                raise ModelFailure(f"{answer['code']}: {answer['message']}")
            time.sleep(wait)

    def close(self):
        self.cx.close()
        self.home.cleanup()
