"""Train a microGPT on first names; export a step of it with samples.

Run ``pip install torch onnx``, then ``python train.py names.txt`` with a file of one name a
line, such as that of github.com/karpathy/makemore. The result depends on nothing but that file and
the version of PyTorch. Then::

    nnef-hw build names_gpt.onnx --board tang_nano_20k --calibrate samples.npz \
        --state keys=keys_next --state values=values_next
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

HERE = Path(__file__).parent
SEED = 7
STEPS = 20_000
BATCH = 64
TEST_NAMES = 2_000
SEQUENCES, LENGTH = 64, 64

FEATURES = 16
HEADS = 4
CONTEXT = 16
TOKENS = 27
END = 26
"""The token in front of a name, and behind it; letters are 0 to 25."""


def normalized(x: torch.Tensor) -> torch.Tensor:
    """Divide vectors by their root mean square."""
    return x * torch.rsqrt((x * x).mean(dim=-1, keepdim=True) + 1e-5)


class MicroGpt(nn.Module):
    """A transformer of 4,192 parameters that tells the next letter of a name."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(TOKENS, FEATURES)
        self.positions = nn.Embedding(CONTEXT, FEATURES)
        self.query, self.key, self.value, self.joined = (
            nn.Linear(FEATURES, FEATURES, bias=False) for _ in range(4)
        )
        self.wide = nn.Linear(FEATURES, 4 * FEATURES, bias=False)
        self.narrow = nn.Linear(4 * FEATURES, FEATURES, bias=False)
        self.scores = nn.Linear(FEATURES, TOKENS, bias=False)
        for table in (self.tokens, self.positions):
            nn.init.normal_(table.weight, std=0.1)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the scores of all next tokens, for sequences [N, T]."""
        count, length = tokens.shape
        places = torch.arange(length)
        x = normalized(self.tokens(tokens) + self.positions(places))
        y = normalized(x)
        q, k, v = (
            layer(y).view(count, length, HEADS, -1).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        return self.behind(x, functional.scaled_dot_product_attention(q, k, v, is_causal=True)
                           .transpose(1, 2).reshape(count, length, FEATURES))  # fmt: skip

    def behind(self, x: torch.Tensor, attended: torch.Tensor) -> torch.Tensor:
        """Return the scores of what attention gives for vectors."""
        x = x + self.joined(attended)
        x = x + self.narrow(functional.relu(self.wide(normalized(x))))
        return self.scores(x)


class Step(nn.Module):
    """One step of a trained network: a token's scores, given keys and values of earlier tokens."""

    def __init__(self, network: MicroGpt) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("places", torch.arange(CONTEXT))

    def forward(
        self,
        token: torch.Tensor,
        position: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the scores of the next token, and keys and values with a row more."""
        network = self.network
        x = normalized(network.tokens(token) + network.positions(position))
        y = normalized(x)
        here = (self.places == position)[:, None]
        keys = torch.where(here, network.key(y), keys)
        values = torch.where(here, network.value(y), values)
        q = network.query(y).view(HEADS, 1, -1)
        k, v = (cache.view(CONTEXT, HEADS, -1).transpose(0, 1) for cache in (keys, values))
        scores = q @ k.transpose(1, 2) / (FEATURES // HEADS) ** 0.5
        scores = scores.masked_fill(self.places > position, float("-inf"))
        attended = (scores.softmax(dim=-1) @ v).reshape(1, FEATURES)
        return network.behind(x, attended), keys, values


def as_tokens(name: str) -> list[int]:
    """Return the tokens of a name, and those around it."""
    return [END, *(ord(letter) - ord("a") for letter in name), END]


def train(network: MicroGpt, names: list[str]) -> None:
    """Train in place with AdamW and a learning rate that rises and falls."""
    rows = np.full((len(names), CONTEXT + 1), -1)
    for row, name in zip(rows, names, strict=True):
        row[: len(name) + 2] = as_tokens(name)
    data = torch.from_numpy(rows)
    generator = torch.Generator().manual_seed(SEED)
    optimizer = torch.optim.AdamW(network.parameters(), weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=STEPS)
    for _ in range(STEPS):
        batch = data[torch.randint(len(data), (BATCH,), generator=generator)]
        found = network(batch[:, :-1].clamp(min=0))
        wanted = batch[:, 1:]
        loss = functional.cross_entropy(found.flatten(0, 1), wanted.flatten(), ignore_index=-1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()


def sequences(names: list[str]) -> dict[str, np.ndarray]:
    """Return names one behind the other, as steps read them: positions begin anew with each.

    A sequence begins with a name, since caches are empty then; its last one may be cut off.
    """
    arrays = {
        key: np.zeros((SEQUENCES, LENGTH), np.int64) for key in ("token", "position", "labels")
    }
    pending = iter(names)
    for number in range(SEQUENCES):
        steps: list[tuple[int, int, int]] = []
        while len(steps) < LENGTH:
            codes = as_tokens(next(pending))
            steps += zip(codes[:-1], range(len(codes) - 1), codes[1:], strict=True)
        for array, column in zip(arrays.values(), zip(*steps[:LENGTH], strict=True), strict=True):
            array[number] = column
    return {key: x if key == "labels" else x[..., None] for key, x in arrays.items()}


def main() -> None:
    """Train, write the model of a step and held-out samples, print the loss."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", type=Path)
    names = sorted(set(parser.parse_args().names.read_text().split()))
    names = [name for name in names if len(name) < CONTEXT]
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    order = torch.randperm(len(names)).tolist()
    held, known = ([names[n] for n in part] for part in (order[:TEST_NAMES], order[TEST_NAMES:]))
    network = MicroGpt()
    train(network, known)
    network.eval()
    with torch.no_grad():
        losses = torch.cat([
            functional.cross_entropy(network(torch.tensor([codes[:-1]]))[0],
                                     torch.tensor(codes[1:]), reduction="none")
            for codes in map(as_tokens, held)
        ])  # fmt: skip
    print(f"{losses.mean():.4f} nats per token on {len(held)} names")
    np.savez_compressed(HERE / "samples.npz", **sequences(held))
    zero, cache = torch.zeros(1, dtype=torch.int64), torch.zeros(CONTEXT, FEATURES)
    torch.onnx.export(
        Step(network).eval(), (zero, zero, cache, cache), HERE / "names_gpt.onnx", dynamo=False,
        opset_version=17, input_names=["token", "position", "keys", "values"],
        output_names=["scores", "keys_next", "values_next"],
    )  # fmt: skip


if __name__ == "__main__":
    main()
