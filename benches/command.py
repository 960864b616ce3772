"""How long commands take that a person waits for: `python3 benches/command.py target/release/cx`.

A home directory of its own has ten clients with 30 servers, and a cache with 300 tools of real servers
(tests/search/tools.json). Each command is started 60 times, in turn with the others, so that other load affects all of
them. The time is from start to exit; that of a program that does nothing is beside it. `cx run hello.py` is started
twice in each of ten rounds: with a cache that has nothing of Python, as on a machine that has never run any, and then
with what the first one has left.
"""

import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = 60
FIRST_ROUNDS = 10
TOOLS = 300
ROOT = pathlib.Path(__file__).resolve().parent.parent

SERVER = """
import json, sys
tools = json.load(open(sys.argv[1]))
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if method == "initialize":
        answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "bench", "version": "1"}}
    elif method == "tools/list":
        answer["result"] = {"tools": tools}
    else:
        answer["error"] = {"code": -32601, "message": "Method not found"}
    print(json.dumps(answer), flush=True)
"""


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def servers(client):
    """Three servers of a client, as most clients write them."""
    return {f"{client}-{number}": {"command": "npx", "args": ["-y", f"@example/server-{number}"]} for number in range(3)}


def clients(home):
    """The files of ten clients."""
    shared = lambda client: json.dumps({"mcpServers": servers(client)})
    write(home / ".claude.json", shared("claude"))
    write(home / ".config/Claude/claude_desktop_config.json", shared("desktop"))
    write(home / ".cursor/mcp.json", shared("cursor"))
    write(home / ".config/Code/User/mcp.json", json.dumps({"servers": servers("code")}))
    write(home / ".codeium/windsurf/mcp_config.json", shared("windsurf"))
    write(home / ".gemini/settings.json", shared("gemini"))
    write(home / ".config/zed/settings.json", json.dumps({"context_servers": servers("zed")}))
    opencode = {name: {"type": "local", "command": ["npx", "-y", "x"]} for name in servers("opencode")}
    write(home / ".config/opencode/opencode.json", json.dumps({"mcp": opencode}))
    write(home / ".codex/config.toml", "".join(f'[mcp_servers.{name}]\ncommand = "npx"\n' for name in servers("codex")))
    goose = "".join(f"  {name}:\n    type: stdio\n    cmd: npx\n    enabled: true\n" for name in servers("goose"))
    write(home / ".config/goose/config.yaml", "extensions:\n" + goose)


def real_tools():
    """300 definitions of real servers, with their own names."""
    fields = ["name", "description", "inputSchema", "outputSchema"]
    known = json.loads((ROOT / "tests/search/tools.json").read_text())[:TOOLS]
    tools = [{field: tool[field] for field in fields if tool.get(field) is not None} for tool in known]
    for number, tool in enumerate(tools):
        tool["name"] = f"{tool['name']}_{number}"
    return tools


def python_runs(cx, home, environment):
    """Times of the first Python run of a machine and of the next one, in ms."""
    write(home / "hello.py", "print('hello')\n")
    times = {"cx run hello.py, the first": [], "cx run hello.py, the next": []}
    for number in range(FIRST_ROUNDS):
        cache = home / f"cache-{number}"
        own = {**environment, "XDG_CACHE_HOME": str(cache)}
        for all_times in times.values():
            began = time.perf_counter()
            words = [cx, "run", "hello.py"]
            finished = subprocess.run(
                words, cwd=home, env=own, stdin=subprocess.DEVNULL, capture_output=True, text=True
            )
            all_times.append((time.perf_counter() - began) * 1000)
            assert finished.returncode == 0 and "hello" in finished.stdout, finished.stdout + finished.stderr
        shutil.rmtree(cache)
    return times


def main():
    cx = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as directory:
        home = pathlib.Path(directory)
        clients(home)
        tools = real_tools()
        write(home / "tools.json", json.dumps(tools))
        write(home / "server.py", SERVER)
        server = {"command": sys.executable, "args": [str(home / "server.py"), str(home / "tools.json")]}
        write(home / "mcp.json", json.dumps({"mcpServers": {"bench": server}}))
        environment = {"HOME": directory, "PATH": os.environ["PATH"]}
        start = lambda words: subprocess.run(words, cwd=home, env=environment, capture_output=True, text=True)
        refreshed = start([cx, "tools", "list", "--refresh", "--mcp-config", "mcp.json"])
        assert f"bench: {len(tools)} tools" in refreshed.stdout, refreshed.stdout[:300] + refreshed.stderr
        survey = json.loads(start([cx, "setup", "--dry-run", "--json"]).stdout)
        count = sum(len(client["servers"]) for client in survey["clients"])
        print(f"{len(survey['clients'])} clients, {count} servers, {len(tools)} tools, {ROUNDS} rounds")
        commands = {
            "a program that does nothing": ["true"],
            "cx --help": [cx, "--help"],
            "cx setup --dry-run": [cx, "setup", "--dry-run"],
            "cx tools list": [cx, "tools", "list", "--mcp-config", "mcp.json"],
            "cx types": [cx, "types", "--offline", "--mcp-config", "mcp.json"],
            "cx types --lang py": [cx, "types", "--lang", "py", "--offline", "--mcp-config", "mcp.json"],
        }
        times = {name: [] for name in commands}
        for _ in range(ROUNDS):
            for name, words in commands.items():
                began = time.perf_counter()
                finished = start(words)
                times[name].append((time.perf_counter() - began) * 1000)
                assert finished.returncode == 0, (words, finished.stderr)
        times.update(python_runs(cx, home, environment))
        for name, all_times in times.items():
            median, p95 = statistics.median(all_times), sorted(all_times)[int(len(all_times) * 0.95)]
            print(f"{name:30} p50 {median:6.1f} ms   p95 {p95:6.1f} ms")


main()
