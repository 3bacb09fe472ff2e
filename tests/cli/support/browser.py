#!/usr/bin/env python3
"""A page in a headless Chromium, over a pipe: checks it, and takes pictures of it.

    browser.py check PAGE.html        prints what is wrong with a page of `tessera report`, and ends with 1 if anything is
    browser.py picture PAGE.html OUT.png [--dark] [--width N] [--from ID] [--to ID] [--height N]
    browser.py pdf PAGE.html OUT.pdf
    browser.py watch URL COMMAND TEXT [--width N]

`watch` opens a page of `tessera top --serve`, scrolls, unfolds numbers, runs a shell command, and waits until a part of the page
has the text: the reader must still be where he was.

A page has to draw every chart, to say nothing on the console and to ask for nothing but itself.
"""

import argparse
import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

A4 = 703  # pixels of a page without its margins
SECONDS = 60  # for one answer

# Of each drawing: what it is, and the size of what is drawn in it.
DRAWINGS = """
JSON.stringify([...document.querySelectorAll("main svg, figure svg, .cards svg")].filter(svg => svg.getClientRects().length).map(svg => {
  const box = svg.getBBox();
  const shapes = [...svg.querySelectorAll("path, rect")].filter(shape => {
    const size = shape.getBBox();
    return !shape.closest(".grid") && (size.width > 0 || size.height > 0 || /h0/.test(shape.getAttribute("d")));
  });
  const style = svg.querySelector("text") ? getComputedStyle(svg.querySelector("text")).fontSize : "";
  return {
    name: svg.closest("[id]").id, width: box.width, height: box.height, shapes: shapes.length, font: style,
    seen: svg.getBoundingClientRect().width, figure: svg.closest("figure, li").getBoundingClientRect().width,
    right: svg.closest("figure, li").getBoundingClientRect().right
  };
}))
"""
# What cannot be read: texts of a drawing that cover each other, leave their drawing or are tiny, and what is cut by the page
# and does not scroll in a box of its own. Texts may be slanted: their boxes are compared by separating axes.
TEXTS = """
JSON.stringify((() => {
  const found = [];
  const corners = text => {
    const box = text.getBBox(), matrix = text.getScreenCTM(), trim = 0.15 * box.height;
    return [[0, 0], [1, 0], [1, 1], [0, 1]].map(([x, y]) =>
      new DOMPoint(box.x + x * box.width, box.y + trim + y * (box.height - 2 * trim)).matrixTransform(matrix));
  };
  const apart = (a, b) => [a, b].some(box => [0, 1].some(side => {
    const axis = { x: box[side + 1].x - box[side].x, y: box[side + 1].y - box[side].y };
    const length = Math.hypot(axis.x, axis.y) || 1;
    const range = points => { const at = points.map(point => (point.x * axis.x + point.y * axis.y) / length); return [Math.min(...at), Math.max(...at)]; };
    const [[low, high], [from, to]] = [range(a), range(b)];
    return high <= from + 1 || to <= low + 1;
  }));
  for (const svg of [...document.querySelectorAll("svg")].filter(svg => svg.getClientRects().length)) {
    const name = svg.closest("[id]")?.id, frame = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")].filter(text => text.textContent.trim()).map(text => ({ text: text.textContent, box: corners(text) }));
    texts.forEach((one, i) => texts.slice(i + 1).forEach(other => {
      if (!apart(one.box, other.box)) found.push(`${name}: "${one.text}" covers "${other.text}"`);
    }));
    for (const { text, box } of texts) {
      if (box.some(point => point.x < frame.left - 2 || point.x > frame.right + 2 || point.y < frame.top - 2 || point.y > frame.bottom + 2))
        found.push(`${name}: "${text}" leaves its drawing`);
      if (Math.hypot(box[3].x - box[0].x, box[3].y - box[0].y) < 4.5) found.push(`${name}: "${text}" is too small`);
    }
  }
  for (const element of document.querySelectorAll("body *")) {
    const box = element.getBoundingClientRect();
    if (!element.closest("svg, .scroll > *, .drawing > *, .read-out") && box.width > 0 && (box.right > innerWidth + 1 || box.left < -1))
      found.push(`<${element.tagName.toLowerCase()}> is cut: ${element.textContent.slice(0, 40)}`);
  }
  if (innerWidth < 500) for (const box of document.querySelectorAll(".scroll, .drawing"))
    if (box.scrollWidth > box.clientWidth + 1) found.push(`${box.closest("[id]").id}: has to be scrolled: ${box.textContent.slice(0, 40)}`);
  return found;
})())
"""
PAGE = """
JSON.stringify({ figures: document.querySelectorAll("figure").length, width: document.documentElement.scrollWidth,
  seen: innerWidth, height: document.documentElement.scrollHeight, read: document.querySelectorAll(".read-out").length,
  lines: document.querySelectorAll("svg[data-x]").length, title: document.title })
"""


