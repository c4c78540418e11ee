"""Servers for the tests: the project's tiny model behind the interfaces of real ones, with faults on demand.

Each behaves like the real one, peculiarities included, so that right numbers can be compared with the local backend and
wrong ones must be refused.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import torch

from tests.conftest import byte_tokenizer, tiny_model

BOS = 0


@lru_cache(maxsize=1)
def tiny():
    """The model and its tokenizer, made once for all servers: nothing changes them."""
    return tiny_model("llama"), byte_tokenizer()


class RefusalError(Exception):
    """Answer with a status that is not 200."""

    def __init__(self, status: int, message: str = "no", headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, headers or {}


class Server:
    """A running server. ``faults`` are taken one a request; ``asked`` holds path and body of every request."""

    name = "tiny"

    def __init__(self, *, key: str = "", tokenizer=None) -> None:
        self.model, self.raw = tiny()
        self.raw = tokenizer or self.raw
        self.key, self.faults, self.asked = key, [], []
        self.under_way = self.most_under_way = 0
        self.change: Callable[[dict], dict] = lambda answer: answer
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    @property
    def spec(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}/v1#{self.name}"

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def count(self, path: str) -> int:
        return sum(asked == path for asked, _ in self.asked)

    # -- what all of them have ------------------------------------------------------------------------

    def answer(self, path: str, body: dict) -> dict:
        routes = {"/v1/models": self.models, "/v1/completions": self.completions, **self.more()}
        if path not in routes:
            raise RefusalError(404, "not found")
        return routes[path](body)

    def more(self) -> dict[str, Callable[[dict], dict]]:
        return {}

    def models(self, body: dict) -> dict:
        return {"data": [{"id": self.name, "object": "model"}]}

    def completions(self, body: dict) -> dict:
        """A server that completes nothing: those that do say how."""
        raise RefusalError(404, "not found")

    def encode(self, text: str) -> list[int]:
        """Special tokens that are written out are read as such, as servers do."""
        return self.raw(text, add_special_tokens=False)["input_ids"]

    def piece(self, token: int) -> str:
        return self.raw.decode([token])

    @torch.inference_mode()
    def rows(self, tokens: list[int]) -> torch.Tensor:
        """Row i holds the log-likelihoods of what follows token i."""
        with self._lock:
            return self.model(torch.tensor([tokens])).logits[0].log_softmax(-1)

    @staticmethod
    def usage(sent: int) -> dict:
        return {"prompt_tokens": sent, "completion_tokens": 1, "total_tokens": sent + 1}


class VLLM(Server):
    """prompt_logprobs and logprob_token_ids; takes numbers and text. tests/vllm compares it with a real one."""

    whole = following = True
    context = 512
    # The model's own default, which --logprobs-mode processed_logprobs applies to the numbers of next tokens.
    penalty = 1.0

    def more(self):
        return {"/tokenize": self.tokenize, "/detokenize": self.detokenize}

    def models(self, body):
        return {"data": [{"id": self.name, "object": "model", "owned_by": "vllm", "max_model_len": self.context}]}

    def tokenize(self, body):
        first = [BOS] if self.raw.add_bos_token and body.get("add_special_tokens", True) else []
        tokens = first + self.encode(body["prompt"])
        return {"tokens": tokens, "count": len(tokens), "max_model_len": self.context}

    def detokenize(self, body):
        return {"prompt": self.raw.decode(body["tokens"])}

    def completions(self, body):
        tokens = self.check(body)
        rows = self.rows(tokens)
        choice = {"text": "!", "index": 0, "logprobs": None, "finish_reason": "length", "prompt_logprobs": None}
        if body.get("prompt_logprobs") is not None and self.whole:
            found = [None, *({str(t): self.entry(rows[i], t)} for i, t in enumerate(tokens[1:]))]
            choice["prompt_logprobs"] = found
        if body.get("logprobs") is not None:
            last = self.penalised(rows[-1], tokens, body.get("repetition_penalty", self.penalty))
            ids = body.get("logprob_token_ids") if self.following else None
            first = int(last.argmax())
            best = {
                self.written(t, body): float(last[t])
                for t in [first, *(ids or last.topk(body["logprobs"]).indices.tolist())]
            }
            choice["logprobs"] = {
                "text_offset": [0],
                "tokens": [self.written(first, body)],
                "token_logprobs": [float(last[first])],
                "top_logprobs": [best],
            }
        return {"object": "text_completion", "model": self.name, "choices": [choice], "usage": self.usage(len(tokens))}

    def check(self, body) -> list[int]:
        """The tokens of the prompt, if it is one that vLLM takes."""
        if body["model"] != self.name:
            raise RefusalError(404, f"The model `{body['model']}` does not exist. Valid aliases: {self.name}.")
        prompt = body["prompt"]
        if not prompt:
            raise RefusalError(400, "You must pass at least one prompt")
        tokens = prompt if isinstance(prompt, list) else self.tokenize(body)["tokens"]
        if wrong := [token for token in tokens if token >= len(self.raw)]:
            raise RefusalError(400, f"Token id {wrong[0]} is out of vocabulary")
        if len(tokens) > self.context:
            raise RefusalError(400, f"This model's maximum context length is {self.context} tokens.")
        if len(tokens) == self.context:
            raise RefusalError(400, "max_tokens must be at least 1, got 0. (parameter=max_tokens, value=0)")
        if (body.get("logprobs") or 0) > 20 and not body.get("logprob_token_ids"):
            raise RefusalError(
                400, f"Requested sample logprobs of {body['logprobs']}, which is greater than max allowed"
            )
        return tokens

    def entry(self, row, token) -> dict:
        return {
            "logprob": float(row[token]),
            "rank": int((row > row[token]).sum()) + 1,
            "decoded_token": self.piece(token),
        }

    def written(self, token: int, body) -> str:
        return f"token_id:{token}" if body.get("return_tokens_as_token_ids") else self.piece(token)

    @staticmethod
    def penalised(row, tokens, penalty):
        if penalty == 1.0:
            return row
        row = row.clone()
        row[tokens] *= penalty
        return row.log_softmax(-1)


class SGLang(Server):
    """/generate beside a completions interface without the log-likelihoods of prompts."""

    def more(self):
        return {"/generate": self.generate, "/tokenize": self.tokenize, "/detokenize": self.detokenize}

    def tokenize(self, body):
        return {"tokens": self.encode(body["prompt"])}

    def detokenize(self, body):
        return {"text": self.raw.decode(body["tokens"])}

    def completions(self, body):
        return {"choices": [{"text": "!", "logprobs": None}], "usage": self.usage(1)}

    def generate(self, body):
        tokens = body.get("input_ids") or self.encode(body["text"])
        rows, start = self.rows(tokens), body["logprob_start_len"]
        found = [[None, tokens[start], None]]
        found += [[float(rows[i - 1, tokens[i]]), tokens[i], None] for i in range(start + 1, len(tokens))]
        return {"text": "!", "meta_info": {"input_token_logprobs": found, **self.usage(len(tokens))}}


class Davinci(Server):
    """Echo with log-likelihoods, of numbers or text; refuses parameters it does not know, and has no tokenizer."""

    takes_numbers = True

    def completions(self, body):
        if "prompt_logprobs" in body or "logprob_token_ids" in body:
            raise RefusalError(400, "Unrecognized request argument supplied: prompt_logprobs")
        prompt = body["prompt"]
        if isinstance(prompt, list) and not self.takes_numbers:
            raise RefusalError(422, "Input should be a valid string")
        tokens = prompt if isinstance(prompt, list) else self.encode(prompt)
        rows = self.rows(tokens)
        shown, numbers = [*tokens, int(rows[-1].argmax())], [None]
        numbers += [float(rows[i, t]) for i, t in enumerate(shown[1:])]
        best = [None, *({self.piece(int(row.argmax())): float(row.max())} for row in rows)]
        pieces = [self.piece(token) for token in shown]
        offsets = [len("".join(pieces[:n])) for n in range(len(pieces))]
        lists = {"tokens": pieces, "text_offset": offsets, "token_logprobs": numbers, "top_logprobs": best}
        text = "".join(pieces)
        if not body.get("echo"):
            lists, text = {key: value[-1:] for key, value in lists.items()}, pieces[-1]
        return {"choices": [{"text": text, "logprobs": lists}], "usage": self.usage(len(tokens))}


class LlamaCpp(Server):
    """llama-cpp-python's server: text only; without a first token to leave out, its numbers are one token off."""

    adds_bos = False

    def more(self):
        return {"/extras/tokenize": self.tokenize, "/extras/detokenize": self.detokenize}

    def tokenize(self, body):
        return {"tokens": ([BOS] if self.adds_bos else []) + self.encode(body["input"])}

    def detokenize(self, body):
        return {"text": self.raw.decode(body["tokens"], skip_special_tokens=True)}

    def completions(self, body):
        prompt = body["prompt"]
        if not isinstance(prompt, str):
            raise RefusalError(422, "Input should be a valid string")
        assert body["max_tokens"] > 0, "0 means no limit"
        tokens = ([BOS] if self.adds_bos else []) + self.encode(prompt)
        rows = self.rows(tokens)
        following = int(rows[-1].argmax())
        shown = [*tokens[1 if tokens[0] == BOS else 0 :], following]
        found = list(zip(shown, rows, strict=False))
        numbers = [float(row[token]) for token, row in found]
        best = [{self.piece(int(row.argmax())): float(row.max())} for _, row in found]
        pieces = [self.piece(token) for token, _ in found]
        offsets = [len(self.raw.decode(shown[:n]).replace("\ufffd", "")) for n in range(len(found))]
        lists = {
            "tokens": pieces,
            "text_offset": offsets,
            "token_logprobs": [None, *numbers[1:]],
            "top_logprobs": [None, *best[1:]],
        }
        text = prompt + self.piece(following)
        return {"choices": [{"text": text, "logprobs": lists}], "usage": self.usage(len(tokens))}


