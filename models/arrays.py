"""Names for the array types that travel between the rooms.

Axis letters are the same everywhere: ``p`` pod, ``s`` pod shape, ``c`` pod class, ``n`` node,
``d`` topology domain, ``r`` resource.
"""

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
