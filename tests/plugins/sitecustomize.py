"""Python runs this file as every process of the tests starts: it makes the algorithms of this folder known to Ferret.

tests/conftest.py puts the folder on PYTHONPATH.
"""

from contextlib import suppress
from pathlib import Path

HERE = Path(__file__).parent

with suppress(ImportError):  # a test may start a Python without Ferret
    from ferret_core import algorithms
    from ferret_core.algorithms import configs

    for package, folder in (algorithms, HERE / "algorithms"), (configs, HERE / "algorithms" / "configs"):
        if str(folder) not in package.__path__:
            package.__path__.append(str(folder))