class Browser:
    def __init__(self, width=1160, height=900):
        program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        if program is None:
            raise FileNotFoundError("chromium is not installed (package chromium)")
        self.folder = tempfile.mkdtemp()
        to_read, self.write_end = os.pipe()
        self.read_end, to_write = os.pipe()
        self.process = subprocess.Popen(
            ["/bin/sh", "-c", f'exec "$@" 3<&{to_read} 4>&{to_write}', "sh", program, "--headless=new", "--no-sandbox", "--disable-gpu",
             "--no-first-run", "--hide-scrollbars", f"--user-data-dir={self.folder}", f"--window-size={width},{height}",
             "--remote-debugging-pipe", "about:blank"],
            pass_fds=(to_read, to_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.rest = b""
        self.number = 0
        self.events = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = None
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def message(self, until):
        os.set_blocking(self.read_end, False)
        while b"\0" not in self.rest:
            if time.monotonic() > until:
                raise TimeoutError("the browser does not answer")
            try:
                part = os.read(self.read_end, 1 << 20)
                if not part:
                    raise EOFError("the browser has ended")
                self.rest += part
            except BlockingIOError:
                time.sleep(0.005)
        text, _, self.rest = self.rest.partition(b"\0")
        return json.loads(text)

    def call(self, method, **parameters):
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters}
        if getattr(self, "session", None):
            request["sessionId"] = self.session
        os.write(self.write_end, json.dumps(request).encode() + b"\0")
        until = time.monotonic() + SECONDS
        while True:
            answer = self.message(until)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, method):
        until = time.monotonic() + SECONDS
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self.message(until))

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["text"])
        return result["result"].get("value")

    def open(self, page):
        self.events = []
        self.call("Page.navigate", url=page if "://" in page else pathlib.Path(page).resolve().as_uri())
        self.wait_for("Page.loadEventFired")

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 700)

    def dark(self, dark, media=""):
        self.call("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def complaints(self):
        """What was said on the console, thrown, and asked for beside files of the page's own."""
        found = []
        for event in self.events:
            parameters = event.get("params", {})
            if event.get("method") == "Runtime.consoleAPICalled":
                found.append("console: " + json.dumps(parameters.get("args"))[:300])
            elif event.get("method") == "Runtime.exceptionThrown":
                found.append("exception: " + json.dumps(parameters["exceptionDetails"])[:300])
            elif event.get("method") == "Log.entryAdded":
                found.append("log: " + parameters["entry"]["text"][:300])
            elif event.get("method") == "Network.requestWillBeSent":
                url = parameters["request"]["url"]
                if parameters.get("type") != "Document" and not url.startswith("data:"):
                    found.append("request: " + url[:300])
        return found

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
            self.process.wait(20)
        except (OSError, EOFError, TimeoutError, RuntimeError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def check_drawings(browser, view, wrong):
    page = json.loads(browser.value(PAGE))
    drawings = json.loads(browser.value(DRAWINGS))
    for drawing in drawings:
        name = f"{view}: {drawing['name']}"
        if not (drawing["width"] > 50 and drawing["height"] > 20 and drawing["shapes"] > 0):
            wrong.append(f"{name}: nothing is drawn: {drawing}")
        if not drawing["seen"] > 50:
            wrong.append(f"{name}: has no room")
        if drawing["right"] > page["seen"] + 1:
            wrong.append(f"{name}: reaches beyond the page")
    if page["width"] > page["seen"] + 1:
        wrong.append(f"{view}: the page is {page['width']} pixels wide, of which {page['seen']} are seen")
    wrong += [f"{view}: {what}" for what in json.loads(browser.value(TEXTS))]
    if page["lines"] != page["read"]:
        wrong.append(f"{view}: {page['read']} of {page['lines']} line charts can be read by pointing")
    return page, drawings


def check_pointing(browser, wrong):
    """Pointing at a line chart shows values."""
    place = browser.value("""(() => { const svg = document.querySelector("svg[data-x]"); if (!svg) return null;
      svg.scrollIntoView({ block: "center" }); const box = svg.getBoundingClientRect();
      return JSON.stringify([box.left + box.width / 2, box.top + box.height / 2]); })()""")
    if place is None:
        return
    x, y = json.loads(place)
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    text = browser.value('[...document.querySelectorAll(".read-out")].filter(box => !box.hidden).map(box => box.innerText).join("")')
    if not any(letter.isdigit() for letter in text):
        wrong.append(f"pointing at a chart shows no value: {text!r}")


def check(path):
    wrong = []
    browser = Browser()
    try:
        for view, width, dark, media in (("light", 1160, False, ""), ("dark", 1160, True, ""), ("wide", 1400, False, ""), ("tablet", 768, False, ""),
                                         ("phone", 360, False, ""), ("paper", A4, False, "print")):
            browser.size(width, 900)
            browser.dark(dark, media)
            browser.open(path)
            page, drawings = check_drawings(browser, view, wrong)
            if view == "light":
                check_pointing(browser, wrong)
            wrong += [f"{view}: {complaint}" for complaint in browser.complaints()]
        pdf = browser.call("Page.printToPDF", printBackground=True)
        if len(base64.b64decode(pdf["data"])) < 10000:
            wrong.append("print: the page prints empty")
    finally:
        browser.close()
    for line in wrong:
        print(line)
    names = sorted({drawing["name"] for drawing in drawings})
    print(f"{len(drawings)} drawings: {' '.join(names)}")
    return 1 if wrong else 0


def picture(options):
    browser = Browser()
    try:
        browser.size(options.width, 900)
        browser.dark(options.dark)
        browser.open(options.page)
        height = json.loads(browser.value(PAGE))["height"]
        edge = 'document.getElementById("{}").getBoundingClientRect().{} + scrollY'
        top = browser.value(edge.format(options.start, "top")) if options.start else 0
        end = browser.value(edge.format(options.end, "bottom")) if options.end else height
        if options.height:
            end = min(end, top + options.height)
        shot = browser.call("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                            clip={"x": 0, "y": max(top - 8, 0), "width": options.width, "height": end - max(top - 8, 0) + 8, "scale": options.scale})
        pathlib.Path(options.out).write_bytes(base64.b64decode(shot["data"]))
    finally:
        browser.close()


# Where a reader is: how far down, what is at the top of the window, what is unfolded.
PLACE = """
JSON.stringify([Math.round(document.getElementById("memory").getBoundingClientRect().top), [...document.querySelectorAll("details[open]")].map(fold => fold.closest("figure").id)])
"""


def watch(options):
    wrong = []
    browser = Browser()
    try:
        browser.size(options.width, 700)
        browser.open(options.page)
        browser.value("""document.querySelectorAll("#loss details, #memory details").forEach(fold => { fold.open = true; });
          document.getElementById("memory").scrollIntoView(); window.sameDocument = true""")
        before = browser.value(PLACE)
        if subprocess.run(options.command_line, shell=True, check=False).returncode:
            wrong.append("the command fails")
        until = time.monotonic() + SECONDS
        while options.text not in browser.value("document.body.innerText"):
            if time.monotonic() > until:
                wrong.append(f"the page does not come to say {options.text!r}, but: {browser.value('document.getElementById(`live`).textContent')}")
                break
            time.sleep(0.1)
        check_drawings(browser, "live", wrong)
        place = browser.value(PLACE)
        if place != before:
            wrong.append(f"the reader is moved from {before} to {place}")
        if not browser.value("window.sameDocument"):
            wrong.append("the page was loaded again")
        wrong += [complaint for complaint in browser.complaints() if not complaint.startswith("request: " + options.page)]
    finally:
        browser.close()
    for line in wrong:
        print(line)
    return 1 if wrong else 0


def pdf(page, out):
    browser = Browser()
    try:
        browser.open(page)
        printed = browser.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
        pathlib.Path(out).write_bytes(base64.b64decode(printed["data"]))
    finally:
        browser.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("check").add_argument("page")
    printing = commands.add_parser("pdf")
    printing.add_argument("page")
    printing.add_argument("out")
    pictures = commands.add_parser("picture")
    pictures.add_argument("page")
    pictures.add_argument("out")
    pictures.add_argument("--dark", action="store_true")
    pictures.add_argument("--width", type=int, default=1160)
    pictures.add_argument("--height", type=int)
    pictures.add_argument("--from", dest="start")
    pictures.add_argument("--to", dest="end")
    pictures.add_argument("--scale", type=float, default=1)
    watching = commands.add_parser("watch")
    watching.add_argument("page")
    watching.add_argument("command_line")
    watching.add_argument("text")
    watching.add_argument("--width", type=int, default=360)
    options = parser.parse_args()
    if options.command == "watch":
        sys.exit(watch(options))
    if options.command == "check":
        sys.exit(check(options.page))
    if options.command == "pdf":
        pdf(options.page, options.out)
    else:
        picture(options)


if __name__ == "__main__":
    main()
