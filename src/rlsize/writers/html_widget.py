"""Sliders and what follows from them in HTML, with the script that keeps both together."""

from __future__ import annotations

import json
from inspect import signature
from typing import TYPE_CHECKING, Any

from rlsize.reports.sliders import DIGITS, Output
from rlsize.writers.colours import COLOURS, page_colour
from rlsize.writers.equation_script import script_name, script_of
from rlsize.writers.html_parts import Html, element, joined

if TYPE_CHECKING:
    from rlsize.reports.sliders import Comparison, Formula, Slider, Strip, Widget

_STILL = "Without JavaScript the figures are those of the plan, and nothing can be moved."


def widget_html(widget: Widget) -> Html:
    """
    The sliders at their start, and what follows from it; without a script, or on paper, they are plain text.

    Args:
        widget: What may be changed, and what follows.
    """
    said = widget.said(widget.start)
    names = " ".join(f"w-{slider.key}" for slider in widget.sliders)
    summary = element(
        "output", widget.summary.format(**said), id="w-summary", for_=names, aria_live="polite", aria_atomic="true"
    )
    controls = element(
        "fieldset",
        element("legend", "What you may change"),
        *(_slider(slider) for slider in widget.sliders),
        element("button", "Back to the plan", type="button", id="w-reset"),
        class_="sliders",
    )
    results = element("dl", *(_output(output, said[output.key], names) for output in widget.outputs), class_="outputs")
    shown = element("div", element("p", summary), _strip(widget), class_="answer")
    still = element("p", _STILL, class_="note still")
    return element("div", shown, controls, results, still, class_="widget", id="widget")


def _slider(slider: Slider) -> Html:
    said, stops = slider.said(slider.start), slider.stops
    typed = f"{slider.start * slider.factor:.{slider.decimals}f}"
    label = element("label", slider.label, for_=f"w-{slider.key}")
    number = element(
        "input", type="number", id=f"w-{slider.key}-number", value=typed, min=_plain(slider.least * slider.factor),
        max=_plain(slider.most * slider.factor), step="any", inputmode="decimal", autocomplete="off",
        aria_label=f"{slider.label}, exact value, {slider.unit}",
    )  # fmt: skip
    entry = element("span", number, element("span", slider.unit, aria_hidden="true"), class_="entry")
    movable = element(
        "input", type="range", id=f"w-{slider.key}", min=0, max=len(stops) - 1, step=1,
        value=stops.index(slider.start), aria_valuetext=said, autocomplete="off",
    )  # fmt: skip
    return element("div", label, entry, element("span", said, class_="printed"), movable, class_="slider")


def _plain(value: float) -> str:
    return f"{value:.9g}"


def _output(output: Output | Comparison, said: str, names: str) -> Html:
    result = element("output", said, id=f"w-out-{output.key}", for_=names, aria_live="off")
    before = element("span", id=f"w-was-{output.key}", class_="was", hidden=True)
    return element("div", element("dt", output.label), element("dd", result, before))


def _strip(widget: Widget) -> Html:
    """The bar at its start; the script moves its parts."""
    values, strip = widget.worked(widget.start), widget.strip
    whole = sum(values[part.key] for part in strip.parts)
    left, bars = 0.0, []
    for place, part in enumerate(strip.parts):
        share = 100.0 * values[part.key] / whole
        idle = 100.0 * values[part.idle] / whole if part.idle else 0.0
        bars.append(_bar(f"w-part-{place}", left, share, page_colour(COLOURS[part.role])))
        bars.append(_bar(f"w-idle-{place}", left + share - idle, idle, "url(#w-hatch)"))
        left += share
    if strip.mark:
        at = f"{100.0 * values[strip.mark] / whole:.3f}%"
        bars.append(element("line", id="w-mark", x1=at, x2=at, y1=0, y2="100%", stroke="var(--ink)", stroke_width=2))
    drawn = element("svg", _HATCH, *bars, class_="strip", aria_hidden="true")
    return joined(drawn, _strip_legend(strip))


