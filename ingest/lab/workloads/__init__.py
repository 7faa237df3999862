"""The lab's training programs: small, but real ones that learn.

They differ in the main part of a step: matrix products, convolutions, or the sum of a large gradient.
"""

from collections.abc import Mapping

from crosswind.ingest.lab.workloads.byte_transformer import ByteModelling
from crosswind.ingest.lab.workloads.embedding_recommender import Recommendation
from crosswind.ingest.lab.workloads.image_classifier import ImageClassification
from crosswind.ingest.lab.workloads.workload import Workload

WORKLOADS: Mapping[str, type[Workload]] = {
    ByteModelling.name: ByteModelling,
    ImageClassification.name: ImageClassification,
    Recommendation.name: Recommendation,
}
