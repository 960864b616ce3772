#!/usr/bin/env python3
"""Draws docs/context.svg from figures.json: what the tools return, and what reaches the model.

    docs/picture/draw.py                        draw
    docs/picture/draw.py --measure PATH_TO_CX   measure with that program first, from the project's root

Measuring runs examples/scripts/total.ts and each of its calls alone, and needs the example server (`make demo`).
Python 3, standard library only.
"""

import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FIGURES = HERE / "figures.json"
DRAWING = HERE.parent / "context.svg"
SCRIPT = "examples/scripts/total.ts"

# In units of the view box. The page scales the drawing: at a width of 360 px text is half as large.
WIDTH, HEIGHT = 720, 344
BAR_LEFT, BAR_TOP, BAR_STEP, BAR_HEIGHT, BAR_LONGEST = 28, 96, 15, 9, 206
BOX = (372, 134, 140, 104)
OUT = 640

# One panel with its own background: it can be read even where the page's theme is not the system's.
STYLE = """
  .panel { fill: #ffffff; stroke: #d0d7de; }
  .bar { fill: #bc4c00; }
  .flow { fill: none; stroke: #bc4c00; stroke-width: 1.5; opacity: 0.45; }
  .box { fill: #ddf4ff; stroke: #0969da; stroke-width: 2; }
  .arrow { fill: none; stroke: #0969da; stroke-width: 2.5; }
  .head { fill: #0969da; }
  text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: #1f2328; }
  .label { font-size: 20px; }
  .small { font-size: 18px; fill: #59636e; }
  .figure { font-size: 30px; font-weight: 700; }
  .code { font-family: ui-monospace, "SFMono-Regular", Menlo, "DejaVu Sans Mono", monospace; }
  .in { fill: #bc4c00; }
  .out { fill: #0969da; }
  @media (prefers-color-scheme: dark) {
    .panel { fill: #0d1117; stroke: #3d444d; }
    .bar { fill: #f0883e; }
    .flow { stroke: #f0883e; }
    .box { fill: #121d2f; stroke: #4493f8; }
    .arrow { stroke: #4493f8; }
    .head { fill: #4493f8; }
    text { fill: #f0f6fc; }
    .small { fill: #9198a1; }
    .in { fill: #f0883e; }
    .out { fill: #4493f8; }
  }
"""


def run(cx, *arguments):
    """The outcome of `cx run --json` as an object."""
    command = [cx, "run", "--mcp-config", "examples/mcp.json", "--json", *arguments]
    outcome = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
    assert outcome["success"], outcome
    return outcome


def received(outcome):
    """The bytes of all tool results of a run."""
    return sum(tool["resultBytes"] for tool in outcome["toolCallSummary"])


def measure(cx):
    whole = run(cx, SCRIPT)
    months = [f"2025-{month:02}" for month in range(1, 13)]
    calls = [run(cx, "-e", f"await tools.library.loans_for_month({{ month: '{month}' }}); return 0") for month in months]
    source = (ROOT / SCRIPT).read_text().split("\n\n", 1)[1]
    figures = {
        "script": SCRIPT,
        "scriptBytes": len(source.encode()),
        "resultBytes": [received(call) for call in calls],
        "value": json.dumps(whole["value"]),
    }
    assert sum(figures["resultBytes"]) == received(whole), "the calls do not add up to the run"
    FIGURES.write_text(json.dumps(figures, indent=2) + "\n")


def text(x, y, words, kind, anchor="start"):
    return f'  <text x="{x}" y="{y}" class="{kind}" text-anchor="{anchor}">{words}</text>'


def draw(figures):
    sizes, value = figures["resultBytes"], figures["value"]
    incoming, outgoing = f"{sum(sizes):,} bytes", f"{len(value.encode())} bytes"
    left, top, width, height = BOX
    middle, centre = top + height / 2, left + width / 2
    description = f"{len(sizes)} tool results, {incoming}, go into one script in cx. {outgoing} go to the model."
    kept = sum(sizes) - len(value.encode())
    caption = f"{figures['scriptBytes']} bytes of TypeScript keep {kept:,} bytes out of the context."
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
    lines = [
        f'{opening} role="img" aria-label="{description}">',
        f"<title>{description}</title>",
        f"<style>{STYLE}</style>",
        f'  <rect x="1" y="1" width="{WIDTH - 2}" height="{HEIGHT - 2}" rx="10" class="panel"/>',
        text(BAR_LEFT, 40, f"{len(sizes)} tool results", "label"),
        text(BAR_LEFT, 76, incoming, "figure in"),
        text(centre, top - 16, "one script", "label", "middle"),
        text(OUT, 40, "the model", "label", "middle"),
        text(OUT, 76, outgoing, "figure out", "middle"),
    ]
    for place, size in enumerate(sizes):
        y = BAR_TOP + place * BAR_STEP
        end = BAR_LEFT + size / max(sizes) * BAR_LONGEST
        start = y + BAR_HEIGHT / 2
        # Spread over the box's side, so that the lines do not become one.
        target = top + 14 + place * (height - 28) / (len(sizes) - 1)
        curve = f"{end + 70:.1f} {start:.1f} {left - 70} {target:.1f} {left} {target:.1f}"
        bar = f'x="{BAR_LEFT}" y="{y}" width="{end - BAR_LEFT:.1f}" height="{BAR_HEIGHT}" rx="2"'
        lines.append(f'  <path d="M{end:.1f} {start:.1f} C{curve}" class="flow"/>')
        lines.append(f'  <rect {bar} class="bar"/>')
    lines += [
        f'  <rect x="{left}" y="{top}" width="{width}" height="{height}" rx="8" class="box"/>',
        text(centre, middle + 1, "cx", "figure code", "middle"),
        text(centre, middle + 28, "filter, add up", "small", "middle"),
        f'  <path d="M{left + width} {middle} H{OUT - 62}" class="arrow"/>',
        f'  <path d="M{OUT - 50} {middle} l-14 -7 v14 z" class="head"/>',
        text(OUT, middle + 10, value, "figure code out", "middle"),
        text(WIDTH / 2, HEIGHT - 28, caption, "label", "middle"),
        "</svg>",
    ]
    DRAWING.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(sys.argv[2])
    draw(json.loads(FIGURES.read_text()))
