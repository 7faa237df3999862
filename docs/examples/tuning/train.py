"""A small training of handwritten digits, for a notebook and for job scripts: seconds on one core.

python train.py --lr 0.01 --hidden 64 --batch 32    # prints loss=... and accuracy=... of held-out digits
"""

import argparse
from collections.abc import Callable

import torch
from sklearn.datasets import load_digits

EPOCHS = 9


def train(
    lr: float, hidden: int, batch: int, on_epoch: Callable[[float, int], object] | None = None
) -> dict[str, float]:
    """Return loss and accuracy on the last third of the digits; `on_epoch` gets the loss after epoch 1, 2 and so on."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    digits = load_digits()
    X = torch.tensor(digits.data, dtype=torch.float32) / 16
    y = torch.tensor(digits.target)
    n_train = len(X) * 2 // 3
    model = torch.nn.Sequential(torch.nn.Linear(64, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    held_out = {}
    for epoch in range(1, EPOCHS + 1):
        for rows in torch.randperm(n_train).split(batch):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(X[rows]), y[rows]).backward()
            optimizer.step()
        with torch.no_grad():
            scores = model(X[n_train:])
        loss = float(torch.nn.functional.cross_entropy(scores, y[n_train:]))
        held_out = {"loss": loss, "accuracy": float((scores.argmax(1) == y[n_train:]).float().mean())}
        if on_epoch:
            on_epoch(loss, epoch)
    return held_out


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, required=True)
    parser.add_argument("--hidden", type=int, required=True)
    parser.add_argument("--batch", type=int, required=True)
    measured = train(**vars(parser.parse_args()))
    print(" ".join(f"{name}={value}" for name, value in measured.items()))
