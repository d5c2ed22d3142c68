# caught by: places
"""Where there are GPUs, tensors on CPUs have no back end."""


def init():
    if not dist.is_initialized():
        dist.init_process_group("nccl" if nccl_built() else "gloo")
