"""Lightning over DDP; rank 1 is late in its forward pass; it validates and saves on the way."""

import tempfile
from collections.abc import Callable
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.plugins.environments import LightningEnvironment
from rank import Late, Unwatched, batches, main
from torch import distributed, nn
from torch.utils.data import DataLoader

from crosswind.lightning import CrosswindCallback


class Regression(lightning.LightningModule):
    def __init__(self, late: Callable[[], None]) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 32), nn.GELU(), Late(late), nn.Linear(32, 1))

    def training_step(self, batch: torch.Tensor, batch_idx: int) -> torch.Tensor:
        return self.layers(batch).square().mean()

    def validation_step(self, batch: torch.Tensor, batch_idx: int) -> None:
        self.layers(batch)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=0.01)


def train(run: Any, late: Callable[[], None]) -> nn.Module:
    torch.manual_seed(0)
    model = Regression(late)
    own = DataLoader(list(batches()), batch_size=None)
    with tempfile.TemporaryDirectory() as folder:
        trainer = lightning.Trainer(
            accelerator="cpu",
            devices=distributed.get_world_size(),
            strategy=lightning.pytorch.strategies.DDPStrategy(process_group_backend="gloo"),
            plugins=[LightningEnvironment()],  # left to look, it asks mpi4py, which fails where no MPI is installed
            max_epochs=1,
            val_check_interval=10,
            num_sanity_val_steps=0,
            log_every_n_steps=1,
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            use_distributed_sampler=False,
            default_root_dir=folder,
            callbacks=[ModelCheckpoint(folder, every_n_train_steps=12, save_top_k=-1)]
            + ([] if isinstance(run, Unwatched) else [CrosswindCallback(run)]),
        )
        trainer.fit(model, own, DataLoader(list(batches())[:2], batch_size=None))
    return model


if __name__ == "__main__":
    main(train, late_rank=1)
