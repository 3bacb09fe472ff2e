#include "engine/page/page_style.h"

namespace tessera::engine {

std::string_view page_style() {
  return R"css(* { box-sizing: border-box; }
html { background: var(--paper); }
body { margin: 0 auto; padding: 28px 24px 48px; max-width: 1160px; background: var(--paper); color: var(--ink); font: 15px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif; }
header { border-bottom: 2px solid var(--ink); padding-bottom: 10px; margin-bottom: 16px; display: flex; flex-wrap: wrap; align-items: baseline; gap: 2px 16px; }
h1 { font-size: 28px; line-height: 1.15; margin: 0; font-weight: 650; letter-spacing: -.01em; overflow-wrap: anywhere; }
header p { margin: 0; color: var(--quiet); overflow-wrap: anywhere; }
.state { font-weight: 600; color: var(--ink); white-space: nowrap; }
.state::before { content: ""; display: inline-block; width: 9px; height: 9px; border-radius: 50%; margin-right: 7px; background: var(--c7); }
.state.running::before { background: var(--c0); } .state.finished::before { background: var(--c2); }
.state.interrupted::before { background: var(--c4); } .state.failed::before { background: var(--bad); }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(124px, 1fr)); gap: 14px 20px; margin: 0 0 18px; }
.figures dt { font-size: 12px; color: var(--quiet); }
.figures dd { margin: 0; font-size: 23px; line-height: 1.2; font-weight: 600; font-variant-numeric: tabular-nums; letter-spacing: -.01em; }
.figures small { display: block; font-size: 12px; line-height: 1.3; font-weight: 400; color: var(--quiet); letter-spacing: 0; }
.facts { margin-bottom: 8px; width: 100%; } .facts th { color: var(--quiet); width: 1%; white-space: nowrap; } .facts td { overflow-wrap: anywhere; }
section { margin-top: 30px; }
h2 { font-size: 17px; margin: 0 0 10px; padding-top: 7px; border-top: 1px solid var(--line); font-weight: 650; break-after: avoid; }
h2 + .note { margin-bottom: 8px; }
h3 { font-size: 14px; margin: 0 0 4px; }
.grid-of-2 { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 20px 36px; align-items: start; }
.grid-of-2 + .scroll { margin-top: 16px; }
.stack { display: grid; gap: 20px; min-width: 0; }
img.sheet { display: block; max-width: 100%; height: auto; border-radius: 3px; }
.missing { color: var(--quiet); font-size: 13px; padding-left: 18px; margin: 6px 0 0; }
footer { margin-top: 34px; padding-top: 8px; border-top: 1px solid var(--line); color: var(--quiet); font-size: 12px; }
@media screen and (max-width: 900px) { .grid-of-2 { grid-template-columns: minmax(0, 1fr); } }
@media screen and (max-width: 560px) {
  body { padding: 16px 14px 32px; } h1 { font-size: 23px; }
  .figures { grid-template-columns: repeat(2, minmax(0, 1fr)); }
}
@page { size: A4; margin: 14mm 12mm; }
@media print {
  body { padding: 0; max-width: none; font-size: 11px; }
  section { margin-top: 16px; } .figures dd { font-size: 17px; } .figures { grid-template-columns: repeat(7, auto); }
  .grid-of-2 { gap: 10px 20px; } table { font-size: 10px; }
}
)css";
}

}  // namespace tessera::engine
