import tiktoken
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from service import *

versions("langchain-openai")
chat = ChatOpenAI(model=model, base_url=base_url, api_key=api_key)
check("chat", lambda: "answered" if chat.invoke("sim:tokens=3 Hello").content else "empty")
check("overflow", lambda: chat.invoke(too_long))
settings = {"model": embedding_model, "base_url": base_url, "api_key": api_key}
# The encoding that it would download, with a token for each byte: what matters is that tokens are sent.
of_bytes = {bytes([byte]): byte for byte in range(256)}
tiktoken.registry.ENCODINGS["cl100k_base"] = tiktoken.Encoding(
    "cl100k_base", pat_str=r"\s*\S+|\s+", mergeable_ranks=of_bytes, special_tokens={}
)
check("embeddings, default", lambda: len(OpenAIEmbeddings(**settings).embed_query("Hello")))
texts = OpenAIEmbeddings(**settings, check_embedding_ctx_length=False)
check("embeddings, check_embedding_ctx_length=False", lambda: len(texts.embed_query("Hello")))
