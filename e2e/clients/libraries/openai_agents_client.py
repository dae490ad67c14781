from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, set_tracing_disabled
from openai import AsyncOpenAI
from service import *

versions("openai-agents")
set_tracing_disabled(True)
client = AsyncOpenAI(base_url=base_url, api_key=api_key)


def ask(kind):
    agent = Agent(name="test", model=kind(model=model, openai_client=client))
    return "answered" if Runner.run_sync(agent, "sim:tokens=3 Hello").final_output else "empty"


check("Responses, the default", lambda: ask(OpenAIResponsesModel))
check("OpenAIChatCompletionsModel", lambda: ask(OpenAIChatCompletionsModel))
