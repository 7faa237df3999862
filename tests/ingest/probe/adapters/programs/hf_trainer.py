"""Hugging Face's Trainer over DDP; rank 1 is late in its forward pass; it evaluates and saves on the way."""

import sys
import tempfile
from collections.abc import Callable
from typing import Any

import torch
from rank import STEPS, Late, Unwatched, main
from torch import distributed, nn
from transformers import Trainer, TrainingArguments

from crosswind.huggingface import CrosswindCallback


class Regression(nn.Module):
    def __init__(self, late: Callable[[], None]) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 32), nn.GELU(), Late(late), nn.Linear(32, 1))

    def forward(self, inputs: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        outputs = self.layers(inputs)
        return {"loss": (outputs.squeeze(-1) - labels).square().mean(), "logits": outputs}


def train(run: Any, late: Callable[[], None]) -> nn.Module:
    torch.manual_seed(0)
    examples = [{"inputs": torch.randn(16), "labels": torch.tensor(1.0)} for _ in range(8 * 2 * STEPS)]
    model = Regression(late)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            use_cpu=True,
            max_steps=STEPS,
            per_device_train_batch_size=8,
            logging_steps=1,
            eval_strategy="steps",
            eval_steps=10,
            eval_on_start=True,  # of the model before it is wrapped
            save_steps=12,
            report_to=[],
            disable_tqdm=True,
            dataloader_pin_memory=False,
            ddp_backend="gloo",
        )
        callbacks = [] if isinstance(run, Unwatched) else [CrosswindCallback(run)]
        trainer = Trainer(model, arguments, train_dataset=examples, eval_dataset=examples[:16], callbacks=callbacks)
        said, sys.stdout = sys.stdout, sys.stderr
        trainer.train()
        sys.stdout = said
        distributed.barrier()
    return model


if __name__ == "__main__":
    main(train, late_rank=1)
