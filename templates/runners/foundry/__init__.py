"""What the runners of all methods share: one protocol, so that a runner is only the steps of its model.

A runner is started as `python3 runner/NAME.py ACTION --spec spec.json` and ends with `main(embed=…)`. Methods of a workspace's
own find this package beside their script too:

    from foundry import Cells, main

    def embed(task):
        cells = Cells(task, task.spec["data"])
        …
        cells.write_embedding(matrix, task.spec["output"])

    main(embed=embed)
"""

from .batches import Batches, is_out_of_memory
from .cells import Cells
from .task import Refusal, Task, main

__all__ = ["Batches", "Cells", "Refusal", "Task", "is_out_of_memory", "main"]
