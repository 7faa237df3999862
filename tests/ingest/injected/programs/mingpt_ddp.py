"""A Trainer class in the form of minGPT-ddp (pytorch/examples): Hydra's overrides, a DataLoader, snapshots, epochs.

$ torchrun --standalone --nproc_per_node=2 mingpt_ddp.py trainer_config.batch_size=8 data_config.path=./input.txt
"""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.distributed import destroy_process_group, init_process_group
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, random_split
from torch.utils.data.distributed import DistributedSampler

CONFIG = {  # as gpt2_train_cfg.yaml
    "gpt_config.n_embd": 32,
    "trainer_config.max_epochs": 2,
    "trainer_config.batch_size": 8,
    "trainer_config.data_loader_workers": 1,
    "trainer_config.grad_norm_clip": 1.0,
    "trainer_config.snapshot_path": "gpt_snapshot.pt",
    "optimizer_config.learning_rate": 3e-4,
    "data_config.path": "input.txt",
    "data_config.block_size": 16,
}


def overridden(words):
    config = dict(CONFIG)
    for name, value in (word.split("=", 1) for word in words):
        config[name.lstrip("+")] = type(config[name.lstrip("+")])(value)
    return config


class CharDataset(Dataset):
    def __init__(self, path, block_size):
        text = Path(path).read_text() if Path(path).exists() else "the quick brown fox jumps over it all. " * 8
        self.stoi = {ch: i for i, ch in enumerate(sorted(set(text)))}
        self.data, self.block_size, self.vocab_size = text, block_size, len(self.stoi)

    def __len__(self):
        return len(self.data) - self.block_size

    def __getitem__(self, idx):
        dix = torch.tensor([self.stoi[s] for s in self.data[idx : idx + self.block_size + 1]])
        return dix[:-1], dix[1:]


@dataclass
class Snapshot:
    model_state: dict
    finished_epoch: int


class Trainer:
    def __init__(self, config, model, optimizer, train_dataset, test_dataset):
        self.config = config
        self.local_rank = int(os.environ["LOCAL_RANK"])
        self.global_rank = int(os.environ["RANK"])
        self.train_loader = self._prepare_dataloader(train_dataset)
        self.test_loader = self._prepare_dataloader(test_dataset)
        self.optimizer = optimizer
        self.model = DDP(model)

    def _prepare_dataloader(self, dataset):
        return DataLoader(
            dataset,
            batch_size=self.config["trainer_config.batch_size"],
            shuffle=False,
            num_workers=self.config["trainer_config.data_loader_workers"],
            sampler=DistributedSampler(dataset),
        )

    def _run_batch(self, source, targets, train=True):
        with torch.set_grad_enabled(train):
            logits = self.model(source)
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        if train:
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config["trainer_config.grad_norm_clip"])
            self.optimizer.step()
        return loss.item()

    def _run_epoch(self, epoch, dataloader, train=True):
        dataloader.sampler.set_epoch(epoch)
        for iteration, (source, targets) in enumerate(dataloader):
            step_type = "Train" if train else "Eval"
            batch_loss = self._run_batch(source, targets, train)
            if iteration % 10 == 0:
                print(f"[RANK{self.global_rank}] Epoch {epoch} | Iter {iteration} | {step_type} Loss {batch_loss:.5f}")

    def _save_snapshot(self, epoch):
        snapshot = Snapshot(self.model.module.state_dict(), epoch)
        torch.save(vars(snapshot), self.config["trainer_config.snapshot_path"])

    def train(self):
        for epoch in range(self.config["trainer_config.max_epochs"]):
            self._run_epoch(epoch, self.train_loader, train=True)
            if self.local_rank == 0:
                self._save_snapshot(epoch)
            self._run_epoch(epoch, self.test_loader, train=False)


def main(config):
    init_process_group(backend="gloo")
    torch.manual_seed(0)
    dataset = CharDataset(config["data_config.path"], config["data_config.block_size"])
    train_len = int(len(dataset) * 0.9)
    train_set, test_set = random_split(dataset, [train_len, len(dataset) - train_len])
    width = config["gpt_config.n_embd"]
    model = torch.nn.Sequential(
        torch.nn.Embedding(dataset.vocab_size, width), torch.nn.Linear(width, dataset.vocab_size)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=config["optimizer_config.learning_rate"])
    Trainer(config, model, optimizer, train_set, test_set).train()
    destroy_process_group()


if __name__ == "__main__":
    main(overridden(sys.argv[1:]))
