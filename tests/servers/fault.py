"""An MCP server that misbehaves on request.

    python3 fault.py MODE [FILE]

Newline-delimited JSON-RPC by hand and the standard library only, so that it can send what no SDK
would. MODE is what goes wrong at start; a call's tool name is what goes wrong in that call. What a
test wants to know afterwards (process numbers, notifications) is appended to FILE.
"""

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time

MODE = sys.argv[1] if len(sys.argv) > 1 else "well"
FILE = sys.argv[2] if len(sys.argv) > 2 else os.devnull
TOOLS = [
    "echo", "environment", "slow", "never", "crash", "fail", "lone_surrogate", "huge_number", "deep", "not_json",
    "wrong_shape", "no_result", "oversized", "endless", "stray_answers", "bad_arguments", "unknown", "internal",
    "quoted_id", "image", "ask_back", "ping_flood", "change_tools", "grandchild",
]
EXTRA_TOOLS = []
SKILL = "skill://fault/SKILL.md"
# The text that the list of skills describes, the one that is sent, and what both say of themselves.
SKILL_TEXTS = {"listed": "first", "sent": "first", "description": "a skill"}
LOCK = threading.Lock()


def note(text):
    with LOCK, open(FILE, "a", encoding="utf-8") as file:
        file.write(text + "\n")


def write(text):
    with LOCK:
        sys.stdout.write(text)
        sys.stdout.flush()


def send(message):
    write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")


def answer(identifier, result):
    send({"id": identifier, "result": result})


def text(value):
    return {"content": [{"type": "text", "text": value}]}


def skill(which):
    return f"---\nname: fault\ndescription: {SKILL_TEXTS['description']}\n---\n{SKILL_TEXTS[which]}"


def refuse(identifier, code, message):
    send({"id": identifier, "error": {"code": code, "message": message}})


def list_tools(identifier, parameters):
    note("asked for a page")
    if MODE == "hang_in_list":
        return
    names = TOOLS + EXTRA_TOOLS + (["odd_numbers"] if MODE == "odd_numbers" else [])
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
    result = {"tools": tools}
    if MODE == "endless_list":
        page = int(parameters.get("cursor", "0")) + 1
        result = {"tools": [{"name": f"t{page}", "inputSchema": {"type": "object"}}], "nextCursor": str(page)}
    elif MODE == "repeated_cursor":
        result["nextCursor"] = "again"
    elif MODE == "odd_tools":
        tools[0]["description"] = "x" * 1_000_000
        tools[1]["inputSchema"] = {"type": "object", "enum": ["x" * 100] * 10_000}
        tools += [{"name": "no_schema"}, {"name": "echo", "inputSchema": {}}, "not a tool", {"name": "", "inputSchema": {}}]
    answer(identifier, result)


