"""Modules whose archives by torch_to_nnef and results by PyTorch are in ``tests/cases``.

``python tests/helpers/formats/torch_to_nnef_cases.py TRACT`` records them with torch 2.13.0,
torchvision 0.28.0 and torch_to_nnef 0.24.12, where TRACT is a program that prints ``tract 0.23.8``.
"""

import gzip
import io
import re
import sys
import tarfile
import tempfile
from pathlib import Path

import numpy as np
import torch
import torch_to_nnef
from torch import nn
from torch_to_nnef.inference_target import KhronosNNEF, TractNNEF
from torchvision.models.vision_transformer import VisionTransformer

MACHINE = rb'(?m)^ *\("(os|hostname|user|py_version|export\w*)", .*\n'
FOLDER = Path(__file__).parents[2] / "cases" / "torch_to_nnef"


class Image(nn.Module):
    """For Khronos; as many channels as columns: parameters along the last axis fit both."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6), nn.ReLU6(),
            nn.Conv2d(6, 6, 3, padding=1, groups=6, padding_mode="reflect"), nn.BatchNorm2d(6),
            nn.SiLU(), nn.Conv2d(6, 6, 1), nn.GELU(), nn.Conv2d(6, 6, 1), nn.MaxPool2d(3, 2, 1),
            nn.GLU(1), nn.LeakyReLU(0.1), nn.Softsign(), nn.PReLU(3),
        )  # fmt: skip
        self.head = nn.Linear(27, 6)

    def forward(self, x):
        a, b, c = self.head(self.features(x).flatten(1)).reshape(1, 3, 2).unbind(1)
        return torch.softmax(torch.stack([a * b, c], 1), 2)


class Attention(nn.Module):
    """For tract: causal attention and a recurrent layer."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)
        self.norm, self.rnn = nn.LayerNorm(8), nn.GRU(8, 4, batch_first=True)

    def forward(self, x):
        batch, steps, width = x.shape
        qkv = self.qkv(self.norm(x)).reshape(batch, steps, 3, 2, width // 2)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = self.out(y.transpose(1, 2).reshape(batch, steps, width))
        return self.rnn(x + y)[0]


def vision_transformer():
    """Return torchvision's, at a small size; its head would be 0."""
    net = VisionTransformer(
        image_size=32, patch_size=8, num_layers=2, num_heads=2, hidden_dim=16, mlp_dim=32,
        num_classes=10,
    )  # fmt: skip
    nn.init.normal_(net.heads.head.weight)
    return net


def record(name, module, shape, target):
    torch.manual_seed(1)
    net = module().eval()
    for part in net.modules():
        if isinstance(part, nn.BatchNorm2d):
            nn.init.normal_(part.running_mean)
            nn.init.uniform_(part.running_var, 0.5, 2)
            nn.init.normal_(part.weight)
            nn.init.normal_(part.bias)
    x = torch.randn(shape)
    with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
        np.savez(FOLDER / f"{name}.npz", x=x.numpy(), y=net(x).numpy())
        path = Path(folder) / "net.nnef.tgz"
        torch_to_nnef.export_model_to_nnef(
            net, (x,), path, target, input_names=["x"], output_names=["y"]
        )
        (FOLDER / f"{name}.nnef.tgz").write_bytes(packed(path))


def packed(path):
    """Return an archive without what it tells of the machine it was made on."""
    result = io.BytesIO()
    with tarfile.open(path) as old, tarfile.open(fileobj=result, mode="w") as new:
        for member in sorted(filter(tarfile.TarInfo.isfile, old), key=lambda item: item.name):
            data = old.extractfile(member).read()
            if member.name == "graph.nnef":
                data = re.sub(MACHINE, b"", data)
                data = re.sub(rb",(\s*\];)", rb"\1", data)
            info = tarfile.TarInfo(member.name)
            info.size = len(data)
            new.addfile(info, io.BytesIO(data))
    return gzip.compress(result.getvalue(), 9, mtime=0)


if __name__ == "__main__":
    khronos = KhronosNNEF("1.0.5", check_io=False)
    tract = TractNNEF("0.23.8", check_io=False, specific_tract_binary_path=Path(sys.argv[1]))
    record("image", Image, (1, 1, 6, 6), khronos)
    record("attention", Attention, (1, 5, 8), tract)
    torch.backends.mha.set_fastpath_enabled(False)
    record("vision_transformer", vision_transformer, (1, 3, 32, 32), tract)
