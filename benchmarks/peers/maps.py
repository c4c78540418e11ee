"""Draw vectors with labels as BERTopic and datamapplot do. Started by map_peers.py with two folders.

From the first it reads request.npz (vectors, labels), and writes points.npy there: UMAP with the settings of BERTopic's
``visualize_documents``, which datamapplot leaves to its user. The pages go to the second.
"""

from __future__ import annotations

import sys
from pathlib import Path

import datamapplot
import numpy as np
from bertopic import BERTopic
from bertopic.backend import BaseEmbedder
from sklearn.feature_extraction.text import CountVectorizer
from umap import UMAP


def main() -> None:
    request, out = Path(sys.argv[1]), Path(sys.argv[2])
    given = np.load(request / "request.npz")
    vectors, labels = given["vectors"], given["labels"]
    points = UMAP(n_neighbors=10, n_components=2, min_dist=0.0, metric="cosine", random_state=0).fit_transform(vectors)
    np.save(request / "points.npy", points)
    names = sorted(set(labels.tolist()))
    # The texts play no role in the picture: the name of its label stands for each.
    model = BERTopic(embedding_model=BaseEmbedder(), vectorizer_model=CountVectorizer()).fit(
        labels.tolist(), vectors, y=[names.index(label) for label in labels]
    )
    model.visualize_documents(labels.tolist(), reduced_embeddings=points, hide_document_hover=True).write_html(
        out / "bertopic.html"
    )
    datamapplot.create_interactive_plot(points, labels, font_family="DejaVu Sans").save(str(out / "datamapplot.html"))
    datamapplot.create_plot(points, labels, font_family="DejaVu Sans")[0].savefig(out / "datamapplot-static.png")


if __name__ == "__main__":
    main()
