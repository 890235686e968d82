"""Draw a report: one HTML file, with plotly's script inside, and the figures as PNGs.

1. The page loads nothing. A content security policy tells the browser so: no request leaves the machine.
2. Colours follow the reader's preference for light or dark, also while the page is open.
3. Styles can be told apart without colour. The colours are those of Okabe and Ito, which colour-blind people can tell
   apart; each mechanism has its own dash and marker besides, so that a figure survives greyscale.
4. PNGs are drawn by a headless Chromium, if there is one: plotly runs in a browser only.
"""

from __future__ import annotations

import base64
import json
import math
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from html import escape, unescape
from pathlib import Path
from typing import Any, NamedTuple

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs
from plotly.subplots import make_subplots

from idios.errors import IdiosError
from idios.evaluation.document import Figure, Panel, Section, Series, Table, format_cell

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
  const element = document.createElement("pre");
  element.id = "images";
  element.textContent = JSON.stringify(images);
  document.body.append(element);
})();
"""


def render_report(title: str, lead: str, sections: Sequence[Section]) -> str:
    """Render the whole report as HTML."""
    figures = [figure for section in sections for figure in section.figures]
    links = " ".join(f'<a href="#{section.name}">{escape(section.title)}</a>' for section in sections)
    body = "\n".join(_render_section(section) for section in sections)
    return _render_document(
        title,
        f'<h1>{escape(title)}</h1>\n<p class="soft">{escape(lead)}</p>\n<nav>{links}</nav>\n{body}',
        _render_scripts(figures, _SHOW),
    )


def render_export_page(figures: Sequence[Figure]) -> str:
    """Render a page that draws every figure as a PNG, light and dark, and leaves them in its element ``images``."""
    return _render_document(
        "figures", "", _render_scripts(figures, _EXPORT.replace("SIZES", json.dumps({"width": WIDTH})))
    )


def _render_document(title: str, body: str, scripts: str) -> str:
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
        f"<style>{_STYLE}</style></head>\n<body>\n{body}\n{scripts}\n</body></html>\n"
    )


def _render_scripts(figures: Sequence[Figure], then: str) -> str:
    drawn = {figure.name: draw_figure(figure) for figure in figures}
    script = _SCRIPT.replace("THEMES", _embed(THEMES)).replace("FIGURES", _embed(drawn)) + then
    return f"<script>{get_plotlyjs()}</script>\n<script>{script}</script>"


def _embed(content: Any) -> str:
    """Write JSON inside a script element, where ``</`` would end it."""
    return json.dumps(content, ensure_ascii=False).replace("</", "<\\/")


def _render_section(section: Section) -> str:
    parts = [f'<section id="{section.name}"><h2>{escape(section.title)}</h2>', f"<p>{escape(section.text)}</p>"]
    for figure in section.figures:
        parts.append(
            f'<figure><div id="figure-{figure.name}" class="figure"></div>'
            f"<figcaption>{escape(figure.caption)}</figcaption></figure>"
        )
    parts += [_render_table(table) for table in section.tables]
    return "\n".join([*parts, "</section>"])


def _render_table(table: Table) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in table.head)
    rows = "\n".join(f"<tr>{''.join(_render_cell(value) for value in row)}</tr>" for row in table.rows)
    caption = f'<p class="caption">{escape(table.caption)}</p>' if table.caption else ""
    return (
        f'<h3>{escape(table.title)}</h3><div class="scroll"><table id="table-{table.name}"><tr>{head}</tr>\n{rows}\n'
        f"</table></div>{caption}"
    )


def _render_cell(value: object) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    kind = ' class="number"' if number else ""
    return f"<td{kind}>{escape(format_cell(value))}</td>"


WIDTH = 1180
_ROW = 290
_ALONE = 430


class Style(NamedTuple):
    """How one mechanism looks wherever it appears."""

    light: str
    dark: str
    dash: str
    marker: str


STYLES = {
    "local": Style("#0072B2", "#56B4E9", "solid", "circle"),
    "second": Style("#0072B2", "#56B4E9", "solid", "circle"),
    "staircase": Style("#56B4E9", "#9AD4F5", "dot", "circle-open"),
    "third": Style("#56B4E9", "#9AD4F5", "dot", "circle-open"),
    "group2": Style("#009E73", "#2FD6A3", "dash", "triangle-up"),
    "group5": Style("#009E73", "#2FD6A3", "dot", "triangle-up-open"),
    "group10": Style("#009E73", "#2FD6A3", "dashdot", "triangle-down"),
    "group": Style("#009E73", "#2FD6A3", "dash", "triangle-up"),
    "inverse": Style("#CC79A7", "#E79BC5", "dash", "square"),
    "bounded": Style("#CC79A7", "#E79BC5", "dash", "square"),
    "unbounded": Style("#CC79A7", "#E79BC5", "dot", "square-open"),
    "differential": Style("#CC79A7", "#E79BC5", "solid", "square"),
    "durfee": Style("#B8860B", "#E69F00", "solid", "star"),
    "ladder": Style("#B8860B", "#E69F00", "dot", "star-open"),
    "positive": Style("#B8860B", "#E69F00", "dot", "star-open"),
    "google": Style("#777777", "#AAAAAA", "dash", "hexagon"),
    "huang": Style("#777777", "#AAAAAA", "dot", "hexagon-open"),
    "exponential": Style("#B8860B", "#E69F00", "dashdot", "diamond"),
    "smooth": Style("#D55E00", "#FF8A3D", "longdash", "x"),
    "smooth2": Style("#B8860B", "#E69F00", "dashdot", "diamond"),
    "tight": Style("#D55E00", "#FF8A3D", "dot", "x-open"),
    "tight2": Style("#D55E00", "#FF8A3D", "dashdot", "x-open"),
    "global": Style("#333333", "#DDDDDD", "longdashdot", "cross"),
    "maximum": Style("#009E73", "#2FD6A3", "dash", "triangle-up"),
    "gap": Style("#777777", "#AAAAAA", "dot", "line-ew-open"),
}


def draw_figure(figure: Figure) -> dict[str, Any]:
    """Draw one figure as plotly's data and layout, validated by plotly itself."""
    rows = math.ceil(len(figure.panels) / figure.columns)
    drawn = make_subplots(
        rows=rows,
        cols=figure.columns,
        subplot_titles=[panel.title for panel in figure.panels],
        horizontal_spacing=0.08 if figure.columns < 3 else 0.075,
        vertical_spacing=0.30 / rows if rows > 1 else 0,
        row_heights=[len(panel.categories) + 1 for panel in figure.panels] if figure.panels[0].categories else None,
    )
    named: set[str] = set()
    for i, panel in enumerate(figure.panels):
        row, column = i // figure.columns + 1, i % figure.columns + 1
        for series in panel.series:
            drawn.add_trace(
                _draw_trace(series, show=series.name not in named, many=len(panel.series[0].x) > 50), row, column
            )
            named.add(series.name)
        _draw_axes(drawn, panel, row, column)
    listed = max(len(panel.categories) for panel in figure.panels)
    legend_rows = 0 if listed else math.ceil(len(named) / 3)
    inner = _ALONE - 80 if rows == 1 else _ROW * rows
    inner = max(inner, sum(28 * len(panel.categories) + 90 for panel in figure.panels)) if listed else inner
    height = inner + 110 + 24 * legend_rows
    drawn.update_layout(
        template="none",
        title={"text": figure.title, "x": 0.01, "xanchor": "left", "y": 1 - 18 / height, "font": {"size": 18}},
        font={"family": "Helvetica, Arial, sans-serif", "size": 13},
        margin={"l": 70, "r": 20, "t": 70, "b": 70 + 24 * legend_rows},
        height=height,
        legend={"orientation": "h", "x": 0, "y": -60 / inner, "yanchor": "top", "font": {"size": 12}},
        hovermode="closest",
        showlegend=not listed,
    )
    described: dict[str, Any] = drawn.to_plotly_json()
    return described


