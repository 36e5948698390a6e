"""The Triton backend's table of ops."""

from __future__ import annotations

from functools import partial

import torch

from ..backend import BackendError, Guessing, Ops, Options, check_formats
from ..embed.triton_impl import embed
from ..feed.reference import feed
from ..fill.triton_impl import fill
from ..join.reference import join
from ..kv_cache.triton_impl import allocate, block_bytes
from ..linear.triton_impl import linear
from ..move_kv.triton_impl import move_kv, move_slots
from ..rank.triton_impl import rank, rank_rows
from ..rope_store.triton_impl import rope_store
from ..sample.triton_impl import sample
from ..select.reference import select
from ..settle.triton_impl import settle
from ..tree_attention import Layout
from ..tree_attention.triton_impl import DeviceWork, to_device, tree_attention
from ..tree_attention.work import plan
from .device import check_model, free_memory
from .packing import FLOATS, Packer
from .passes import SIZES, Machine, Passes, cuda_capture
from .transfer import host

_INTERPRETED_UNITS = 4  # multiprocessors of a machine that has none: work is split, as on a GPU


def build(options: Options, device: torch.device) -> Ops:
    """In bfloat16 on a GPU, in float32 where kernels are interpreted; or in what `options.weights` says, if floats.

    device: of `check_machine`. Raises BackendError for a format that there is not, or not on a GPU.
    """
    check_formats(options)
    on_gpu = device.type == "cuda"
    dtype = FLOATS.get(options.weights, torch.bfloat16 if on_gpu else torch.float32)
    if on_gpu and dtype == torch.float32:
        raise BackendError("The Triton kernels compute in 16 bits on a GPU; choose bf16 or f16 in place of f32.")
    units = torch.cuda.get_device_properties(device).multi_processor_count if on_gpu else _INTERPRETED_UNITS
    passes = Passes(Machine(device, units, partial(cuda_capture, device) if on_gpu else None))
    packer = Packer(options.weights, dtype, device)

    def prepare(layout: Layout | DeviceWork) -> DeviceWork:
        """That of a pass is there before it begins; other layouts are planned now."""
        if isinstance(layout, Layout):
            return to_device(plan(layout, programs=units), device)
        return layout

    return Ops(
        name="triton",
        asynchronous=on_gpu,
        compile=passes.compile,
        check=partial(check_model, form=options.kv),
        free_memory=partial(free_memory, device),
        packed_bytes=packer.packed_bytes,
        allocate=partial(allocate, form=options.kv, dtype=dtype, device=device),
        block_bytes=partial(block_bytes, form=options.kv, dtype=dtype),
        constant=lambda values: torch.from_numpy(values).to(device),
        pack=packer.pack,
        pack_table=packer.pack_table,
        tied_head=packer.tied_head,
        embed=embed,
        feed=partial(feed, dtype=dtype),
        select=select,
        linear=partial(linear, exact=options.exact),
        rope_store=rope_store,
        prepare=prepare,
        tree_attention=tree_attention,
        move_kv=move_kv,
        sample=sample,
        rank=rank,
        settle=partial(settle, move=move_slots),
        guessing=Guessing(rank_rows, join, fill),
        host=host,
        sizes=SIZES if on_gpu else (),
        wait=partial(torch.cuda.synchronize, device) if on_gpu else lambda: None,
        finish=lambda: None,
    )
