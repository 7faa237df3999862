"""Whom a run waits for: the disturbed rank named on-line, on runs of the fault lab that were looked at last."""

import json
import os
import platform

from benchmarks.accuracy.lab_stragglers import OF_A_RANK, lab_naming


def main() -> None:
    found = lab_naming()
    print("test split of the lab's runs; faults of one rank, then the others, where a rank need not be to blame")
    print(f"{'fault':<20}{'runs':>5}{'named':>7}{'nobody':>8}{'longest step':>14}{'largest local':>15}{'noticed':>10}")
    order = sorted(found, key=lambda kind: (kind not in OF_A_RANK, kind))
    for kind in order:
        each = found[kind]
        noticed = f"{each.noticed_seconds:.2f} s"
        print(
            f"{kind:<20}{each.runs:>5}{each.right:>7}{each.nobody:>8}{each.slowest_step:>14}{each.largest_local:>15}"
            f"{noticed:>10}"
        )
    chosen = [found[kind] for kind in OF_A_RANK if kind in found]
    runs = sum(each.runs for each in chosen)
    figures: dict[str, object] = {
        "runs": runs,
        "named_ratio": round(sum(each.right for each in chosen) / runs, 3),
        "nobody_ratio": round(sum(each.nobody for each in chosen) / runs, 3),
        "longest_step_ratio": round(sum(each.slowest_step for each in chosen) / runs, 3),
        "largest_local_ratio": round(sum(each.largest_local for each in chosen) / runs, 3),
    }
    if "none" in found:
        figures["undisturbed"] = found["none"].runs
        figures["false_alarm_ratio"] = round(1 - found["none"].nobody / found["none"].runs, 3)
    print(json.dumps({**figures, "machine": f"{os.cpu_count()} cores, {platform.machine()}"}))


if __name__ == "__main__":
    main()
