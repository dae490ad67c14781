from llama_index.llms.openai_like import OpenAILike
from service import *

versions("llama-index-llms-openai-like")
llm = OpenAILike(model=model, api_base=base_url, api_key=api_key, is_chat_model=True)
check("chat", lambda: "answered" if str(llm.complete("sim:tokens=3 Hello")) else "empty")
check("overflow", lambda: llm.complete(too_long))