_HATCH = element(
    "defs",
    element(
        "pattern",
        element("rect", width=6, height=6, fill="var(--paper)", fill_opacity=0.55),
        element("rect", width=2, height=6, fill="var(--paper)"),
        id="w-hatch",
        width=6,
        height=6,
        patternUnits="userSpaceOnUse",
        patternTransform="rotate(45)",
    ),
)


def _bar(name: str, left: float, share: float, fill: str) -> Html:
    return element("rect", id=name, x=f"{left:.3f}%", width=f"{share:.3f}%", y=4, height=24, fill=fill)


def _strip_legend(strip: Strip) -> Html:
    box = {"x": 0, "y": 1, "width": 14, "height": 10}
    found = [(part.label, [element("rect", **box, fill=page_colour(COLOURS[part.role]))]) for part in strip.parts]
    if any(part.idle for part in strip.parts):
        dark = element("rect", **box, fill="var(--muted)")
        found.append(("idle", [dark, element("rect", **box, fill="url(#w-hatch)")]))
    if strip.mark:
        line = element("line", x1=7, x2=7, y1=0, y2=12, stroke="var(--ink)", stroke_width=2)
        found.append((strip.mark_label, [line]))
    entries = (
        element("li", element("svg", *sample, width=14, height=12, aria_hidden="true"), label)
        for label, sample in found
    )
    return element("ul", *entries, class_="legend", aria_label=f"{strip.label}: what the bar shows")


def widget_script(widget: Widget, runtime: str) -> str:
    """
    The script of a widget: its description, its equations, and what moves the page.

    Args:
        widget: What may be changed, and what follows.
        runtime: The script that reads both.

    Raises:
        UntranslatableError: An equation uses what is not translated.
    """
    described = json.dumps(_shortened(_described(widget)), ensure_ascii=True, sort_keys=True).replace("<", "\\u003c")
    return "\n".join(
        [
            f"const WIDGET = {described};",
            script_of(formula.equation for formula in widget.formulas),
            "function worked(v) {",
            *map(_call, widget.formulas),
            "  return v;",
            "}",
            runtime,
        ]
    )


def _call(formula: Formula) -> str:
    """A formula in JavaScript, in which `v` has every value by its key."""
    passed = (f"v.{formula.inputs[name]}" for name in signature(formula.equation).parameters)
    return f"  v.{formula.key} = {script_name(formula.equation)}({', '.join(passed)});"


def _shortened(value: Any) -> Any:  # noqa: ANN401 (whatever JSON holds)
    """The same with numbers of twelve digits: the last ones of a float are the processor's, and a page is not."""
    if isinstance(value, float):
        return float(f"{value:.12g}")
    if isinstance(value, dict):
        return {key: _shortened(entry) for key, entry in value.items()}
    return [_shortened(entry) for entry in value] if isinstance(value, (list, tuple)) else value


def _described(widget: Widget) -> dict[str, Any]:
    """What the script needs to know."""
    return {
        "constants": dict(widget.constants),
        "sliders": [
            _of(slider, "key", "unit", "least", "most", "start", "stops", "factor", "decimals")
            for slider in widget.sliders
        ],
        "outputs": [_described_output(output) for output in widget.outputs],
        "summary": widget.summary,
        "digits": DIGITS,
        "strip": {"parts": [_of(part, "key", "idle") for part in widget.strip.parts], "mark": widget.strip.mark},
    }


def _described_output(output: Output | Comparison) -> dict[str, Any]:
    if isinstance(output, Output):
        return _of(output, "key", "text", "keys", "decimals", "factor")
    return _of(output, "key", "first", "second", "words", "even")


def _of(thing: object, *names: str) -> dict[str, Any]:
    return {name: getattr(thing, name) for name in names}
