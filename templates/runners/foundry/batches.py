"""Cells in batches that fit: halved where memory runs out, and the size found by trial where none is given."""

import gc
import sys

SHARE = 0.9  # of the free memory of a GPU, which a batch of automatic size may fill
TRIAL = 8  # cells in the second of the two batches that a size is judged by


def is_out_of_memory(error):
    """Whether an error says that a framework could not get memory: torch, JAX, or Python itself."""
    names = {kind.__name__ for kind in type(error).__mro__}
    if names & {"OutOfMemoryError", "MemoryError"}:
        return True
    text = str(error)
    signs = ("out of memory", "CUBLAS_STATUS_ALLOC_FAILED", "RESOURCE_EXHAUSTED")
    return isinstance(error, RuntimeError) and any(sign in text for sign in signs)


class Batches:
    """Batches of at most `size` cells.

    `size` is a number, or "auto": then the first cells are done by one and by eight, and what memory of the GPU these took
    says how many fill nine tenths of what is free; without a GPU it is `default`.
    """

    def __init__(self, task, size, default=None):
        self.task = task
        self.size = None if size == "auto" else int(size)
        self.default = default
        task.usage["batch_size_asked"] = self.size
        task.usage.setdefault("halvings", 0)

    def run(self, cells, work):
        """Calls `work(part)` for parts of the sequence `cells`, in order, until all are done.

        Where `work` runs out of memory, the batch is halved and the same cells are given again; what it has done for them must
        do no harm then. Cells that need most memory should come first: what holds for them holds for the rest.
        """
        done = 0
        if self.size is None:
            done = self._find_size(cells, work)
        while done < len(cells):
            part = cells[done : done + self.size]
            if self._fits(work, part):
                done += len(part)
            else:
                self.size = max(1, min(self.size, len(part)) // 2)
        self.task.usage["batch_size_used"] = self.size

    def _fits(self, work, part):
        try:
            work(part)
            return True
        except Exception as error:
            if not is_out_of_memory(error) or len(part) == 1:
                raise
            words = str(error).strip().splitlines()
        # Outside of the handler, which keeps the error and with it all tensors of the batch alive.
        self.task.usage["halvings"] += 1
        self.task.note(f"{words[0] if words else 'out of memory'}: {len(part)} cells are too many, going on with {max(1, len(part) // 2)}")
        release()
        return False

    def _find_size(self, cells, work):
        """Sets the size by what the first cells take; gives how many of them are done."""
        cuda = gpu()
        if cuda is None:
            self.size = self.default or 1
            return 0
        peaks, done = [], 0
        for count in (1, TRIAL):
            part = cells[done : done + count]
            if len(part) < count:
                break
            cuda.reset_peak_memory_stats()
            before = cuda.memory_allocated()
            if not self._fits(work, part):
                break
            peaks.append(cuda.max_memory_allocated() - before)
            done += len(part)
        self.size = largest(peaks, self._room(cuda)) if len(peaks) == 2 else max(1, done)
        self.task.note(f"batch size {self.size}, found by trial")
        return done

    def _room(self, cuda):
        free, _ = cuda.mem_get_info()
        return SHARE * (free + cuda.memory_reserved() - cuda.memory_allocated())


def largest(peaks, room):
    """The most cells whose memory, on the line through that of one and of `TRIAL`, stays below `room`."""
    one, several = peaks
    for_each = max((several - one) / (TRIAL - 1), 1)
    return max(1, int((room - (one - for_each)) // for_each))


def gpu():
    """torch.cuda, where there is a GPU and torch has been loaded."""
    torch = sys.modules.get("torch")
    return torch.cuda if torch is not None and torch.cuda.is_available() else None


def release():
    """Gives memory back that nothing holds any more."""
    gc.collect()
    cuda = gpu()
    if cuda is not None:
        cuda.empty_cache()
