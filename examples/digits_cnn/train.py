"""Train a small convolutional network on scikit-learn's digits; write it as NNEF with samples.

Run ``pip install nnef-hw[train]``, then ``python train.py``. The result depends on nothing but the
versions of PyTorch and scikit-learn.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from nnef_hw.frontend import save
from nnef_hw.testing import GraphBuilder

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


def write_network(network: nn.Sequential, path: Path) -> None:
    """Write the trained network as an NNEF archive."""
    conv1, conv2, fc = (m for m in network if isinstance(m, nn.Conv2d | nn.Linear))
    graph = GraphBuilder("digits_cnn")
    x = graph.input("input", [1, 1, 8, 8])

    def variables(layer: nn.Module, name: str) -> tuple[str, str]:
        weight, bias = (p.detach().numpy() for p in (layer.weight, layer.bias))
        return (
            graph.constant(f"{name}_filter", weight, f"{name}/filter"),
            graph.constant(f"{name}_bias", bias.reshape(1, -1), f"{name}/bias"),
        )

    x = graph.conv(x, *variables(conv1, "conv1"), name="conv1", padding=1)
    x = graph.op("relu", x, name="relu1")
    x = graph.pool("max_pool", x, 2, name="pool1")
    x = graph.conv(x, *variables(conv2, "conv2"), name="conv2", padding=1)
    x = graph.op("relu", x, name="relu2")
    x = graph.pool("max_pool", x, 2, name="pool2")
    x = graph.reshape(x, [1, 64], name="flatten")
    graph.op("linear", x, *variables(fc, "fc"), name="output")
    save(graph.build(), path)


def main() -> None:
    """Train, write the archive and the held-out samples, print the accuracy."""
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
    write_network(network, HERE / "digits_cnn.nnef.tgz")


if __name__ == "__main__":
    main()
