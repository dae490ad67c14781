import dspy
from service import *

versions("dspy", "litellm")
lm = dspy.LM(f"openai/{model}", api_base=base_url, api_key=api_key, cache=False)
check("chat", lambda: "answered" if lm("sim:tokens=3 Hello") else "empty")
check("overflow", lambda: lm(too_long))
