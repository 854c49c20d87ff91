"""The specification of a task, what it says while it works, and the record that it leaves of what it used."""

import json
import os
import resource
import sys
import time
from contextlib import contextmanager
from pathlib import Path

REJECTED = 3  # the exit code of a task whose input or weights are not what they must be
PATIENCE = 5.0  # the least seconds between two lines of progress


class Refusal(Exception):
    """Something that the user has to mend: one sentence, its cause, what to do."""

    def __init__(self, message, cause=None, hint=None):
        super().__init__(message)
        self.message, self.cause, self.hint = message, cause, hint

    def __str__(self):
        lines = [f"error: {self.message}"]
        lines += [f"  Caused by: {self.cause}"] if self.cause else []
        lines += [f"hint: {self.hint}"] if self.hint else []
        return "\n".join(lines)


class Task:
    """One task: `spec` is its specification, `usage` what becomes `usage.json`."""

    def __init__(self, spec):
        self.spec = spec
        self.usage = {"kind": "runner", "device": "cpu", "phases": [], "warnings": []}
        self._done, self._told, self._all = 0, float("-inf"), None

    def model_folder(self):
        """The directory of the model among the weights; one of the user's own is an absolute path."""
        return Path(self.spec["weights"]) / self.spec["model"]

    @contextmanager
    def phase(self, name):
        """Adds the wall time of the block to the phase of this name."""
        start = time.monotonic()
        try:
            yield
        finally:
            seconds = time.monotonic() - start
            for phase in self.usage["phases"]:
                if phase["name"] == name:
                    phase["seconds"] += seconds
                    break
            else:
                self.usage["phases"].append({"name": name, "seconds": seconds})

    def note(self, text):
        """Tells something on stderr, which is the task's log."""
        print(text, file=sys.stderr, flush=True)

    def warn(self, text):
        """Tells something once that a reader of the result must know; it also stands in the cost summary."""
        if text not in self.usage["warnings"]:
            self.usage["warnings"].append(text)
            self.note(f"warning: {text}")

    def expect(self, cells):
        """Begins to count anew, up to a number of its own: training does the same cells more than once."""
        self._done, self._all = 0, cells

    def advance(self, cells):
        """Counts cells that are done, and tells now and then how many they are."""
        self._done += cells
        count = self._all or self.usage.get("cells")
        if cells:
            self.tell(f"{self._done}/{count} cells", last=self._done == count)

    def tell(self, text, last=False):
        """Tells how far the work is, unless that was told a moment ago; the last of it always."""
        now = time.monotonic()
        if last or now - self._told >= PATIENCE:
            self._told = now
            self.note(text)

    def write_usage(self):
        own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        self.usage["peak_rss_bytes"] = own.ru_maxrss * 1024
        self.usage["cpu_seconds"] = own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
        with open("usage.json.partial", "w", encoding="utf-8") as file:
            json.dump(self.usage, file, indent=2)
        os.replace("usage.json.partial", "usage.json")


def main(**actions):
    """Does the action that the command line names, and leaves `usage.json`, also of a task that fails."""
    action, spec = arguments(sys.argv[1:], actions)
    with open(spec, encoding="utf-8") as file:
        task = Task(json.load(file))
    try:
        actions[action](task)
    except Refusal as refusal:
        print(refusal, file=sys.stderr, flush=True)
        sys.exit(REJECTED)
    finally:
        task.write_usage()


def arguments(words, actions):
    if len(words) != 3 or words[0] not in actions or words[1] != "--spec":
        sys.exit(f"usage: {sys.argv[0]} {'|'.join(actions)} --spec FILE")
    return words[0], words[2]