def call(identifier, name, arguments):
    prefix = '{"jsonrpc":"2.0","id":%d,"result":' % identifier
    if name == "echo":
        answer(identifier, {**text(json.dumps(arguments)), "structuredContent": arguments})
    elif name == "environment":
        answer(identifier, {"content": [], "structuredContent": {"env": dict(os.environ), "cwd": os.getcwd(), "pid": os.getpid()}})
    elif name == "slow":
        def later():
            time.sleep(arguments.get("seconds", 0.2))
            answer(identifier, text("slow"))
        threading.Thread(target=later, daemon=True).start()
    elif name == "never":
        note("called never")
    elif name == "crash":
        sys.stderr.write("\x1b[31mpanic\x1b[0m: the crash was asked for\n")
        sys.stderr.flush()
        os._exit(7)
    elif name == "close_input":
        os.close(0)
        answer(identifier, text("deaf"))
        while True:
            time.sleep(1000)
    elif name == "fail":
        answer(identifier, {**text("it did not work"), "isError": True})
    elif name == "lone_surrogate":
        write(prefix + '{"content":[{"type":"text","text":"\\ud800"}]}}\n')
    elif name == "huge_number":
        write(prefix + '{"content":[],"structuredContent":{"n":1e400}}}\n')
    elif name == "odd_numbers":
        # As Python's `json` writes them.
        numbers = {"a": [float("nan"), float("inf"), -float("inf")], "big": 2**70 + 1}
        inside = text(json.dumps(numbers))
        answer(identifier, inside if arguments.get("text") else {**inside, "structuredContent": numbers})
    elif name == "deep":
        write(prefix + '{"content":[],"structuredContent":' + "[" * 200 + "]" * 200 + "}}\n")
    elif name == "not_json":
        write('{"result":{"content":[}, "jsonrpc":"2.0","id":%d}\n' % identifier)
    elif name == "wrong_shape":
        answer(identifier, {"content": [{"type": "text"}]})
    elif name == "no_result":
        send({"id": identifier})
    elif name == "oversized":
        # The id comes last, as the TypeScript SDK writes it.
        megabytes = arguments.get("megabytes", 40)
        write('{"result":{"content":[{"type":"text","text":"')
        for _ in range(megabytes):
            write("x" * (1 << 20))
        write('"}]},"jsonrpc":"2.0","id":%d}\n' % identifier)
    elif name == "endless":
        write(prefix)
        while True:
            write("x" * (1 << 20))
    elif name == "stray_answers":
        for stray in (identifier + 1000, "absent", None, identifier - 1):
            send({"id": stray, "result": text("not for you")})
        answer(identifier, text("mine"))
        answer(identifier, text("twice"))
    elif name == "bad_arguments":
        refuse(identifier, -32602, "file not found: `path`")
    elif name == "unknown":
        refuse(identifier, -32602, "Tool unknown not found")
    elif name == "internal":
        refuse(identifier, -32603, "out of cheese")
    elif name == "quoted_id":
        answer(str(identifier), text("quoted"))
    elif name == "image":
        answer(identifier, {"content": [
            {"type": "text", "text": "a picture", "annotations": {"audience": ["user"]}},
            {"type": "image", "data": "AAEC", "mimeType": "image/png"},
            {"type": "audio", "data": "AAEC", "mimeType": "audio/wav"},
            {"type": "resource_link", "uri": "file:///a", "name": "a", "mimeType": "text/plain"},
            {"type": "resource", "resource": {"uri": "file:///b", "mimeType": "text/plain", "text": "b"}},
        ]})
    elif name == "ask_back":
        send({"id": "ping-1", "method": "ping"})
        send({"id": "ask-1", "method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}})
        send({"id": "ask-2", "method": "roots/list"})
        send({"id": "ask-3", "method": "elicitation/create", "params": {"message": "?", "requestedSchema": {}}})
        answer(identifier, text("asked"))
    elif name == "ping_flood":
        for number in range(arguments.get("count", 100_000)):
            sys.stdout.write('{"jsonrpc":"2.0","id":"p%d","method":"ping"}\n' % number)
        sys.stdout.flush()
        answer(identifier, text("flooded"))
    elif name == "change_tools":
        EXTRA_TOOLS.append(f"extra_{len(EXTRA_TOOLS)}")
        send({"method": "notifications/tools/list_changed"})
        answer(identifier, text("changed"))
    elif name == "change_skill":
        SKILL_TEXTS.update(arguments)
        answer(identifier, text("changed"))
    elif name == "grandchild":
        child = subprocess.Popen(["sleep", "1000"])
        note(f"grandchild {child.pid}")
        answer(identifier, text(str(child.pid)))
    else:
        refuse(identifier, -32602, f"Unknown tool: {name}")


def handle(message):
    method = message.get("method")
    identifier = message.get("id")
    parameters = message.get("params") or {}
    if method == "server/discover" and MODE == "dies_of_the_probe":
        os._exit(4)
    if method == "server/discover" and MODE in ("ignores_the_probe", "hang_in_handshake"):
        return
    if method == "initialize":
        if MODE == "hang_in_handshake":
            return
        if MODE == "refuse":
            return refuse(identifier, -32600, "not today")
        if MODE == "broken_handshake":
            return write('{"jsonrpc":"2.0","id":%d,"result":nonsense}\n' % identifier)
        note("capabilities " + json.dumps(parameters["capabilities"]))
        answer(identifier, {
            "protocolVersion": parameters["protocolVersion"],
            "capabilities": {
                "tools": {"listChanged": True},
                "resources": {},
                "extensions": {"io.modelcontextprotocol/skills": {}},
            } if MODE == "skills" else {"tools": {"listChanged": True}},
            "serverInfo": {"name": "fault", "version": "1"},
        })
        if MODE == "dies_after_handshake":
            os._exit(3)
        if MODE == "stop_reading":
            while True:
                time.sleep(1000)
    elif method == "tools/list":
        list_tools(identifier, parameters)
    elif method == "tools/call":
        call(identifier, parameters["name"], parameters.get("arguments") or {})
    elif method == "resources/list" and MODE == "skills":
        answer(identifier, {"resources": []})
    elif method == "skills/list" and MODE == "skills":
        listed = skill("listed").encode()
        digest = "sha256:" + hashlib.sha256(listed).hexdigest()
        file = {"uri": SKILL, "digest": digest, "size": len(listed)}
        frontmatter = {"name": "fault", "description": "a skill"}
        answer(identifier, {"skills": [{"uri": SKILL, "frontmatter": frontmatter, "resources": [file]}]})
    elif method == "resources/read" and MODE == "skills":
        answer(identifier, {"contents": [{"uri": SKILL, "text": skill("sent")}]})
    elif method == "notifications/cancelled":
        note(f"cancelled {parameters.get('requestId')}")
    elif method is None:
        note("answered " + json.dumps(message))
    elif identifier is not None:
        # Among them is the probe for the newest revision, which this server does not speak.
        refuse(identifier, -32601, f"Unknown method: {method}")


def main():
    note(f"started {os.getpid()}")
    if MODE == "exit_at_once":
        sys.exit(0)
    if MODE == "dies_in_handshake":
        sys.stderr.write("Traceback: \x1b[31mno such database\x1b[0m\n")
        sys.exit(3)
    if MODE == "noise":
        write("Welcome to the server!\nnpm notice new version\n{\"half\": \n[1, 2\n\n")
        sys.stdout.buffer.write(b"\xff\xfe not text\n")
        sys.stdout.buffer.flush()
    if MODE == "stderr_flood":
        for number in range(10 * 1024):
            sys.stderr.write(f"line {number} " + "x" * 1000 + "\n")
        sys.stderr.flush()
    if MODE == "ignore_signals":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for line in sys.stdin:
        if MODE == "noise":
            write("log: got a message\n")
        handle(json.loads(line))
    note("stdin ended")
    if MODE == "ignore_signals":
        while True:
            time.sleep(1000)


main()
