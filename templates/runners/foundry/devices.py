"""The device that torch computes on, and what it took of its memory."""

import torch


def choose(task, use_gpu=True):
    """The first GPU that the task may see, else the processor."""
    if not use_gpu or not torch.cuda.is_available():
        task.usage.update(device="cpu", gpus=0, threads=torch.get_num_threads())
        return torch.device("cpu")
    task.usage.update(device=torch.cuda.get_device_name(0), gpus=1)
    torch.cuda.reset_peak_memory_stats()
    return torch.device("cuda", 0)


def record(task):
    """Puts the peaks of the GPU's memory into the record of the task."""
    if torch.cuda.is_available():
        task.usage["peak_gpu_bytes_allocated"] = torch.cuda.max_memory_allocated()
        task.usage["peak_gpu_bytes_reserved"] = torch.cuda.max_memory_reserved()