def _draw_trace(series: Series, *, show: bool, many: bool) -> go.Scatter:
    style = STYLES[series.style]
    y = [None if isinstance(v, float) and not math.isfinite(v) else v for v in series.y]
    marker = {"symbol": style.marker, "size": 8, "color": style.light}
    return go.Scatter(
        x=list(series.x),
        y=y,
        name=series.name,
        mode="markers" if series.dots else "lines" if many else "lines+markers",
        line={"color": style.light, "dash": style.dash, "width": 2},
        marker=marker
        | (
            {"symbol": "circle-open", "size": 10, "line": {"width": 1.5}}
            if series.dots
            else {"size": 6 if len(series.x) > 1 else 11}
        ),
        legendgroup=series.name,
        showlegend=show,
        meta={"light": style.light, "dark": style.dark},
    )


def _draw_axes(drawn: go.Figure, panel: Panel, row: int, column: int) -> None:
    line = {
        "showline": True,
        "ticks": "outside",
        "zeroline": False,
        "exponentformat": "power",
        "tickfont": {"size": 12},
    }
    drawn.update_xaxes(title_text=panel.x_label, title_standoff=6, title_font_size=13, row=row, col=column, **line)
    drawn.update_yaxes(
        title_text=panel.y_label, title_standoff=6, title_font_size=13, row=row, col=column, automargin=True, **line
    )
    if panel.log_x:
        drawn.update_xaxes(
            type="log", row=row, col=column, **_place_ticks([x for series in panel.series for x in series.x])
        )
    if panel.log_y:
        visible = panel.y_range or [y for series in panel.series for y in series.y]
        drawn.update_yaxes(type="log", row=row, col=column, **_place_ticks(visible))
    if panel.y_range is not None:
        drawn.update_yaxes(
            range=[math.log10(end) if panel.log_y else end for end in panel.y_range], row=row, col=column
        )
    if panel.categories:
        listed = list(panel.categories)
        drawn.update_yaxes(type="category", categoryarray=listed, range=[len(listed) - 0.5, -0.5], row=row, col=column)


