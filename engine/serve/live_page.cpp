#include "engine/serve/live_page.h"

#include <chrono>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include "engine/chart/markup.h"
#include "engine/page/page.h"

namespace tessera::engine {

namespace {

constexpr const char* kStyle = R"css(<style>
html { overflow-anchor: none; }
body { padding-bottom: 84px; }
#live { position: fixed; inset: auto 0 0; z-index: 2; margin: 0; padding: 9px max(24px, calc(50vw - 556px)) calc(9px + env(safe-area-inset-bottom)); background: var(--card); border-top: 1px solid var(--line); font-size: 13px; line-height: 1.35; font-variant-numeric: tabular-nums; }
#live::before { content: ""; display: inline-block; width: 9px; height: 9px; border-radius: 50%; margin-right: 8px; background: var(--c2); }
#live.quiet::before { background: var(--c4); } #live.lost { color: var(--bad); } #live.lost::before { background: var(--bad); } #live.over::before { background: var(--c7); }
@media (max-width: 560px) { #live { padding-left: 14px; padding-right: 14px; } }
@media print { #live { display: none; } }
</style>
)css";

}  // namespace

std::string live_page_start() {
  return page_start("Tessera", kStyle);
}

std::string live_page_end(const std::string& base, const std::string& folder) {
  return fmt::format(
      "<footer>Served by tessera top from {}.</footer>\n<script src=\"{}live.js\"></script>\n"
      "</body>\n</html>\n",
      escaped(folder),
      base);
}

std::string live_state_html(const LiveState& state) {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return fmt::format(
      "<p id=\"live\" data-mark=\"{}\" data-state=\"{}\" data-age=\"{:.1f}\" "
      "data-quiet=\"{:.0f}\">As of {:%H:%M:%S} UTC. Scripts are off: reload the page for "
      "news.</p>\n",
      state.mark,
      state.killed ? "killed" : name_of(state.run),
      state.age_s,
      state.quiet_s,
      fmt::gmtime(now));
}

std::string_view live_script() {
  return R"js((() => {
  const seen_ms = 2000, hidden_ms = 30000, longest_ms = 15000, answer_ms = 10000, quiet_s = 15, hold_ms = 10000;
  const base = new URL(".", document.currentScript.src);
  const bar = document.getElementById("live");
  let state = bar.dataset, heard = Date.now(), failures = 0, timer = 0, asking = false;
  const waiting = new Map();  // parts that a reader is at, by id: what they are to become, since when

  const duration = seconds => {
    const whole = Math.max(0, Math.round(seconds));
    return whole < 100 ? `${whole} s` : whole < 6000 ? `${Math.round(whole / 60)} min` : `${Math.round(whole / 3600)} h`;
  };
  const tell = () => {
    const passed = (Date.now() - heard) / 1000;
    const age = Number(state.age) + passed, quiet = Number(state.quiet) + passed;
    const over = ["finished", "interrupted", "failed", "killed"].includes(state.state);
    const gone = { finished: "The run has finished", interrupted: "The run was interrupted", failed: "The run has failed" }[state.state] ?? "The run's processes are gone";
    const [look, text] =
      failures > 0 && over ? ["over", `${gone}, and the server no longer answers. This is the last state that it told.`]
      : failures > 0 && age > 6 ? ["lost", `No connection to the server. What you see is ${duration(age)} old.`]
      : state.state === "killed" ? ["quiet", `${gone}. It may go on. Looked ${duration(age)} ago.`]
      : over ? ["over", `${gone}. This is its last state.`]
      : state.state === "empty" ? ["quiet", `No run is here yet. Looked ${duration(age)} ago.`]
      : quiet > quiet_s ? ["quiet", `The run's folder says nothing for ${duration(quiet)}.`]
      : ["", `${duration(age)} ago`];
    bar.className = look;
    if (bar.textContent !== text) bar.textContent = text;
  };

  // Elements of a part that are there again in what it becomes, by the name above them and their number.
  const named = (part, what) => {
    const found = new Map(), counts = {};
    for (const element of part.querySelectorAll(what)) {
      const name = element.closest("[id]").id;
      counts[name] = (counts[name] ?? 0) + 1;
      found.set(`${name} ${counts[name]}`, element);
    }
    return found;
  };
  const replace = (old, fresh) => {
    const folds = named(fresh, "details"), boxes = named(fresh, ".scroll, .drawing");
    for (const [name, fold] of named(old, "details")) if (folds.has(name)) folds.get(name).open = fold.open;
    const moved = [...named(old, ".scroll, .drawing")].map(([name, box]) => [boxes.get(name), box.scrollLeft]).filter(([box, left]) => box && left > 0);
    const focused = [...named(old, "summary")].find(([, element]) => element === document.activeElement)?.[0];
    old.replaceWith(fresh);
    for (const [box, left] of moved) box.scrollLeft = left;
    for (const svg of fresh.querySelectorAll("svg[data-x]")) addReadOut(svg);
    named(fresh, "summary").get(focused)?.focus({ preventScroll: true });
  };
  // Whether its reader has selected some of it or reads values of a chart.
  const is_read = part => {
    const selected = getSelection();
    return (selected.rangeCount > 0 && !selected.isCollapsed && selected.getRangeAt(0).intersectsNode(part)) || part.querySelector(".read-out:not([hidden])");
  };
  const show = () => {
    const top = element => element.getBoundingClientRect().top;
    const at = scrollY > 0 ? [...document.querySelectorAll("[id^=part-], section[id], figure[id]")].filter(element => element.getClientRects().length && top(element) <= 90).pop() : null;
    const before = at && top(at);
    let any = false;
    for (const [id, { fresh, since }] of [...waiting]) {
      const old = document.getElementById(id);
      if (old && is_read(old) && Date.now() - since < hold_ms) continue;
      waiting.delete(id);
      if (old) replace(old, fresh);
      any = true;
    }
    const after = any && at && document.getElementById(at.id);
    if (after) scrollBy({ top: top(after) - before, behavior: "instant" });
    if (any) document.title = document.querySelector("h1")?.textContent ?? document.title;
  };

  const ask = async () => {
    if (asking) return;
    asking = true;
    clearTimeout(timer);
    const stop = new AbortController(), late = setTimeout(() => stop.abort(), answer_ms);
    try {
      const answer = await fetch(new URL(`changes?since=${state.mark}`, base), { cache: "no-store", signal: stop.signal });
      if (!answer.ok) throw new Error(String(answer.status));
      const news = new DOMParser().parseFromString(await answer.text(), "text/html");
      state = news.getElementById("live").dataset;
      heard = Date.now();
      failures = 0;
      for (const fresh of news.querySelectorAll("[id^=part-]")) waiting.set(fresh.id, { fresh, since: waiting.get(fresh.id)?.since ?? heard });
    } catch {
      ++failures;
    } finally {
      clearTimeout(late);
      asking = false;
      timer = setTimeout(ask, document.visibilityState === "hidden" ? hidden_ms : Math.min(seen_ms * 2 ** Math.min(failures, 4), longest_ms));
    }
    show();
    tell();
  };
  document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && ask());
  addEventListener("online", ask);
  document.title = document.querySelector("h1")?.textContent ?? document.title;
  setInterval(() => { show(); tell(); }, 1000);
  tell();
  timer = setTimeout(ask, seen_ms);
})();
)js";
}

}  // namespace tessera::engine
