"""Hugging Face's Trainer with a callback that opens the runs; the Trainer reports no failure to callbacks."""

import tempfile

import torch
from own_runs import FAILS_AFTER, STEPS, LossIsNaNError, main
from torch import nn
from transformers import Trainer, TrainingArguments

from crosswind.huggingface import CrosswindCallback

CALLBACK = CrosswindCallback(workload="regression")


class Regression(nn.Module):
    def __init__(self, calls_left: int) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 1)
        self.calls_left = calls_left

    def forward(self, inputs: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        if not self.calls_left:
            raise LossIsNaNError
        self.calls_left -= 1
        return {"loss": (self.layer(inputs).squeeze(-1) - labels).square().mean()}


def fit(fails: bool) -> None:
    examples = [{"inputs": torch.randn(16), "labels": torch.tensor(1.0)} for _ in range(8 * STEPS)]
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            use_cpu=True,
            max_steps=STEPS,
            per_device_train_batch_size=8,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            dataloader_pin_memory=False,
        )
        model = Regression(FAILS_AFTER if fails else STEPS)
        Trainer(model, arguments, train_dataset=examples, callbacks=[CALLBACK]).train()


if __name__ == "__main__":
    main(fit)
