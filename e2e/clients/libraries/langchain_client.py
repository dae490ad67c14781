from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from service import *

versions("langchain-openai")
chat = ChatOpenAI(model=model, base_url=base_url, api_key=api_key)
check("chat", lambda: "answered" if chat.invoke("sim:tokens=3 Hello").content else "empty")
check("overflow", lambda: chat.invoke(too_long))
settings = {"model": embedding_model, "base_url": base_url, "api_key": api_key}
check("embeddings, default", lambda: len(OpenAIEmbeddings(**settings).embed_query("Hello")))
texts = OpenAIEmbeddings(**settings, check_embedding_ctx_length=False)
check("embeddings, check_embedding_ctx_length=False", lambda: len(texts.embed_query("Hello")))
