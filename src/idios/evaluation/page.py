"""The report as one HTML file that needs nothing else: plotly's script is inside, and the page may load nothing.

A content security policy says so to the browser: whatever the script might ask for, no request leaves the machine.
Colours follow the reader's preference for light or dark, also while the page is open.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from typing import Any

from plotly.offline import get_plotlyjs

from idios.evaluation.content import Figure, Section, Table, shown
from idios.evaluation.drawing import WIDTH, draw

POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"

THEMES: dict[str, dict[str, str]] = {
    "light": {"paper": "#ffffff", "text": "#1a1a1a", "grid": "#e3e3e3", "line": "#555555"},
    "dark": {"paper": "#15181c", "text": "#e8e8e8", "grid": "#343a40", "line": "#9aa0a6"},
}

_STYLE = """
:root { color-scheme: light dark; --paper: #ffffff; --text: #1a1a1a; --line: #d0d0d0; --soft: #555555; }
@media (prefers-color-scheme: dark) { :root { --paper: #15181c; --text: #e8e8e8; --line: #3a4046; --soft: #a8adb3; } }
body { background: var(--paper); color: var(--text); font: 16px/1.5 Helvetica, Arial, sans-serif; margin: 0 auto;
       max-width: 1180px; padding: 1.5rem; }
table { border-collapse: collapse; margin: 0.8rem 0 0.3rem; font-size: 14px; }
th, td { border-bottom: 1px solid var(--line); padding: 0.25rem 0.8rem 0.25rem 0; text-align: left; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
figure { margin: 1.2rem 0; overflow-x: auto; } figcaption, .caption, .soft { color: var(--soft); font-size: 14px; }
nav a { margin-right: 1rem; } a { color: inherit; } .scroll { overflow-x: auto; }
"""

_SCRIPT = """
const themes = THEMES, figures = FIGURES;
function themed(figure, name) {
  const theme = themes[name], layout = structuredClone(figure.layout), data = structuredClone(figure.data);
  layout.paper_bgcolor = layout.plot_bgcolor = theme.paper;
  layout.font.color = theme.text;
  for (const key of Object.keys(layout)) if (/^[xy]axis/.test(key)) {
    Object.assign(layout[key], { gridcolor: theme.grid, linecolor: theme.line, tickcolor: theme.line });
  }
  for (const trace of data) { trace.line.color = trace.marker.color = trace.meta[name]; }
  return { data, layout };
}
"""

_SHOW = """
const dark = window.matchMedia("(prefers-color-scheme: dark)");
function showAll() {
  for (const [id, figure] of Object.entries(figures)) {
    const { data, layout } = themed(figure, dark.matches ? "dark" : "light");
    Plotly.react(document.getElementById("figure-" + id), data, layout, { responsive: true, displaylogo: false });
  }
}
dark.addEventListener("change", showAll);
showAll();
"""

_EXPORT = """
const sizes = SIZES, images = {};
(async () => {
  for (const [id, figure] of Object.entries(figures)) for (const name of Object.keys(themes)) {
    const spec = themed(figure, name);
    images[id + (name === "dark" ? "-dark" : "")] =
      await Plotly.toImage(spec, { format: "png", width: sizes.width, height: figure.layout.height, scale: 1 });
  }
  const found = document.createElement("pre");
  found.id = "images";
  found.textContent = JSON.stringify(images);
  document.body.append(found);
})();
"""


def report(title: str, lead: str, sections: Sequence[Section]) -> str:
    """The whole report."""
    figures = [figure for section in sections for figure in section.figures]
    links = " ".join(f'<a href="#{section.name}">{escape(section.title)}</a>' for section in sections)
    body = "\n".join(_section(section) for section in sections)
    return _document(
        title,
        f'<h1>{escape(title)}</h1>\n<p class="soft">{escape(lead)}</p>\n<nav>{links}</nav>\n{body}',
        _scripts(figures, _SHOW),
    )


def export_page(figures: Sequence[Figure]) -> str:
    """A page that draws every figure as a PNG, light and dark, and leaves them in its element ``images``."""
    return _document("figures", "", _scripts(figures, _EXPORT.replace("SIZES", json.dumps({"width": WIDTH}))))


def _document(title: str, body: str, scripts: str) -> str:
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
        f"<style>{_STYLE}</style></head>\n<body>\n{body}\n{scripts}\n</body></html>\n"
    )


def _scripts(figures: Sequence[Figure], then: str) -> str:
    drawn = {figure.name: draw(figure) for figure in figures}
    script = _SCRIPT.replace("THEMES", _embedded(THEMES)).replace("FIGURES", _embedded(drawn)) + then
    return f"<script>{get_plotlyjs()}</script>\n<script>{script}</script>"


def _embedded(content: Any) -> str:
    """JSON inside a script element, where ``</`` would end it."""
    return json.dumps(content, ensure_ascii=False).replace("</", "<\\/")


def _section(section: Section) -> str:
    parts = [f'<section id="{section.name}"><h2>{escape(section.title)}</h2>', f"<p>{escape(section.text)}</p>"]
    for figure in section.figures:
        parts.append(
            f'<figure><div id="figure-{figure.name}" class="figure"></div>'
            f"<figcaption>{escape(figure.caption)}</figcaption></figure>"
        )
    parts += [_table(table) for table in section.tables]
    return "\n".join([*parts, "</section>"])


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in table.head)
    rows = "\n".join(f"<tr>{''.join(_cell(value) for value in row)}</tr>" for row in table.rows)
    caption = f'<p class="caption">{escape(table.caption)}</p>' if table.caption else ""
    return (
        f'<h3>{escape(table.title)}</h3><div class="scroll"><table id="table-{table.name}"><tr>{head}</tr>\n{rows}\n'
        f"</table></div>{caption}"
    )


def _cell(value: object) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    kind = ' class="number"' if number else ""
    return f"<td{kind}>{escape(shown(value))}</td>"
