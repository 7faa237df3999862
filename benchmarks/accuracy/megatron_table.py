"""Published runs on 32 to 3,072 GPUs, of networks and scales far from those on one node.

Data: table 1 of Narayanan et al. 2021, "Efficient large-scale language model training on GPU clusters", ten GPT models
on Selene's A100s (measured TFLOP/s of a device); micro-batches and chunks as in Megatron-LM's `run_table_1.sh`.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from crosswind.data.schema.facts import Facts
from crosswind.data.schema.question import Question
from crosswind.models.analytic.networks.transformer import Transformer

TABLE = Path(__file__).with_name("megatron_table_1.csv")
SEQUENCE, VOCABULARY = 2048, 51200
NAMED = (
    *("layers", "hidden", "heads", "sequence", "vocabulary", "global_batch", "micro_batch", "interleave"),
    *("tensor_parallel", "pipeline_parallel", "data_parallel"),
)


def published() -> pd.DataFrame:
    """Return `question`, and `seconds` of a step: operations over devices and their measured rate."""
    read = pd.read_csv(TABLE).assign(sequence=SEQUENCE, vocabulary=VOCABULARY)
    read["data_parallel"] = read["ranks"] // (read["tensor_parallel"] * read["pipeline_parallel"])
    shapes = read[["layers", "hidden", "heads", "global_batch"]].to_numpy(np.int64).tolist()
    work = [_flops(layers, hidden, heads, batch) for layers, hidden, heads, batch in shapes]
    seconds = np.array(work) / (read["ranks"] * read["teraflops_a_device"] * 1e12).to_numpy(np.float64)
    return pd.DataFrame({"question": [_question(row) for row in read.to_dict("records")], "seconds": seconds})


def _flops(layers: int, hidden: int, heads: int, batch: int) -> float:
    model = Transformer(layers=layers, hidden=hidden, heads=heads, sequence=SEQUENCE, vocabulary=VOCABULARY)
    return model.flops(batch, recompute=True)


def _question(row: dict[str, object]) -> Question:
    configuration = {**{name: int(str(row[name])) for name in NAMED}, "recompute": True}
    ranks, facts = int(str(row["ranks"])), Facts(accelerator="A100-SXM4-80GB")
    return Question(f"gpt-{row['parameters_billion']}b", "selene", configuration, ranks, ranks // 8, facts)
