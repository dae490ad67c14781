"""A program that measures: its check of the server, and small benchmarks."""

import json
import os
import subprocess
import sys
import tempfile

from service import *

versions("guidellm")


# The tokenizer has a name at Hugging Face or, as here, a folder. The default is the model's name.
synthetic = {
    "tokenizer": f"kind=huggingface_auto,model={os.environ['WEICHE_TOKENIZER']}",
    "data": "kind=synthetic_text,prompt_tokens=64,output_tokens=16",
}


def measure(key, streams, requests, data=synthetic, **backend):
    """Returns how many requests were answered, and the mean of their tokens of output."""
    known = {"kind": "openai_http", "target": base_url, "model": model, "api_key": key, **backend}
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        options = {
            "backend": json.dumps(known),
            "profile": f"kind=concurrent,streams={streams}",
            "constraint": f"kind=max_requests,count={requests}",
            "output": f"kind=json,path={report}",
            **data,
        }
        given = [part for name, value in options.items() for part in (f"--{name}", value)]
        command = [os.path.join(sys.prefix, "bin/guidellm"), "run", *given, "--disable-console-interactive"]
        ran = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "HF_HUB_OFFLINE": "1"})
        if ran.returncode != 0:
            raise RuntimeError(ran.stderr.strip().split("\n")[-1])
        with open(report) as file:
            metrics = json.load(file)["benchmarks"][0]["metrics"]
    totals, tokens = metrics["request_totals"], metrics["output_token_count"]["successful"]["mean"]
    return f"{totals['successful']} of {requests} answered, {totals['errored']} refused, {totals['incomplete']} cancelled, {tokens:.0f} tokens each"


def long_answers(requests, **backend):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as prompts:
        for number in range(requests):
            prompts.write(json.dumps({"prompt": f"sim:tokens=40,itl=100,reasoning=0 Hello {number}"}) + "\n")
        prompts.flush()
        data = {"data": f"kind=json_file,path={prompts.name}"}
        return measure(os.environ["WEICHE_STARTER_KEY"], requests, requests, data, **backend)


check("its check of the server, default", lambda: measure(api_key, 1, 2))
by_models = {"api_routes": {"/health": "v1/models"}}
check("2 streams, checks /v1/models", lambda: measure(api_key, 2, 8, **by_models))
unchecked = {"validate_backend": False}
check("completions, no check", lambda: measure(api_key, 2, 8, request_format="/v1/completions", **unchecked))
check("8 streams on Starter, answers of 4 s", lambda: long_answers(8, **unchecked))
