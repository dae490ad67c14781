import os

os.environ["CREWAI_DISABLE_TELEMETRY"] = os.environ["OTEL_SDK_DISABLED"] = "true"
from crewai import LLM
from service import *

versions("crewai")
llm = LLM(model=f"openai/{model}", base_url=base_url, api_key=api_key)
check("chat", lambda: "answered" if llm.call("sim:tokens=3 Hello") else "empty")
check("overflow", lambda: llm.call(too_long))
