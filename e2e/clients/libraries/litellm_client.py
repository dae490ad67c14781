import os

# It reads its table of models from its package instead of downloading it.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
import litellm
from service import *

versions("litellm")
litellm.suppress_debug_info = True


def ask(text):
    answer = litellm.completion(
        model=f"openai/{model}", api_base=base_url, api_key=api_key, messages=[{"role": "user", "content": text}]
    )
    return "answered" if answer.choices[0].message.content else "empty"


check("chat", lambda: ask("sim:tokens=3 Hello"))
check("overflow", lambda: ask(too_long))
