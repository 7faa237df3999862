"""The lab's training programs: small and real, each of them learns something.

They differ in what a step is made of: matrix products, convolutions, or the sum of a large gradient.
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
