"""Many similar figures as one short text, which the page `static/explorer.js` reads.

Numbers keep four digits, which is finer than a screen. Parts that several figures share are stored once. The whole is
JSON, compressed by zlib and written in base64.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

DIGITS = 4
PART = "$"  # {"$": 3} stands for part 3
SHORTEST = 40  # characters of JSON: a shorter part is repeated instead


def plain(value: Any) -> Any:
    """Plotly's JSON with arrays as lists, and numbers of four digits; NaN and infinite numbers are None.

    >>> plain({"x": [0.123456, float("nan"), 1234567.0], "y": {"dtype": "i1", "bdata": "AQID"}})
    {'x': [0.1235, None, 1235000], 'y': [1, 2, 3]}
    """
    if isinstance(value, dict):
        if "bdata" in value:
            return plain(_array(value).tolist())
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [plain(part) for part in value]
    return _rounded(value) if isinstance(value, float) else value


def packed(values: Sequence[Any]) -> str:
    """JSON values as one text.

    >>> unpacked(packed([{"a": [1, 2]}, {"a": [1, 2]}]))
    [{'a': [1, 2]}, {'a': [1, 2]}]
    """
    places = Counter[str]()
    for value in values:
        _count(value, places)
    parts: list[Any] = []
    numbers: dict[str, int] = {}
    whole = [_shared(value, places, parts, numbers) for value in values]
    text = json.dumps({"values": whole, "parts": parts}, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def unpacked(text: str) -> list[Any]:
    """The values of a packed text, as `static/explorer.js` reads them."""
    held = json.loads(zlib.decompress(base64.b64decode(text)))

    def whole(value: Any) -> Any:
        if isinstance(value, list):
            return [whole(part) for part in value]
        if isinstance(value, dict):
            return (
                whole(held["parts"][value[PART]])
                if PART in value
                else {key: whole(part) for key, part in value.items()}
            )
        return value

    return [whole(value) for value in held["values"]]


def _array(value: dict[str, Any]) -> Any:
    """The array that plotly wrote in base64."""
    found = np.frombuffer(base64.b64decode(value["bdata"]), dtype=value["dtype"])
    return found.reshape([int(size) for size in str(value["shape"]).split(",")]) if "shape" in value else found


def _rounded(value: float) -> float | None:
    if not math.isfinite(value):
        return None
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def _count(value: Any, places: Counter[str]) -> None:
    """Counts the places of each part that is long enough to be shared."""
    text = _text(value)
    if len(text) >= SHORTEST:
        places[text] += 1
        if places[text] == 1:
            for part in _children(value):
                _count(part, places)


def _shared(value: Any, places: Counter[str], parts: list[Any], numbers: dict[str, int]) -> Any:
    """The value with a number in place of each part that has several places."""
    text = _text(value)
    if places[text] < 2:
        return _inside(value, places, parts, numbers)
    if text not in numbers:
        inside = _inside(value, places, parts, numbers)
        numbers[text] = len(parts)
        parts.append(inside)
    return {PART: numbers[text]}


def _inside(value: Any, places: Counter[str], parts: list[Any], numbers: dict[str, int]) -> Any:
    if isinstance(value, dict):
        return {key: _shared(part, places, parts, numbers) for key, part in value.items()}
    if isinstance(value, list):
        return [_shared(part, places, parts, numbers) for part in value]
    return value


def _children(value: Any) -> Sequence[Any]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else ()


def _text(value: Any) -> str:
    """A number, or nothing at all, is never long enough."""
    return json.dumps(value, separators=(",", ":")) if isinstance(value, (dict, list, str)) else ""
