"""Modules that take seconds to import. The fork server imports them once, before it forks the ranks that use them."""

from __future__ import annotations

from collections.abc import Iterable

NEEDS = {  # module, by the word in the ranks' files that tells of its use
    b"optim": "torch._dynamo",  # imported by the first optimizer of a process
    b"lightning": "lightning.pytorch",
    b"accelerate": "accelerate",
}


def needed(contents: Iterable[bytes]) -> list[str]:
    """The modules that ranks with files of these contents may need.

    >>> needed([b"import torch", b"torch.optim.SGD"]), needed([b"import torch"])
    (['torch._dynamo'], [])
    """
    found = list(contents)
    return [name for word, name in NEEDS.items() if any(word in content for content in found)]
