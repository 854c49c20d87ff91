"""The files of a model."""

from .task import Refusal

HINT = "`scfoundry download --dry-run` names the files of each model and where they are from"


def present(path):
    """The path, if there is a file."""
    if not path.is_file():
        raise Refusal(f"{path} is missing", hint=HINT)
    return path


def damaged(path, cause):
    """What to say of a file that is there and cannot be used."""
    return Refusal(f"{path} is not what this model needs", cause=cause, hint=f"it may be cut short or of another version: {HINT}")
