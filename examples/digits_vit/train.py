"""Train a small vision transformer on scikit-learn's digits; export it with samples.

Run ``pip install -e '.[train]'``, then ``python train.py``. The result depends on nothing but the
versions of PyTorch and scikit-learn. Then::

    nnef-hw build digits_vit.onnx --board tang_nano_20k --calibrate samples.npz
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

HERE = Path(__file__).parent
SEED = 7
EPOCHS = 200
BATCH = 32
SHIFTED_SHARE = 0.5
TEST_SAMPLES = 450

PATCH = 2
TOKENS = (8 // PATCH) ** 2
FEATURES = 16
HEADS = 2
LAYERS = 1


class DigitsTransformer(nn.Module):
    """A vision transformer: 8x8 grey pixels to 10 classes.

    Patches of 2x2 pixels become 16 tokens of 16 features, to which a learned position is added.
    """

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, FEATURES, PATCH, stride=PATCH)
        self.positions = nn.Parameter(0.02 * torch.randn(1, TOKENS, FEATURES))
        layer = nn.TransformerEncoderLayer(
            FEATURES, HEADS, dim_feedforward=2 * FEATURES, dropout=0.0, batch_first=True,
            norm_first=True,
        )  # fmt: skip
        self.encoder = nn.TransformerEncoder(
            layer, LAYERS, norm=nn.LayerNorm(FEATURES), enable_nested_tensor=False
        )
        self.head = nn.Linear(FEATURES, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return the scores of 10 classes for images of shape [N, 1, 8, 8]."""
        tokens = self.patches(images).flatten(2).transpose(1, 2) + self.positions
        return self.head(self.encoder(tokens).mean(dim=1))


def shift_randomly(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Move about half of the images by at most one pixel to each side."""
    padded = nn.functional.pad(images, (1, 1, 1, 1))
    rows, columns = torch.randint(0, 3, (2, len(images)), generator=generator).tolist()
    moved = [
        padded[i, :, y : y + 8, x : x + 8]
        for i, (y, x) in enumerate(zip(rows, columns, strict=True))
    ]
    chosen = torch.rand(len(images), generator=generator) < SHIFTED_SHARE
    return torch.where(chosen[:, None, None, None], torch.stack(moved), images)


def train(network: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> None:
    """Train in place with AdamW, random shifts and a learning rate that rises and falls."""
    generator = torch.Generator().manual_seed(SEED)
    optimizer = torch.optim.AdamW(network.parameters(), weight_decay=1e-2)
    steps = EPOCHS * -(-len(images) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-3, total_steps=steps)
    for _ in range(EPOCHS):
        order = torch.randperm(len(images), generator=generator)
        for batch in order.split(BATCH):
            loss = nn.functional.cross_entropy(
                network(shift_randomly(images[batch], generator)), labels[batch],
                label_smoothing=0.05,
            )  # fmt: skip
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()


def export(network: nn.Module, path: Path) -> None:
    """Write the trained network as an ONNX model of one image."""
    torch.backends.mha.set_fastpath_enabled(False)  # its fused operator has no ONNX form
    torch.onnx.export(
        network.eval(), torch.zeros(1, 1, 8, 8), path, dynamo=False, opset_version=17,
        input_names=["input"], output_names=["output"],
    )  # fmt: skip


def main() -> None:
    """Train, write the model and the held-out samples, print the accuracy."""
    torch.manual_seed(SEED)
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    images, labels = load_digits(return_X_y=True)
    images = (images.reshape(-1, 1, 8, 8) / 16).astype(np.float32)
    train_x, test_x, train_y, test_y = train_test_split(
        images, labels.astype(np.int64), test_size=TEST_SAMPLES, stratify=labels, random_state=SEED
    )
    network = DigitsTransformer()
    train(network, torch.from_numpy(train_x), torch.from_numpy(train_y))
    network.eval()
    with torch.no_grad():
        found = network(torch.from_numpy(test_x)).argmax(dim=1).numpy()
    print(f"test accuracy {np.mean(found == test_y):.4f} on {len(test_y)} images")
    np.savez_compressed(HERE / "samples.npz", inputs=test_x, labels=test_y)
    export(network, HERE / "digits_vit.onnx")


if __name__ == "__main__":
    main()
