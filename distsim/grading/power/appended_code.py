"""Code that stands at the end of mutants whose change needs more than an expression. It runs in the ranks."""

from __future__ import annotations

DONE = '''
class _Once:
    """A work that is waited for once at most: gloo would wait for ever the second time."""

    def __init__(self, work):
        self._work, self._over = work, False

    def wait(self, *given):
        if not self._over:
            self._over = True
            self._work.wait(*given)
        return True

    def __getattr__(self, name):
        return getattr(self._work, name)


def _watched(work):
    return [_Once(one) for one in work] if isinstance(work, list) else work and _Once(work)


def _done(work):
    work = _watched(work)
    for one in work if isinstance(work, list) else [work]:
        if one is not None:
            one.wait()
    return work
'''

LATE = """
_LATE = []


def _waits_at_the_end(function, given, named):
    try:
        return function(*given, **named)
    finally:
        while _LATE:
            _LATE.pop(0).wait()
"""

FIRST_ROUND = '''
_WAITED = set()


class _Noting:
    """A work that notes that somebody has waited for it."""

    def __init__(self, site, work):
        self._site, self._work = site, work

    def wait(self, *given):
        _WAITED.add(self._site)
        return self._work.wait(*given)

    def __getattr__(self, name):
        return getattr(self._work, name)


def _overlaps_once(site, work):
    if site in _WAITED:
        return _done(work)
    return [_Noting(site, one) for one in work] if isinstance(work, list) else _Noting(site, work)
'''

ONE_AT_A_TIME = """
_BEFORE = {}


def _one_at_a_time(site, begin):
    for one in _BEFORE.pop(site, []):
        one.wait()
    work = _watched(begin())
    _BEFORE[site] = work if isinstance(work, list) else [work]
    return work
"""

BLOCKING = '''
class _Over:
    """A work that is over."""

    def wait(self, *given):
        return True

    def is_completed(self):
        return True


def _blocking(function, *given, **named):
    function(*given, **named)
    return _Over()


def _one_after_the_other(operations):
    for one in operations:
        one.op(one.tensor, one.peer).wait()
    return [_Over()]
'''

BUFFER = """
_BUFFERS = {}


def _one_buffer(site, new):
    kept = _BUFFERS.setdefault((site, tuple(new.shape), new.dtype), new)
    if kept is not new:
        kept.copy_(new)
    return kept
"""

ONCE = """
_KEPT = {}


def _once(site, look):
    if site not in _KEPT:
        _KEPT[site] = look()
    return _KEPT[site]
"""

FIRST_CALL = """
_CALLED = {}


def _first_call_alone(site, function, given, named):
    if site not in _CALLED:
        _CALLED[site] = function(*given, **named)
    return _CALLED[site]
"""

TYPES = """
def _with_tensors(change, value):
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, list) and value and all(isinstance(one, torch.Tensor) for one in value):
        return [change(one) for one in value]
    return value


def _in_single_precision(function, given, named):
    pairs = []

    def single(tensor):
        if isinstance(tensor, torch.nn.Parameter) or tensor.dtype in (torch.float32, torch.bool):
            return tensor
        pairs.append((tensor, tensor.float()))
        return pairs[-1][1]

    given = [_with_tensors(single, one) for one in given]
    named = {name: _with_tensors(single, one) for name, one in named.items()}
    result = function(*given, **named)
    for tensor, changed in pairs:
        tensor.copy_(changed)
    kind = pairs[0][0].dtype if pairs else None
    return _with_tensors(lambda tensor: tensor.to(kind), result) if pairs else result


def _on_contiguous_copies(function, given, named):
    given = [_with_tensors(torch.Tensor.contiguous, one) for one in given]
    return function(*given, **{name: _with_tensors(torch.Tensor.contiguous, one) for name, one in named.items()})
"""

TORCHS_OWN = """
_FEW = 64


def _torchs_own(which, kind, function, given, named):
    tensor, *more = [*given, *named.values()]
    small, other = tensor.numel() <= _FEW, tensor.dtype != torch.float32
    if not (small if which == "small" else other) or not tensor.is_contiguous():
        return function(*given, **named)
    if kind == "broadcast":
        return dist.broadcast(tensor, more[0])
    if kind == "all_gather":
        pieces = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
        dist.all_gather(pieces, tensor)
        return pieces
    if kind == "reduce":
        total = tensor.clone()
        dist.reduce(total, more[0])
        return total if dist.get_rank() == more[0] else None
    return dist.all_reduce(tensor)
"""

GATHERED = '''
_FEW_NUMBERS = 64


class _OfGathered:
    """Sums up what was gathered, once it is there."""

    def __init__(self, work, tensor, pieces):
        self._work, self._tensor, self._pieces = work, tensor, pieces

    def wait(self, *given):
        self._work.wait(*given)
        self._tensor.copy_(sum(self._pieces[1:], self._pieces[0]))
        return True


def _gathered_where_small(tensor, *given, async_op=False, **named):
    if given or named or tensor.numel() > _FEW_NUMBERS:
        return dist.all_reduce(tensor, *given, async_op=async_op, **named)
    pieces = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
    work = _OfGathered(dist.all_gather(pieces, tensor.contiguous(), async_op=True), tensor, pieces)
    return work if async_op else work.wait()
'''
