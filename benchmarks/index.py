"""Large indexes: recall at 16, memory, and the speed-up over exact search; and 27 million vectors as codes only.

    python benchmarks/index.py [CORPUS] [--json]                                    # 2 million, re-ranked
    python benchmarks/index.py [CORPUS] --vectors 27000000 --compressed [--json]    # codes only

CORPUS is any corpus with an index, by default that of the demo; its vectors are the bases. Vector n is a random base
plus Gaussian noise of the given length (0.5; a base has length 1), scaled to unit length: any number of vectors, spread
as those of real sentences. Blocks of 65,536 are drawn from (seed, block), so any vector can be made again and none has
to be kept. Queries are further vectors that are not in the index. Each step runs in a separate process: building, exact
search (a memory-mapped flat index in float32, one query at a time), and search with growing parameters, of which the
fastest over the target recall counts. Anonymous memory is private to the process; mapped pages belong to files, and the
system may reclaim them.

--compressed stores no vectors: they are made from the seed for training, for adding, and once more to find the true
neighbours.

Training time grows linearly with the number of vectors n, adding with n ** 1.5. On two cores 2 million took 4 minutes
and 6 GiB of disk; 27 million codes took an hour and a half, most of it for adding, and 3 GiB.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from machine import verdict, watch
from numpy.typing import NDArray

from zicl._util.random import rng
from zicl.apps.demo import example_index
from zicl.retrieve.index import FIRST_FETCH, Index
from zicl.retrieve.kinds import (
    COMPRESSED,
    STORED,
    CompressedIndex,
    VectorReader,
    read_vectors,
    write_codes,
    write_half_precision,
    write_vectors,
)
from zicl.retrieve.search import search
from zicl.retrieve.tune import RECALL_AT, MemoryUse, TuningQueries, exact_search, measure_here, run_queries

BLOCK, VECTORS, FLAT = 1 << 16, "vectors.faiss", "flat.faiss"
GIB = 1 << 30


@dataclass(frozen=True)
class SyntheticVectors:
    """Vectors drawn from a seed, with the methods of an index that reads them by their ids."""

    bases: Path
    ntotal: int
    noise: float
    seed: int

    @property
    def d(self) -> int:
        """The dimension of the vectors."""
        return int(np.load(self.bases, mmap_mode="r").shape[1])

    def reconstruct_batch(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return vectors by their ids."""
        bases, blocks = np.load(self.bases, mmap_mode="r"), ids // BLOCK
        result = np.empty((len(ids), bases.shape[1]), dtype=np.float32)

        def fill(block: int) -> None:
            result[blocks == block] = self._block(bases, block)[ids[blocks == block] - block * BLOCK]

        # NumPy draws without the interpreter's lock: two cores make two blocks at a time.
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(fill, np.unique(blocks).tolist()))
        return result

    def _block(self, bases: NDArray[np.float32], block: int) -> NDArray[np.float32]:
        generator = rng(self.seed, "block", block)
        drawn = generator.standard_normal((BLOCK, bases.shape[1]), dtype=np.float32)
        drawn *= self.noise / np.sqrt(bases.shape[1])
        drawn += bases[generator.integers(len(bases), size=BLOCK)]
        drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
        return drawn

    def blocks(self) -> Iterator[NDArray[np.float32]]:
        """Yield all vectors in blocks."""
        for start in range(0, self.ntotal, BLOCK):
            yield self.reconstruct_batch(np.arange(start, min(start + BLOCK, self.ntotal)))

    def queries(self, count: int) -> NDArray[np.float32]:
        """Return further vectors, which are not in the index."""
        first = -(-self.ntotal // BLOCK) * BLOCK
        return self.reconstruct_batch(np.arange(first, first + count))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, nargs="?", help="a corpus with an index")
    parser.add_argument("--vectors", type=int, default=2_000_000)
    parser.add_argument("--compressed", action="store_true", help="product-quantised codes only, no vectors stored")
    parser.add_argument("--kind", default="ivf-sq8", choices=COMPRESSED, help="the kind of the re-ranked index")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--target", type=float, default=0.95)
    parser.add_argument("--noise", type=float, default=0.5, help="length of the noise; vectors have length 1")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scratch", type=Path, help="a folder for temporary files")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        bases = Path(scratch) / "bases.npy"
        save_bases(options.corpus or example_index().corpus.path, bases)
        vectors = SyntheticVectors(bases, options.vectors, options.noise, options.seed)
        about = {"vectors": vectors.ntotal, "dimension": vectors.d, "noise": vectors.noise, "seed": vectors.seed}
        run = codes_only if options.compressed else reranked
        result = {**about, **run(vectors, Path(scratch), options)}
    steps = [result[name] for name in ("build", "exact", "search") if name in result]
    result["verdict"] = verdict(max(step.pop("others") for step in steps))
    print(json.dumps(result, indent=2) if options.json else lines(result))


