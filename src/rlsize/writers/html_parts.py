"""The parts of HTML: elements whose texts are escaped unless they are HTML already."""

from __future__ import annotations

from html import escape

from rlsize.units import printable

_EMPTY = frozenset({"meta", "link", "input", "rect", "line", "br"})
_TURNING = dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C))
"""Characters that turn the direction of writing, so that a name could pass for another."""


class Html(str):
    """Text that is HTML: it goes into a page as it is. Only functions of `writers` make it, of what is escaped."""

    __slots__ = ()


def escaped(text: str) -> Html:
    r"""
    Text that stays text, whatever it holds.

    >>> escaped("<script>\x1b[31m\"it's\"</script>")
    '&lt;script&gt;[31m&quot;it&#x27;s&quot;&lt;/script&gt;'
    """
    if isinstance(text, Html):
        return text
    return Html(escape(harmless(text)))


def harmless(text: str) -> str:
    """Text without what drives a terminal, turns the direction of writing or is no character."""
    return printable(text).translate(_TURNING).encode("utf-8", "replace").decode()


def element(tag: str, *content: str, **attributes: str | bool | float | None) -> Html:
    """
    An element with its content.

    Args:
        tag: Its name.
        content: Texts, which are escaped, and `Html`, which is not.
        attributes: An underscore stands for a hyphen, one at the end for nothing (`for_`); True for an attribute
            without value; None and False for none.

    >>> element("p", "a < b", element("b", "c"), class_="note", hidden=True)
    '<p class="note" hidden>a &lt; b<b>c</b></p>'
    """
    said = "".join(
        f" {_attribute(name)}" if value is True else f' {_attribute(name)}="{escaped(str(value))}"'
        for name, value in attributes.items()
        if value is not None and value is not False
    )
    if tag in _EMPTY:
        return Html(f"<{tag}{said}>" if tag in {"meta", "link", "input", "br"} else f"<{tag}{said}/>")
    return Html(f"<{tag}{said}>{''.join(escaped(part) for part in content)}</{tag}>")


def joined(*parts: str) -> Html:
    """Parts below each other; texts are escaped, empty ones left out."""
    return Html("\n".join(escaped(part) for part in parts if part))


def _attribute(name: str) -> str:
    return name.rstrip("_").replace("_", "-")