# -- faults: each takes the handler, and says whether the request is answered by it ---------------------


def refuse(status: int, **headers: str) -> Callable:
    def fault(handler) -> bool:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        handler.send(status, {"error": {"message": "not now"}}, named)
        return True

    return fault


def hang(seconds: float) -> Callable:
    def fault(handler) -> bool:
        time.sleep(seconds)
        handler.close_connection = True
        return True

    return fault


def cut(handler) -> bool:
    """Promise more than is sent, and hang up."""
    handler.send_response(200)
    handler.send_header("Content-Length", "5000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [')
    handler.close_connection = True
    return True


def garbage(handler) -> bool:
    handler.send(200, "<html>busy</html>")
    return True


def not_zipped(handler) -> bool:
    """A proxy's header that does not fit what follows."""
    handler.send(200, {"choices": []}, {"Content-Encoding": "gzip"})
    return True


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Head and body in one packet: in two, each answer would wait for the other side's late acknowledgement.
        wbufsize = 1 << 16

        def do_GET(self):
            self._do({})

        def do_POST(self):
            self._do(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _do(self, body):
            with server._lock:
                server.asked.append((self.path, body))
                server.under_way += 1
                server.most_under_way = max(server.most_under_way, server.under_way)
                fault = server.faults.pop(0) if server.faults else None
            try:
                if server.key and self.headers.get("Authorization") != f"Bearer {server.key}":
                    shown = self.headers.get("Authorization", "")
                    return self.send(401, {"error": {"message": f"incorrect key: {shown}"}})
                if fault is not None and fault(self):
                    return None
                return self.send(200, server.change(server.answer(self.path, body)))
            except RefusalError as refusal:
                return self.send(refusal.status, {"error": {"message": refusal.message}}, refusal.headers)
            finally:
                with server._lock:
                    server.under_way -= 1

        def send(self, status, content, headers=None):
            raw = content.encode() if isinstance(content, str) else json.dumps(content).encode()
            self.send_response(status)
            for name, value in {**(headers or {}), "Content-Length": str(len(raw))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_):
            pass

    return Handler
