"""A barrier job of Spark with two tasks that train together over allGather; task 1 is late before it."""

import json
import os
import sys
from collections.abc import Iterable, Iterator

import pyspark
from pyspark import SparkContext

STEPS, LATE_SECONDS = 24, 0.1


def task(_: Iterable[int]) -> Iterator[dict[str, bool]]:
    """One rank: a weight that follows the mean of what all ranks see."""
    import time  # noqa: PLC0415 - this function travels to the worker

    import crosswind  # noqa: PLC0415
    from crosswind.ingest.probe.adapters.spark import announce_task  # noqa: PLC0415

    context = pyspark.BarrierTaskContext.get()

    def train(context: pyspark.BarrierTaskContext, batches: Iterable[int], late_seconds: float) -> float:
        weight = 0.0
        for batch in batches:
            time.sleep(late_seconds if context.partitionId() == 1 else 0)
            seen = context.allGather(f"{batch * (1 + context.partitionId()) - weight:+.17e}")
            weight += 0.1 * sum(map(float, seen)) / len(seen)
        return weight

    unwatched = train(context, range(STEPS), 0)
    with crosswind.run(workload="spark", run_id=announce_task(context, "trained")) as run:
        watched = train(run.watch(context), run.steps(range(STEPS)), LATE_SECONDS)
    yield {"rank": context.partitionId(), "is_same": watched == unwatched}


def main() -> None:
    """Says what each task said."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkContext("local[2]", "barrier", conf=pyspark.SparkConf().set("spark.ui.enabled", "false"))
    spark.setLogLevel("ERROR")
    for report in spark.parallelize(range(2), 2).barrier().mapPartitions(task).collect():
        sys.stdout.write(json.dumps(report) + "\n")
    spark.stop()


if __name__ == "__main__":
    main()