def _place_ticks(values: Sequence[float | str | None]) -> dict[str, Any]:
    """Ticks of a log axis that are never fewer than two: powers of ten, or 1, 2, 5 where it spans little."""
    logs = [math.log10(v) for v in values if isinstance(v, int | float) and 0 < v < math.inf]
    if not logs:
        return {}
    low, high = min(logs), max(logs)
    if high - low < 0.7:  # so that single values, and nearly equal ones, do not fill the axis
        low, high = (low + high) / 2 - 0.5, (low + high) / 2 + 0.5
    low, high = low - 0.05 * (high - low), high + 0.05 * (high - low)
    steps = (1, 2, 5) if high - low < 2.5 else (1,)
    every = 1 if high - low < 8 else 2
    powers = range(math.floor(low), math.ceil(high) + 1)
    ticks = [step * 10.0**power for power in powers if power % every == 0 for step in steps]
    ticks = [tick for tick in ticks if low <= math.log10(tick) <= high]
    texts = [f"{tick:g}" if 1e-3 <= tick < 1e4 else _format_power(tick) for tick in ticks]
    return {"tickvals": ticks, "ticktext": texts, "range": [low, high]}


def _format_power(tick: float) -> str:
    power = math.floor(math.log10(tick) + 1e-9)
    factor = round(tick / 10.0**power)
    return f"{'' if factor == 1 else f'{factor}·'}10<sup>{'−' if power < 0 else ''}{abs(power)}</sup>"


PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--no-first-run",
)
TIMEOUT = 180


def find_chromium() -> str | None:
    """Find the browser's program; None if there is none on the search path."""
    return next((path for name in PROGRAMS if (path := shutil.which(name))), None)


def write_images(figures: Sequence[Figure], folder: Path, program: str) -> list[Path]:
    """Draw every figure, light and dark, into ``folder``: name.png and name-dark.png."""
    with tempfile.TemporaryDirectory(prefix="idios-") as place:
        page = Path(place) / "figures.html"
        page.write_text(render_export_page(figures), encoding="utf-8")
        command = [
            program,
            *OPTIONS,
            f"--user-data-dir={place}/profile",
            "--virtual-time-budget=60000",
            "--dump-dom",
            page.as_uri(),
        ]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise IdiosError(f"{program} could not draw the figures: {error}") from error
    images = re.search(r'<pre id="images">(.*?)</pre>', done.stdout, flags=re.DOTALL)
    if images is None:
        raise IdiosError(f"{program} drew no figures (exit code {done.returncode})")
    written = []
    for name, address in json.loads(unescape(images[1])).items():
        path = folder / f"{name}.png"
        path.write_bytes(base64.b64decode(address.partition(",")[2]))
        written.append(path)
    return written
