"""An autoencoder as in Lightning's introduction; `devices=2` makes the script start its second process itself.

$ python lightning_autoencoder.py --devices 2 --hidden 16
"""

import argparse

import lightning as L
import torch
from torch.utils.data import DataLoader


class LitAutoEncoder(L.LightningModule):
    def __init__(self, hidden, lr):
        super().__init__()
        self.lr = lr
        self.encoder = torch.nn.Sequential(torch.nn.Linear(32, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, 3))
        self.decoder = torch.nn.Sequential(torch.nn.Linear(3, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, 32))

    def training_step(self, batch, batch_idx):
        loss = torch.nn.functional.mse_loss(self.decoder(self.encoder(batch)), batch)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        self.log("val_loss", torch.nn.functional.mse_loss(self.decoder(self.encoder(batch)), batch))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument("--hidden", type=int, default=16)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--default_root_dir", default=".")
    args = parser.parse_args()
    L.seed_everything(args.seed)
    data = torch.randn(64, 32)
    trainer = L.Trainer(
        accelerator="cpu",
        devices=args.devices,
        strategy="ddp",
        max_epochs=2,
        default_root_dir=args.default_root_dir,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(
        LitAutoEncoder(args.hidden, args.lr), DataLoader(data, batch_size=4), DataLoader(data[:8], batch_size=4)
    )


if __name__ == "__main__":
    main()
