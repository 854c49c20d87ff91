"""The batches of the cells that an integration makes one of: the column of obs that tells them."""

import numpy as np
import pandas

from .task import Refusal

DEFAULT = "batch_id"  # the column that is looked for where none is named


def groups(task, cells):
    """The number of each cell's batch, and the names of the batches.

    Without the column of the usual name all cells are one batch.
    """
    obs, key = cells.data.obs, task.spec.get("batch_key") or DEFAULT
    if key not in obs.columns:
        if key != DEFAULT:
            raise Refusal(
                f"obs of {cells.name} has no column {key}",
                cause=f"its columns: {', '.join(map(str, obs.columns)) or 'none'}",
                hint="name the column that tells the batches with `--batch-key`",
            )
        task.warn(f"obs of {cells.name} has no column {key}: all cells count as one batch")
        return np.zeros(cells.count, dtype=np.int64), ["all"]
    missing = int(obs[key].isna().sum())
    if missing:
        raise Refusal(
            f"{missing} of {cells.count} cells of {cells.name} have no batch",
            cause=f"obs['{key}'] has no value there",
            hint="leave these cells out, or give them a batch of their own",
        )
    numbers, names = pandas.factorize(obs[key].astype(str).to_numpy(), sort=True)
    if len(names) == 1:
        task.warn(f"obs['{key}'] has the one value {names[0]}: there are no batches to integrate")
    return numbers, list(names)