def save_bases(corpus: Path, path: Path) -> None:
    index = Index.open(corpus)
    vectors = read_vectors(index.manifest["kind"], corpus / "index" / VECTORS)
    np.save(path, vectors.reconstruct_batch(np.sort(index.vector_ids())))


def reranked(vectors: SyntheticVectors, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Measure codes with stored vectors against exact search."""
    built = alone(build, vectors, folder, options.kind)
    flat = alone(search_exactly, vectors, folder, options.queries)
    truth = [np.array(each) for each in flat.pop("truth")]
    not_indexed = np.full(options.queries, -1)
    queries = TuningQueries(vectors.queries(options.queries), not_indexed, truth, FIRST_FETCH)
    found = alone(search_lists, options.kind, folder, queries, options.target)
    pick = min(
        (row for row in found["measured"] if row["recall_at_16"] >= options.target),
        key=lambda row: row["milliseconds"],
        default=None,
    )
    reached = None
    if pick is not None:
        reached = {**pick, "times_exact": round(flat["milliseconds"] / pick["milliseconds"], 1)}
    return {"kind": options.kind, "build": built, "exact": flat, "search": found, "pick": reached}


def codes_only(vectors: SyntheticVectors, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Build product-quantised codes without the vectors, and search them once."""
    built = alone(build_codes, vectors, folder)
    found = alone(search_codes, vectors, folder, options.queries)
    return {"kind": "ivf-pq, codes only", "build": built, "search": found}


def alone(step: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """Run a step in a separate process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(step, *arguments).result()


@contextmanager
def costs() -> Iterator[dict[str, Any]]:
    """Record the seconds, the share of other processes, and the peak memory of this process while a block runs."""
    found: dict[str, Any] = {}
    stop, anonymous = threading.Event(), [0]

    def sample() -> None:
        while not stop.wait(0.05):
            anonymous.append(MemoryUse.now().anonymous or 0)

    sampler = threading.Thread(target=sample, daemon=True)
    sampler.start()
    with watch() as watched:
        yield found
    stop.set()
    sampler.join()
    found["seconds"], found["others"] = round(watched.seconds, 1), watched.others
    found["peak_anonymous_gib"] = round(max(anonymous) / GIB, 2)
    found["peak_gib"] = round(watched.peak_mb / 1024, 2)


def build(vectors: SyntheticVectors, folder: Path, kind: str) -> dict[str, Any]:
    with costs() as found:
        stored = write_half_precision(vectors.d, vectors.ntotal, vectors.blocks(), folder / STORED)
        found.update(train_and_add(kind, vectors, stored, folder))
    found["lists_gib"], found["stored_gib"] = (size(folder / name) for name in (VECTORS, STORED))
    return found


def train_and_add(kind: str, vectors: SyntheticVectors, reader: VectorReader, folder: Path) -> dict[str, float]:
    """Write the lists; return the seconds of training and of adding."""
    times: list[float] = []

    def report(stage: str, done: float, total: float | None = None, note: str = "") -> None:
        times.append(time.perf_counter())

    write_codes(kind, vectors.d, vectors.ntotal, reader, folder / VECTORS, folder / "work", report)
    return {"learn_seconds": round(times[1] - times[0], 1), "add_seconds": round(times[-1] - times[1], 1)}


def build_codes(vectors: SyntheticVectors, folder: Path) -> dict[str, Any]:
    with costs() as found:
        found.update(train_and_add("ivf-pq", vectors, vectors.reconstruct_batch, folder))
    found["lists_gib"] = size(folder / VECTORS)
    return found


def search_exactly(vectors: SyntheticVectors, folder: Path, queries: int) -> dict[str, Any]:
    """Find the true neighbours, and time exact search with one query at a time."""
    write_vectors("flat", vectors.d, vectors.ntotal, vectors.blocks(), folder / FLAT, folder / "work")
    index, query_vectors = read_vectors("flat", folder / FLAT), vectors.queries(queries)
    with costs() as found:
        truth, similarities = exact_search(index, query_vectors, RECALL_AT)
        few = TuningQueries(query_vectors[:20], np.full(20, -1), truth[:20], FIRST_FETCH)
        recall, milliseconds = run_queries(lambda query: search(index, query, FIRST_FETCH)[0], few)
    found["milliseconds"], found["recall_at_16"] = round(milliseconds, 3), round(recall, 4)
    found["flat_gib"] = size(folder / FLAT)
    found["similarity_of_first_and_16th"] = [round(float(similarities[:, at].mean()), 3) for at in (0, -1)]
    return {**found, "truth": truth.tolist()}


def search_lists(kind: str, folder: Path, queries: TuningQueries, target: float) -> dict[str, Any]:
    with costs() as found:
        rows = measure_here(kind, folder / VECTORS, queries, target)
    found["measured"] = [
        {
            "search": row.params.given(),
            "recall_at_16": round(row.recall, 4),
            "milliseconds": round(row.milliseconds, 3),
            **{f"{name}_gib": round((value or 0) / GIB, 3) for name, value in asdict(row.memory).items()},
        }
        for row in rows
    ]
    return found


def search_codes(vectors: SyntheticVectors, folder: Path, queries: int) -> dict[str, Any]:
    """Search with the default parameters; the true neighbours are found by making all vectors once more."""
    query_vectors = vectors.queries(queries)
    with costs() as found:
        index = CompressedIndex(faiss.read_index(str(folder / VECTORS), faiss.IO_FLAG_MMAP_IFC), None)
        answers = [search(index, query, 256)[0] for query in query_vectors]
        _, milliseconds = run_queries(
            lambda query: search(index, query, FIRST_FETCH)[0],
            TuningQueries(query_vectors, np.full(queries, -1), [each[:1] for each in answers], FIRST_FETCH),
        )
        memory = MemoryUse.now()
    found["milliseconds"] = round(milliseconds, 3)
    found["nprobe"], found["lists"] = int(index.lists.nprobe), int(index.lists.nlist)
    found["anonymous_gib"], found["mapped_gib"] = (round((v or 0) / GIB, 3) for v in (memory.anonymous, memory.mapped))
    truth, _ = exact_search(vectors, query_vectors, RECALL_AT)
    for reach in (16, 64, 256):
        found[f"true_16_among_first_{reach}"] = round(
            float(np.mean([np.isin(t, a[:reach]).mean() for t, a in zip(truth, answers, strict=True)])), 4
        )
    return found


def size(path: Path) -> float:
    return round(path.stat().st_size / GIB, 3)


def lines(result: dict[str, Any]) -> str:
    """Format the result with one line per step."""
    return "\n".join(f"{name}: {value}" for name, value in result.items())


if __name__ == "__main__":
    main()
