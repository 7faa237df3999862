"""Language modelling in the form of transformers' run_clm.py: arguments by HfArgumentParser, loop by Trainer.

$ torchrun --nproc_per_node 2 hf_run_clm.py --output_dir out --per_device_train_batch_size 4 --max_steps 10
"""

from dataclasses import dataclass, field

import torch
from transformers import GPT2Config, GPT2LMHeadModel, HfArgumentParser, Trainer, TrainingArguments, set_seed


@dataclass
class ModelArguments:
    n_embd: int = field(default=16, metadata={"help": "Width of the model."})


class Blocks(torch.utils.data.Dataset):
    def __len__(self):
        return 256

    def __getitem__(self, index):
        tokens = (torch.arange(16) * (index + 1)) % 64
        return {"input_ids": tokens, "labels": tokens}


def main():
    parser = HfArgumentParser((ModelArguments, TrainingArguments))
    model_args, training_args = parser.parse_args_into_dataclasses()
    set_seed(training_args.seed)
    config = GPT2Config(vocab_size=64, n_positions=16, n_embd=model_args.n_embd, n_layer=1, n_head=2)
    trainer = Trainer(model=GPT2LMHeadModel(config), args=training_args, train_dataset=Blocks())
    trainer.train()


if __name__ == "__main__":
    main()
