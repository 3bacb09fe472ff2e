#include "engine/chart/style.h"

namespace tessera::engine {

std::string_view chart_style() {
  // The colours are those of Okabe and Ito, darkened for white paper and lightened for a dark
  // screen, so that readers with any colour vision tell them apart.
  return R"css(:root {
  color-scheme: light dark;
  --paper: #fff; --card: #f6f7f8; --ink: #1c2126; --quiet: #5b6570; --line: #d5dade; --grid: #e6e9ec;
  --c0: #1f6fb2; --c1: #cf5c00; --c2: #00835d; --c3: #a8528c; --c4: #b07d00; --c5: #2f95c4; --c6: #6b5fa8; --c7: #77808a;
  --hit: #1f6fb2; --miss: #cf5c00; --bad: #b3261e; --inverse: #fff; --pale: .38; --tile: .26;
}
@media (prefers-color-scheme: dark) {
  @media screen {
    :root {
      --paper: #14181c; --card: #1c2127; --ink: #e4e8eb; --quiet: #98a3ad; --line: #39424b; --grid: #272e35;
      --c0: #5ea8e8; --c1: #f08c3d; --c2: #35bd90; --c3: #d68bbd; --c4: #dcb13f; --c5: #7fcdf0; --c6: #a99ee6; --c7: #9aa4ae;
      --hit: #3f8fd6; --miss: #e2782a; --bad: #ff8a80; --inverse: #fff; --pale: .42; --tile: .34;
    }
  }
}
@media print { :root { color-scheme: light; } }
.c0 { --c: var(--c0); } .c1 { --c: var(--c1); } .c2 { --c: var(--c2); } .c3 { --c: var(--c3); }
.c4 { --c: var(--c4); } .c5 { --c: var(--c5); } .c6 { --c: var(--c6); } .c7 { --c: var(--c7); }
figure { margin: 0; min-width: 0; position: relative; break-inside: avoid; }
figure.wide { grid-column: 1 / -1; } figure.tall { grid-row: span 2; }
figcaption { font-size: 14px; }
figcaption span { color: var(--quiet); font-size: 12px; margin-left: 4px; }
.drawing.narrow { display: none; }
.drawing svg, .cards svg { display: block; width: 100%; height: auto; overflow: visible; }
.note { color: var(--quiet); font-size: 12px; margin: 2px 0 0; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 14px; list-style: none; margin: 2px 0 4px; padding: 0; font-size: 12px; color: var(--quiet); }
.legend i { display: inline-block; width: 14px; height: 9px; margin-right: 5px; background: var(--c); border-radius: 1px; }
.legend .line { height: 2px; vertical-align: 3px; }
.legend .dashed { height: 0; vertical-align: 3px; background: none; border-top: 2px dashed var(--c); }
.legend .pale { opacity: var(--pale); }
.legend .dot { width: 7px; height: 7px; border-radius: 50%; }
.legend .hatched { background: repeating-linear-gradient(45deg, var(--ink) 0 1px, transparent 1px 3px); outline: 1px solid var(--line); }
/* 13px is the largest that drawings leave room for: kLargestText. */
svg text { font-size: 11px; fill: var(--quiet); font-variant-numeric: tabular-nums; }
svg .end { text-anchor: end; } svg .middle { text-anchor: middle; }
svg .strong-text { fill: var(--ink); }
.grid path { stroke: var(--grid); fill: none; shape-rendering: crispEdges; }
.grid .base { stroke: var(--line); }
.series { fill: none; stroke: var(--c); stroke-width: 1.6; stroke-linejoin: round; stroke-linecap: round; }
.series.faint { stroke-width: 1; opacity: var(--pale); }
.series.dashed { stroke-dasharray: 5 3; stroke-linecap: butt; }
.dots { fill: none; stroke: var(--c); stroke-width: 5; stroke-linecap: round; }
.band { fill: var(--c); opacity: .2; }
path.level { stroke: var(--ink); stroke-width: 1; stroke-dasharray: 2 2; fill: none; }
text.level { fill: var(--ink); }
.mark path { fill: var(--quiet); stroke: none; }
.mark.strong path { fill: none; stroke: var(--bad); stroke-width: 1; stroke-dasharray: 3 2; }
.mark.strong text { fill: var(--bad); }
.bar rect { fill: var(--c); } .bar.pale rect { fill-opacity: var(--pale); stroke: var(--c); stroke-width: .7; }
.paper { fill: var(--card); stroke: var(--line); }
.hit { fill: var(--hit); } .miss { fill: var(--miss); }
svg .inverse { fill: var(--inverse); } svg .rising { fill: var(--quiet); }
.spans rect, .spans path { fill: var(--c); } .spans .pale { fill-opacity: var(--pale); }
.spans rect:hover { stroke: var(--ink); stroke-width: 1; }
.cards { list-style: none; display: grid; grid-template-columns: repeat(auto-fill, minmax(235px, 1fr)); gap: 18px 22px; margin: 8px 0; padding: 0; }
.cards li { break-inside: avoid; max-width: 300px; } .cards h4 { margin: 0 0 4px; font-size: 13px; } .cards p { margin: 1px 0 0; font-size: 12px; color: var(--quiet); }
.tile rect { fill: var(--c); fill-opacity: var(--tile); stroke: var(--c); stroke-width: 1; }
.ranks text { fill: var(--ink); font-weight: 600; pointer-events: none; paint-order: stroke; stroke: var(--paper); stroke-width: 3px; stroke-linejoin: round; }
.tile:hover rect { fill-opacity: .6; }
.halo rect { fill: url(#hatch); pointer-events: none; } #hatch path { stroke: var(--ink); stroke-width: 1.2; }
.arrow { stroke: var(--quiet); fill: none; }
.patterns { position: absolute; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { padding: 2px 10px 2px 0; text-align: right; font-weight: 400; white-space: nowrap; border-bottom: 1px solid var(--grid); vertical-align: top; }
th:first-child, .text { text-align: left; } td.text { white-space: normal; } thead th { color: var(--quiet); border-color: var(--line); }
.scroll { overflow-x: auto; }
details { font-size: 12px; margin-top: 2px; } summary { color: var(--quiet); cursor: pointer; width: max-content; }
.read-out { position: absolute; pointer-events: none; background: var(--paper); border: 1px solid var(--line); border-radius: 3px; padding: 3px 7px; font-size: 12px; box-shadow: 0 1px 4px #0003; white-space: nowrap; z-index: 1; font-variant-numeric: tabular-nums; }
.read-out i { display: inline-block; width: 8px; height: 8px; border-radius: 50%; background: var(--c); margin-right: 5px; }
.cursor { stroke: var(--quiet); stroke-width: 1; pointer-events: none; }
@media print {
  details, .read-out { display: none; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
@media screen and (max-width: 900px) {
  figure.wide .drawing { overflow-x: auto; } figure.wide .drawing svg { min-width: 760px; }
  figure.wide svg text { font-size: 13px; }
}
@media screen and (max-width: 560px) {
  figure svg text { font-size: 13px; }
  .drawing.broad { display: none; } .drawing.narrow { display: block; } figure.wide .drawing.narrow svg { min-width: 0; }
  tbody th { white-space: normal; overflow-wrap: anywhere; }
  .broad-table, .broad-table tbody { display: block; } .broad-table thead { display: none; }
  .broad-table tr { display: flex; flex-wrap: wrap; gap: 0 12px; padding: 3px 0; border-bottom: 1px solid var(--grid); }
  .broad-table th, .broad-table td { border: 0; padding: 0; white-space: normal; } .broad-table th { flex: 0 0 100%; font-weight: 600; }
  .broad-table td::before { content: attr(data-name) " "; color: var(--quiet); }
}
@media print { figure svg text { font-size: 13px; } }
)css";
}

std::string_view chart_script() {
  return R"js("use strict";
const numbers = text => text.split(" ").map(Number);
const shown = value => value === 0 ? "0" : Math.abs(value) >= 1e5 || Math.abs(value) < 1e-3 ? value.toExponential(2) : String(Number(value.toPrecision(4)));
const addReadOut = svg => {
  const [left, right, xLow, xHigh] = numbers(svg.dataset.x);
  const [bottom, top, yLow, yHigh, log] = numbers(svg.dataset.y);
  const xOf = px => xLow + (px - left) / (right - left) * (xHigh - xLow);
  const yOf = px => {
    const share = (px - bottom) / (top - bottom);
    return log ? yLow * (yHigh / yLow) ** share : yLow + share * (yHigh - yLow);
  };
  let series = null;
  const read = () => [...svg.querySelectorAll("path.series")].map(path => ({
    name: path.dataset.name,
    colour: [...path.classList].find(name => /^c\d$/.test(name)),
    points: [...path.getAttribute("d").matchAll(/[ML](-?[\d.]+) (-?[\d.]+)/g)].map(point => [Number(point[1]), Number(point[2])])
  })).filter(each => each.points.length > 0);
  const box = document.createElement("div");
  box.className = "read-out";
  box.hidden = true;
  const cursor = document.createElementNS("http://www.w3.org/2000/svg", "path");
  cursor.setAttribute("class", "cursor");
  svg.closest("figure").append(box);
  svg.append(cursor);
  const row = (text, colour) => {
    const line = document.createElement("div");
    if (colour) {
      const dot = document.createElement("i");
      dot.className = colour;
      line.append(dot);
    }
    line.append(text);
    box.append(line);
  };
  const hide = () => {
    box.hidden = true;
    cursor.removeAttribute("d");
  };
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("pointermove", event => {
    series ??= read();
    const frame = svg.getBoundingClientRect();
    const figure = svg.closest("figure").getBoundingClientRect();
    const scale = svg.viewBox.baseVal.width / frame.width;
    const px = (event.clientX - frame.left) * scale;
    if (px < left - 4 || px > right + 4 || series.length === 0) {
      hide();
      return;
    }
    const nearest = points => points.reduce((best, point) => Math.abs(point[0] - px) < Math.abs(best[0] - px) ? point : best);
    const found = series.map(each => ({ ...each, point: nearest(each.points) })).filter(each => Math.abs(each.point[0] - px) < 24);
    if (found.length === 0) {
      hide();
      return;
    }
    const at = found.reduce((best, each) => Math.abs(each.point[0] - px) < Math.abs(best - px) ? each.point[0] : best, found[0].point[0]);
    box.replaceChildren();
    row([svg.dataset.xName, shown(xOf(at)), svg.dataset.xUnit].filter(Boolean).join(" "));
    for (const each of found) {
      row([each.name + (each.name ? ":" : ""), shown(yOf(each.point[1])), svg.dataset.yUnit].filter(Boolean).join(" "), each.colour);
    }
    cursor.setAttribute("d", `M${at} ${top}V${bottom}`);
    box.hidden = false;
    const x = event.clientX - figure.left;
    box.style.left = `${x + 14 + box.offsetWidth > figure.width ? Math.max(0, x - 14 - box.offsetWidth) : x + 14}px`;
    box.style.top = `${event.clientY - figure.top + 14}px`;
  });
};
for (const svg of document.querySelectorAll("svg[data-x]")) addReadOut(svg);
)js";
}

std::string_view chart_script_hash() {
  return "sha256-JaKw7lgrbRcXcssJ6m18MT8XcUthAylO6ru+5/yAJwo=";
}

}  // namespace tessera::engine
