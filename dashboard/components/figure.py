"""A chart on a page, and two buttons under it that save it as PNG or SVG.

Plotly's own bar has one button for one format, shown on hover. Streamlit does not hand its Plotly to others, so the
buttons save what the page shows: they join the layers of the drawing into one SVG, on the ground of the theme, and for
a PNG let the browser paint it at three times the size. Nothing is asked of the server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from dashboard.charts.palette import colours
from dashboard.components.theme import ground

if TYPE_CHECKING:
    import plotly.graph_objects as go

_HTML = """<div class="save"><span>Save as</span>
<button type="button" data-format="png">PNG</button><button type="button" data-format="svg">SVG</button></div>"""

_CSS = """
.save { display: flex; gap: 0.25rem; justify-content: flex-end; align-items: center; font-size: 0.8125rem;
  font-family: var(--st-font); color: var(--st-text-color); }
.save span { opacity: 0.75; }
button { font: inherit; color: var(--st-link-color); background: none; border: 1px solid transparent;
  border-radius: 0.3rem; padding: 0.125rem 0.5rem; min-height: 1.75rem; cursor: pointer; }
button:hover { border-color: var(--st-border-color); }
button:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 1px; }
"""

_SCRIPT = r"""
const SVG = "http://www.w3.org/2000/svg";
const SCALE = 3;

function layers(key) {
  const element = document.querySelector(".st-key-" + key.trim().replace(/[^a-zA-Z0-9_-]/g, "-"));
  return element ? [...element.querySelectorAll(".js-plotly-plot .main-svg")] : [];
}

// The layers lie on top of each other and have one size; what is only there on hover is left out.
function joined(parts, ground) {
  const { width, height } = parts[0].getBoundingClientRect();
  const drawing = document.createElementNS(SVG, "svg");
  const size = { width, height, viewBox: `0 0 ${width} ${height}` };
  for (const [name, value] of Object.entries(size)) drawing.setAttribute(name, value);
  const paper = document.createElementNS(SVG, "rect");
  for (const [name, value] of Object.entries({ width, height, fill: ground })) paper.setAttribute(name, value);
  drawing.append(paper);
  for (const part of parts) for (const child of part.children) drawing.append(child.cloneNode(true));
  for (const hovered of drawing.querySelectorAll(".hoverlayer, .draglayer, .zoomlayer")) hovered.remove();
  return { drawing, width, height };
}

// A picture knows no fonts of the page: the file of the chart's font goes along, where the page has one.
async function withFont(drawing) {
  try {
    const wanted = "Source Sans";
    for (const sheet of document.styleSheets) {
      let rules = [];
      try { rules = [...sheet.cssRules]; } catch { continue; }
      for (const rule of rules) {
        if (!(rule instanceof CSSFontFaceRule)) continue;
        const family = rule.style.getPropertyValue("font-family").replace(/["']/g, "");
        const italic = rule.style.getPropertyValue("font-style") === "italic";
        const source = /url\(["']?([^"')]+)/.exec(rule.style.getPropertyValue("src"));
        if (family !== wanted || italic || !source) continue;
        const file = await (await fetch(new URL(source[1], sheet.href || document.baseURI))).blob();
        const address = await new Promise((done, fail) => {
          const reader = new FileReader();
          reader.onload = () => done(reader.result);
          reader.onerror = fail;
          reader.readAsDataURL(file);
        });
        const style = document.createElementNS(SVG, "style");
        const weight = rule.style.getPropertyValue("font-weight") || "normal";
        style.textContent = `@font-face { font-family: "${wanted}"; font-weight: ${weight}; src: url(${address}); }`;
        drawing.prepend(style);
        return;
      }
    }
  } catch { /* Another font of the reader's machine is no reason to save nothing. */ }
}

function text(drawing) {
  // Where the page has a base address, Plotly's references to clip paths name it.
  return new XMLSerializer().serializeToString(drawing).replace(/url\((&quot;|["'])?https?:[^#)]*#/g, "url($1#");
}

function save(content, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

async function painted(drawing, width, height) {
  const address = URL.createObjectURL(new Blob([text(drawing)], { type: "image/svg+xml" }));
  try {
    const picture = new Image();
    await new Promise((done, fail) => { picture.onload = done; picture.onerror = fail; picture.src = address; });
    const canvas = document.createElement("canvas");
    canvas.width = Math.round(width * SCALE);
    canvas.height = Math.round(height * SCALE);
    canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
    return await new Promise((done) => canvas.toBlob(done, "image/png"));
  } finally {
    URL.revokeObjectURL(address);
  }
}

export default function ({ data, parentElement }) {
  for (const button of parentElement.querySelectorAll("button")) {
    const format = button.dataset.format;
    button.setAttribute("aria-label", `Save as ${format.toUpperCase()}: ${data.label}`);
    button.onclick = async () => {
      const parts = layers(data.chart);
      if (!parts.length) return;
      const { drawing, width, height } = joined(parts, data.ground);
      const name = `${data.name}.${format}`;
      if (format === "svg") {
        save(new Blob([text(drawing)], { type: "image/svg+xml" }), name);
        return;
      }
      await withFont(drawing);
      const picture = await painted(drawing, width, height);
      if (picture) save(picture, name);
    };
  }
}
"""


def draw_chart(figure: go.Figure, *, config: dict[str, Any], key: str, alt: str) -> None:
    """Draw a chart with its save buttons; its data belongs into an expander right after it.

    Args:
        figure: of ``dashboard.charts``.
        config: the chart's ``CONFIG``, which names its files.
        key: of the chart, one a page.
        alt: what it shows, in words; the accessible name.
    """
    data = {
        "chart": key,
        "label": alt,
        "name": str(config["toImageButtonOptions"]["filename"]),
        "ground": colours(ground()).ground,
    }
    with st.container(gap="xxsmall"):
        st.plotly_chart(figure, theme=None, config=config, key=key, alt=alt)
        _component()(key=f"{key}_save", data=data)


@st.cache_resource
def _component() -> Any:
    return st.components.v2.component("save_chart", html=_HTML, css=_CSS, js=_SCRIPT)
