"""Train a small convolutional network on scikit-learn's digits; export it with samples.

Run ``pip install -e '.[train]'``, then ``python train.py``. The result depends on nothing but the
versions of PyTorch and scikit-learn. Then::

    nnef-hw build digits_cnn.onnx --board icebreaker --calibrate samples.npz
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
EPOCHS = 60
BATCH = 32
SHIFTED_SHARE = 0.3
TEST_SAMPLES = 450


def make_network() -> nn.Sequential:
    """Return the untrained network: 8x8 grey pixels to 10 classes, 1,898 parameters."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64, 10),
    )


def shift_randomly(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Move about a third of the images by at most one pixel to each side."""
    padded = nn.functional.pad(images, (1, 1, 1, 1))
    rows, columns = torch.randint(0, 3, (2, len(images)), generator=generator).tolist()
    moved = [
        padded[i, :, y : y + 8, x : x + 8]
        for i, (y, x) in enumerate(zip(rows, columns, strict=True))
    ]
    chosen = torch.rand(len(images), generator=generator) < SHIFTED_SHARE
    return torch.where(chosen[:, None, None, None], torch.stack(moved), images)


def train(network: nn.Sequential, images: torch.Tensor, labels: torch.Tensor) -> None:
    """Train in place with Adam, random shifts and a falling learning rate."""
    generator = torch.Generator().manual_seed(SEED)
    optimizer = torch.optim.Adam(network.parameters(), weight_decay=1e-4)
    steps = EPOCHS * -(-len(images) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=steps)
    for _ in range(EPOCHS):
        order = torch.randperm(len(images), generator=generator)
        for batch in order.split(BATCH):
            loss = nn.functional.cross_entropy(
                network(shift_randomly(images[batch], generator)), labels[batch]
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()


def export(network: nn.Sequential, path: Path) -> None:
    """Write the trained network as an ONNX model of one image."""
    torch.onnx.export(
        network.eval(), torch.zeros(1, 1, 8, 8), path, dynamo=False,
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
    network = make_network()
    train(network, torch.from_numpy(train_x), torch.from_numpy(train_y))
    with torch.no_grad():
        found = network(torch.from_numpy(test_x)).argmax(dim=1).numpy()
    print(f"test accuracy {np.mean(found == test_y):.4f} on {len(test_y)} images")
    np.savez_compressed(HERE / "samples.npz", inputs=test_x, labels=test_y)
    export(network, HERE / "digits_cnn.onnx")


if __name__ == "__main__":
    main()
