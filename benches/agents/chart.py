#!/usr/bin/env python3
"""Draws the charts of docs/agents.md from the figures beside it: `chart.py [DIRECTORY]`. Standard library only."""

import json
import statistics
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
DOCS = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parent.parent / "docs"

WIDTH, HEIGHT = 720, 450
LEFT, TOP, RIGHT, BOTTOM = 78, 64, 696, 336

# One panel with its own background: it can be read even where the page's theme is not the system's.
STYLE = """
  .panel { fill: #ffffff; stroke: #d0d7de; }
  .axis { stroke: #59636e; } .grid { stroke: #d0d7de; }
  .losing { fill: #cf222e; opacity: 0.12; }
  text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: #1f2328; }
  .title { font-size: 18px; font-weight: 600; } .small { font-size: 14px; } .dim { fill: #59636e; }
  .line { fill: none; stroke-width: 2.5; }
  .direct { stroke: #bc4c00; } .none { stroke: #1a7f37; } .search { stroke: #8250df; } .help { stroke: #0969da; }
  @media (prefers-color-scheme: dark) {
    .panel { fill: #0d1117; stroke: #3d444d; } .axis { stroke: #9198a1; } .grid { stroke: #3d444d; }
    .losing { fill: #f85149; opacity: 0.18; } text { fill: #f0f6fc; } .dim { fill: #9198a1; }
    .direct { stroke: #f0883e; } .none { stroke: #3fb950; } .search { stroke: #ab7df8; } .help { stroke: #4493f8; }
  }
"""

WAYS = {"none": "cx, the tools are known", "help": "cx, help() first", "search": "cx, searchTools() every turn"}


class Chart:
    def __init__(self, title, x_most, y_most, x_label, y_label):
        self.x_most, self.y_most = x_most, y_most
        self.title = title
        self.parts = [
            f'  <rect x="1" y="1" width="{WIDTH - 2}" height="{HEIGHT - 2}" rx="10" class="panel"/>',
            text(20, 32, title, "title"),
            text(LEFT, 54, y_label, "small dim"),
            text(RIGHT, BOTTOM + 42, x_label, "small dim", "end"),
        ]

    def at(self, x, y):
        return LEFT + x / self.x_most * (RIGHT - LEFT), BOTTOM - min(y / self.y_most, 1) * (BOTTOM - TOP)

    def axes(self, x_step, y_step, y_format):
        for value in range(0, self.y_most + 1, y_step):
            y = self.at(0, value)[1]
            self.parts.append(f'  <path d="M{LEFT} {y:.1f} H{RIGHT}" class="grid"/>')
            self.parts.append(text(LEFT - 8, y + 5, y_format(value), "small dim", "end"))
        for value in range(0, self.x_most + 1, x_step):
            self.parts.append(text(self.at(value, 0)[0], BOTTOM + 20, str(value), "small dim", "middle"))
        self.parts.append(f'  <path d="M{LEFT} {BOTTOM} H{RIGHT}" class="axis"/>')

    def line(self, points, kind):
        path = " L".join(f"{x:.1f} {y:.1f}" for x, y in (self.at(*point) for point in points))
        self.parts.append(f'  <path d="M{path}" class="line {kind}"/>')

    def legend(self, names):
        """Below the axis, in two columns, so that no line crosses it."""
        for place, (kind, name) in enumerate(names.items()):
            x, y = LEFT + place % 2 * 310, BOTTOM + 72 + place // 2 * 22
            self.parts.append(f'  <path d="M{x} {y} h26" class="line {kind}"/>')
            self.parts.append(text(x + 34, y + 5, name, "small"))

    def write(self, name, description):
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
        lines = [f'{head} role="img" aria-label="{description}">', f"<title>{description}</title>"]
        lines += [f"<style>{STYLE}</style>", *self.parts, "</svg>"]
        (DOCS / name).write_text("\n".join(lines) + "\n")


def text(x, y, words, kind, anchor="start"):
    return f'  <text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{words}</text>'


def break_even(entries, summary):
    """Tokens of the median entry by the number of tools that are shown directly."""
    size = statistics.median(entry["definitions"]["involved"] / entry["definitions"]["involvedTools"] for entry in entries)
    calls = statistics.median(entry["direct"] for entry in entries)
    chart = Chart("Tokens of the median entry", 40, 4_000, "tools that are shown directly", "tokens")
    chart.axes(10, 1_000, lambda value: f"{value:,}")
    shown = {}
    for way, name in WAYS.items():
        tokens = summary[f"typescript, discovery {way}"]["median"]
        chart.line([(0, tokens), (40, tokens)], way)
        shown[way] = f"{name}: {tokens:,}"
    worst = summary["typescript, discovery search"]["break-even, tools"]
    right = chart.at(worst, 0)[0]
    chart.parts.append(
        f'  <rect x="{LEFT}" y="{TOP}" width="{right - LEFT:.1f}" height="{BOTTOM - TOP}" class="losing"/>'
    )
    chart.parts.append(text(LEFT + 8, TOP + 20, "cx can cost more here", "small"))
    last = min(40, (4_000 - calls) / size)
    chart.line([(0, calls), (last, calls + last * size)], "direct")
    chart.legend(shown | {"direct": "all tools shown directly"})
    description = f"Below {worst:.0f} tools shown directly cx can cost more tokens, above it costs less."
    chart.write("agents-break-even.svg", description)


def distribution(entries, name, title, most):
    """What each entry costs through cx, as a share of showing the tools of its servers directly; sorted."""
    chart = Chart(title, len(entries), most, "entries, sorted", "percent")
    chart.axes(len(entries) // 4, 25, lambda value: f"{value} %")
    losing = chart.at(0, 100)[1]
    chart.parts.append(f'  <rect x="{LEFT}" y="{TOP}" width="{RIGHT - LEFT}" height="{losing - TOP:.1f}" class="losing"/>')
    chart.parts.append(text(LEFT + 8, TOP + 20, "cx costs more here", "small"))
    for way in WAYS:
        shares = sorted(
            entry[f"typescript, {way}"] / (entry["definitions"]["involved"] + entry["direct"]) * 100 for entry in entries
        )
        chart.line(list(enumerate(shares)), way)
    chart.legend(WAYS)
    chart.write(name, "The cost of each entry through cx, as a share of its cost without cx.")


def main():
    read = lambda name: json.loads((HERE / "figures" / name).read_text())
    figures = read("base.json")
    break_even(figures["entries"], figures["summary"])
    title = "Cost through cx, of what the involved servers' tools cost directly"
    distribution(figures["entries"], "agents-entries.svg", title, 125)
    title = "The same, of conversations that a model held with real servers"
    distribution(read("recorded.json")["entries"], "agents-recorded.svg", title, 150)


if __name__ == "__main__":
    main()
