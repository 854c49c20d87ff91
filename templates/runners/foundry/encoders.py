"""Models of the transformers library, loaded so that nothing is left random."""

from torch import nn
from transformers import AutoModel, BertConfig, BertModel
from transformers.utils import logging

from .batches import is_out_of_memory
from .task import Refusal

# What is missing is an error here; what is not used is no news.
logging.set_verbosity_error()
logging.disable_progress_bar()


def complete(path):
    """The directory, if it is that of a model."""
    if not (path / "config.json").is_file():
        raise Refusal(
            f"{path} holds no model",
            cause="config.json is missing",
            hint="`scfoundry download --dry-run` names the files of each model and where they are from",
        )
    return path


def config(path):
    return BertConfig.from_pretrained(path)


def encoder(path, state=None):
    """The encoder of the BERT kind alone, in float32; `state` are its weights where they are not the directory's own."""
    if state is None:
        model, report = read(path, BertModel, add_pooling_layer=False)
        return finished(path, model, report["missing_keys"])
    model = BertModel(config(path), add_pooling_layer=False)
    missing, _ = model.load_state_dict(state, strict=False)
    return finished(path, model, missing)


def any_kind(path):
    """The model of the kind that its config names, without a head, in float32."""
    model, report = read(path, AutoModel)
    return finished(path, model, report["missing_keys"])


def read(path, kind, **options):
    """The model, and what the library says of its tensors."""
    try:
        return kind.from_pretrained(path, output_loading_info=True, **options)
    except Exception as error:
        # Every version of the library, and every form of the weights, has errors of its own for a file that is cut short.
        if is_out_of_memory(error):
            raise
        words = str(error).strip().splitlines()
        cause = words[0] if words else type(error).__name__
        raise Refusal(
            f"the weights in {path} cannot be read",
            cause=cause,
            hint="they may be cut short or of another version: compare them with `scfoundry download --dry-run`",
        ) from None


def finished(path, model, missing):
    missing = [key for key in missing if "position_ids" not in key]
    if missing:
        raise Refusal(
            f"the weights in {path} are not those of this model",
            cause=f"{len(missing)} tensors are missing, such as {missing[0]}",
            hint="they may be cut short or of another version: compare them with `scfoundry download --dry-run`",
        )
    return model.float()


class Pooled(nn.Module):
    """An encoder and what is made of its last layer: one row for each cell."""

    def __init__(self, model, pool):
        super().__init__()
        self.model, self.pool = model, pool

    def forward(self, tokens, mask):
        return self.pool(self.model(input_ids=tokens, attention_mask=mask.long()).last_hidden_state, mask)


def of_first(hidden, mask):
    """The row of the first token."""
    return hidden[:, 0]


def mean(hidden, mask):
    """The mean over tokens."""
    mask = mask.unsqueeze(-1)
    return (hidden * mask).sum(1) / mask.sum(1)


def untrained(settings):
    """An encoder of this shape, a dictionary, whose weights come later."""
    return BertModel(BertConfig.from_dict(settings), add_pooling_layer=False)
