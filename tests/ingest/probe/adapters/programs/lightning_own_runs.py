"""Lightning with a callback that opens the runs, and a `save_checkpoint` of the user's own, which is left as it was."""

import tempfile
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from own_runs import FAILS_AFTER, STEPS, LossIsNaNError, main
from torch import nn
from torch.utils.data import DataLoader

from crosswind.lightning import CrosswindCallback

CALLBACK = CrosswindCallback(workload="regression")


class Regression(lightning.LightningModule):
    def __init__(self, fails: bool) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 1)
        self.fails = fails

    def training_step(self, batch: torch.Tensor, batch_idx: int) -> torch.Tensor:
        if self.fails and batch_idx == FAILS_AFTER:
            raise LossIsNaNError
        return self.layer(batch).square().mean()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=0.01)


def fit(fails: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        trainer = lightning.Trainer(
            accelerator="cpu",
            devices=1,
            max_epochs=1,
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=folder,
            callbacks=[CALLBACK, ModelCheckpoint(folder, every_n_train_steps=FAILS_AFTER, save_top_k=-1)],
        )
        save, saved = trainer.save_checkpoint, []

        def own(*arguments: Any, **named: Any) -> None:
            saved.append(arguments)
            save(*arguments, **named)

        trainer.save_checkpoint = own
        try:
            trainer.fit(Regression(fails), DataLoader([torch.randn(8, 16) for _ in range(STEPS)], batch_size=None))
        finally:
            assert trainer.save_checkpoint is own
            assert len(saved) == (1 if fails else 2)


if __name__ == "__main__":
    main(fit)
