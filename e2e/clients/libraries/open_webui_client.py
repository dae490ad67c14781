"""The backend of Open WebUI, without its pages: chats and documents of its first user."""

import os
import socket
import subprocess
import sys
import tempfile
import time

import httpx
from service import *

versions("open-webui")
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
# It sends nothing by itself to other hosts.
settings = {
    "OPENAI_API_BASE_URL": base_url,
    "OPENAI_API_KEY": api_key,
    "RAG_EMBEDDING_ENGINE": "openai",
    "RAG_EMBEDDING_MODEL": embedding_model,
    "RAG_OPENAI_API_BASE_URL": base_url,
    # Its account has five parallel requests.
    "RAG_OPENAI_API_KEY": os.environ["WEICHE_STARTER_KEY"],
    "ENABLE_OLLAMA_API": "False",
    "OFFLINE_MODE": "True",
    "HF_HUB_OFFLINE": "1",
    "ANONYMIZED_TELEMETRY": "False",
    "DO_NOT_TRACK": "true",
    "SCARF_NO_ANALYTICS": "true",
    "WEBUI_SECRET_KEY": "for this run only",
}
web = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120)


def until_ready(backend):
    while backend.poll() is None:
        try:
            return web.get("/health").raise_for_status()
        except httpx.HTTPError:
            time.sleep(1)
    raise RuntimeError(f"the backend ended with {backend.returncode}")


def sign_up():
    said = web.post("/api/v1/auths/signup", json={"name": "Test", "email": "test@example.com", "password": "for-this-run-1"})
    web.headers["authorization"] = f"Bearer {said.raise_for_status().json()['token']}"
    return said.json()["role"]


def models():
    return len(web.get("/api/models").raise_for_status().json()["data"])


def ask(text, stream=False):
    messages = [{"role": "user", "content": text}]
    said = web.post("/api/chat/completions", json={"model": model, "stream": stream, "messages": messages})
    if said.status_code != 200:
        return f"{said.status_code} {said.json()['error']['code']}"
    if stream:
        return "answered" if said.text.rstrip().endswith("[DONE]") else "cut off"
    return "answered" if said.json()["choices"][0]["message"]["content"] else "empty"


def set_batches(texts, requests):
    """As `RAG_EMBEDDING_BATCH_SIZE` and `RAG_EMBEDDING_CONCURRENT_REQUESTS` do at the start."""
    known = {"RAG_EMBEDDING_ENGINE": "openai", "RAG_EMBEDDING_MODEL": embedding_model}
    update = {**known, "RAG_EMBEDDING_BATCH_SIZE": texts, "RAG_EMBEDDING_CONCURRENT_REQUESTS": requests}
    web.post("/api/v1/retrieval/embedding/update", json=update).raise_for_status()


def document(pieces):
    """Uploads a text of so many pieces, and asks for those nearest to a question."""
    # Two paragraphs do not fit into the 1,000 characters of a piece. No text is uploaded twice.
    paragraph = "A switch takes a while. " * 37
    text = "\n\n".join(f"{time.monotonic_ns()} {number}. {paragraph}" for number in range(pieces))
    files = {"file": ("a.txt", text, "text/plain")}
    sent = web.post("/api/v1/files/", params={"process_in_background": False}, files=files).raise_for_status().json()
    file = web.get(f"/api/v1/files/{sent['id']}").raise_for_status().json()
    if file["data"]["status"] != "completed":
        return f"{file['data']['status']}: {file['data'].get('error')}"
    query = {"collection_names": [f"file-{file['id']}"], "query": "How long?", "k": pieces}
    found = web.post("/api/v1/retrieval/query/collection", json=query).raise_for_status().json()
    return f"{file['data']['status']}, {len(found['documents'][0])} pieces found"


with tempfile.TemporaryDirectory() as folder, open(os.path.join(folder, "log"), "w") as log:
    command = [os.path.join(sys.prefix, "bin/open-webui"), "serve", "--host", "127.0.0.1", "--port", str(port)]
    environment = {**os.environ, **settings, "DATA_DIR": folder}
    backend = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
    try:
        until_ready(backend)
        check("first user", sign_up)
        check("models", models)
        check("chat", lambda: ask("sim:tokens=3 Hello"))
        check("chat, streamed", lambda: ask("sim:tokens=3 Hello", stream=True))
        check("overflow", lambda: ask(too_long))
        set_batches(texts=32, requests=2)
        check("300 pieces, 32 in a request, 2 at once", lambda: document(300))
        set_batches(texts=32, requests=0)
        check("300 pieces, 32 in a request, all at once", lambda: document(300))
        set_batches(texts=1, requests=0)
        check("30 pieces, one in a request, all at once, which are the defaults", lambda: document(30))
    finally:
        backend.terminate()
        backend.wait()
