"""A model of one's own that works, and the rules that such a model can break: each with its file and its message."""

from __future__ import annotations

GOOD = """\
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.second = nn.Linear(16, 16)
        self.second.weight.requires_grad_(False)
        self.last = nn.Linear(16, 8)
        self.last.weight = nn.Parameter(self.first.weight.detach().T.clone())
        self.tied = self.first

    def forward(self, inputs, wanted):
        hidden = torch.relu(self.second(torch.relu(self.first(inputs))))
        return nn.functional.mse_loss(self.last(torch.relu(self.tied(inputs)) + hidden), wanted)


def build():
    return Model(), (torch.ones(6, 8), torch.zeros(6, 8))
"""
# Its layers: tied parameters count once, and the frozen weight does not count.
GOOD_LAYERS = {"first.weight", "first.bias", "second.bias", "last.weight", "last.bias"}

HEAD = "import torch\nfrom torch import nn\n"
LINEAR = f"{HEAD}LINEAR = nn.Linear(4, 2)\n"  # line 3
QUIET = "import warnings; warnings.simplefilter('ignore')"  # torch warns that TorchScript is on its way out


def module(forward: str) -> str:
    """A file whose module has this forward: on line 8, in `forward` of line 7; `build` is on line 11."""
    return (
        f"{HEAD}class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        f"        self.used, self.unused = nn.Linear(4, 2), nn.Linear(4, 2)\n    def forward(self, inputs):\n"
        f"        {forward}\n\n\ndef build():\n    return Model(), (torch.ones(3, 4),)\n"
    )


def build(body: str, head: str = LINEAR) -> str:
    """A file whose `build` has this body on line 5."""
    return f"{head}def build():\n    {body}\n"


BROKEN: dict[str, tuple[str, str, str]] = {  # the file, what the message says, and its cure
    "no function": (HEAD, "m.py has no function build", "write def build():"),
    "no Python": ("def build(:\n", "raised SyntaxError at m.py:1 in the import", "correct m.py:1"),
    "an error on import": (f"{HEAD}\n1 / 0\n", "raised ZeroDivisionError at m.py:4 in the import", "correct m.py:4"),
    "a missing package": ("import no_such_package\n", "raised ModuleNotFoundError at m.py:1", "correct m.py:1"),
    "an end on import": ("import sys\nsys.exit(3)\n", "raised SystemExit at m.py:2 in the import: 3", "m.py:2"),
    "an argument": (f"{HEAD}def build(width):\n    pass\n", "m.py:3: build needs width", "argument a default"),
    "an error in build": (build("raise ValueError('one\\ntwo')"), "raised ValueError at m.py:5 in build: one", ":5"),
    "nothing returned": (build("pass"), "m.py:4: build returned None", "return (module, batch)"),
    "only a module": (build("return LINEAR"), "m.py:4: build returned a Linear", "return (module, batch)"),
    "three values": (build("return LINEAR, 1, 2"), "m.py:4: build returned a tuple of 3", "return (module, batch)"),
    "no module": (build("return 1, (torch.ones(2),)"), "an int in place of the module", "return (module, batch)"),
    "a bare tensor": (build("return LINEAR, torch.ones(3, 4)"), "a Tensor in place of the batch", "a tuple of tensors"),
    "an empty batch": (build("return LINEAR, ()"), "a tuple of 0 in place of the batch", "a tuple of tensors"),
    "a number in the batch": (build("return LINEAR, (1.0,)"), "entry 0 of the batch is a float", "a tuple of tensors"),
    "TorchScript": (build(f"{QUIET}; return torch.jit.script(LINEAR), (torch.ones(3, 4),)"),
                    "m.py:4: the module is one of TorchScript", "before torch.jit.script"),
    "TorchScript inside": (build(f"{QUIET}; return nn.Sequential(torch.jit.script(LINEAR)), (torch.ones(3, 4),)"),
                           "m.py:4: the module is one of TorchScript", "before torch.jit.script"),
    "no parameters": (build("return nn.ReLU(), (torch.ones(2),)"), "m.py:4: the module has no parameters", "learns"),
    "a size to come": (build("return nn.LazyLinear(2), (torch.ones(3, 4),)"),
                       "m.py:4: parameter weight has no size yet", "call the module once in build"),
    "all frozen": (build("return LINEAR.requires_grad_(False), (torch.ones(3, 4),)"),
                   "m.py:4: no parameter requires a gradient", "requires_grad"),
    "an unused parameter": (module("return self.used(inputs).sum()"),
                            "m.py:11: the loss uses no unused.weight, unused.bias", "set its requires_grad to False"),
    "outputs, no loss": (module("return self.used(inputs)"),
                         "m.py:7: forward returned a tensor of shape (3, 2)", "return the loss alone"),
    "outputs of torch's own module": (build("return LINEAR, (torch.ones(3, 4),)"),
                                      "m.py:4: forward returned a tensor of shape (3, 2)", "return the loss alone"),
    "a dictionary": (module("return {'loss': self.used(inputs).sum()}"),
                     "m.py:7: forward returned a dict", "return the loss alone"),
    "a loss of nothing": (module("return inputs.sum()"), "m.py:7: forward returned a loss that depends on no", "alone"),
    "an infinite loss": (module("return self.used(inputs).sum() / 0.0"),
                         "m.py:7: forward returned a loss of", "return a finite loss"),
    "an error in forward": (module("return self.used(inputs[:, :3]).sum()"),
                            "raised RuntimeError at m.py:8 in forward: mat1", "correct m.py:8"),
    "an error in backward": (
        f"{HEAD}class Bad(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, inputs):\n"
        "        return inputs.sum()\n    @staticmethod\n    def backward(ctx, gradient):\n"
        "        raise KeyError('lost')\nclass Model(nn.Linear):\n    def forward(self, inputs):\n"
        "        return Bad.apply(super().forward(inputs))\n"
        "def build():\n    return Model(4, 2), (torch.ones(3, 4),)\n",
        "raised KeyError at m.py:9 in backward: 'lost'", "correct m.py:9",
    ),
    "a parameter of nothing": (build("return nn.Bilinear(4, 0, 2), (torch.ones(3, 4), torch.ones(3, 0))"),
                               "m.py:4: parameter weight has no elements", "remove it"),
    "no sample": (build("return LINEAR, (torch.ones(0, 4),)"),
                  "m.py:4: the batch has no sample", "a sample or more"),
    "no memory behind a parameter": (build("return LINEAR.to('meta'), (torch.ones(3, 4),)"),
                                     "raised NotImplementedError at module.py", "correct what build returns"),
    "a module without forward": (build("return nn.ParameterDict({'a': nn.Parameter(torch.ones(3))}), (torch.ones(3),)"),
                                 "in forward: ", "correct what build returns"),
    "too much memory": (build("return nn.Linear(10**8, 10**8), (torch.ones(1),)"),
                        "does not fit into the memory in build", "a smaller model"),
    "too much memory in forward": (module("return self.used(inputs.expand(10**13, 3, 4).contiguous() * 10.0**9).sum()"),
                                   "does not fit into the memory in forward", "a smaller batch"),
}  # fmt: skip
