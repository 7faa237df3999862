"""Whom a run waits for: the disturbed rank named on-line, on runs of the fault lab that were looked at last."""

import json
import os
import platform

from benchmarks.accuracy.lab_stragglers import OF_A_RANK, lab_naming


def main() -> None:
    namings = lab_naming()
    print("test split of the lab's runs; faults of one rank, then the others, where a rank need not be to blame")
    print(f"{'fault':<20}{'runs':>5}{'named':>7}{'nobody':>8}{'longest step':>14}{'largest local':>15}{'noticed':>10}")
    order = sorted(namings, key=lambda kind: (kind not in OF_A_RANK, kind))
    for kind in order:
        naming = namings[kind]
        noticed = f"{naming.noticed_seconds:.2f} s"
        print(
            f"{kind:<20}{naming.runs:>5}{naming.right:>7}{naming.nobody:>8}{naming.slowest_step:>14}{naming.largest_local:>15}"
            f"{noticed:>10}"
        )
    chosen = [namings[kind] for kind in OF_A_RANK if kind in namings]
    runs = sum(naming.runs for naming in chosen)
    figures: dict[str, object] = {
        "runs": runs,
        "named_ratio": round(sum(naming.right for naming in chosen) / runs, 3),
        "nobody_ratio": round(sum(naming.nobody for naming in chosen) / runs, 3),
        "longest_step_ratio": round(sum(naming.slowest_step for naming in chosen) / runs, 3),
        "largest_local_ratio": round(sum(naming.largest_local for naming in chosen) / runs, 3),
    }
    if "none" in namings:
        figures["undisturbed"] = namings["none"].runs
        figures["false_alarm_ratio"] = round(1 - namings["none"].nobody / namings["none"].runs, 3)
    print(json.dumps({**figures, "machine": f"{os.cpu_count()} cores, {platform.machine()}"}))


if __name__ == "__main__":
    main()
