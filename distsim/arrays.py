"""Types of numpy arrays, named once: by what their numbers are."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Indices = NDArray[np.int32]
Flags = NDArray[np.bool_]
