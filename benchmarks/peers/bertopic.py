"""Classify with BERTopic's zero-shot topics: the descriptions of the labels are the topics.

With a least similarity of 0, what its author advises to get no other topics, every text gets one of them. Then BERTopic
0.17 numbers the topics by size and leaves their names out (its issue 2447), so that its record of the renumbering tells
which is which. Everything is in one call, fit_transform, and counts as predicting. Even so it reduces the embeddings
with UMAP, which numba compiles at its first use: that is done before, as a part of loading. Started by peers.py, which
says what comes in and what goes out.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from pathlib import Path
from time import perf_counter


def main() -> None:
    request = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    begun = perf_counter()
    import numpy as np
    import torch
    from bertopic import BERTopic
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(request["threads"])
    encoder = SentenceTransformer(request["encoder"], device="cpu")
    noise = np.random.default_rng(0).normal(size=(64, encoder.get_embedding_dimension())).astype(np.float32)
    BERTopic(embedding_model=encoder).umap_model.fit(noise).transform(noise)
    loaded = perf_counter()
    descriptions = [label["description"] for label in request["labels"]]
    model = BERTopic(embedding_model=encoder, zeroshot_topic_list=descriptions, zeroshot_min_similarity=0)
    topics, _ = model.fit_transform(request["texts"])
    done = perf_counter()
    if set(model.topic_labels_.values()) & set(descriptions):
        sys.exit("topics have names, so some texts got none of them: the renumbering tells nothing")
    label_of = {int(topic): int(label) for label, topic in model.topic_mapper_.get_mappings().items()}
    answer = {
        "predictions": [label_of[topic] for topic in topics],
        "seconds": {"load": loaded - begun, "fit": 0.0, "predict": done - loaded},
        "versions": {
            name: version(name)
            for name in ("bertopic", "umap-learn", "numba", "sentence-transformers", "transformers", "torch")
        },
    }
    Path(sys.argv[2]).write_text(json.dumps(answer), encoding="utf-8")


if __name__ == "__main__":
    main()
