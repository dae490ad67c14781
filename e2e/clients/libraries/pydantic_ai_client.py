from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from service import *

versions("pydantic-ai-slim")
agent = Agent(OpenAIChatModel(model, provider=OpenAIProvider(base_url=base_url, api_key=api_key)))
check("chat", lambda: "answered" if agent.run_sync("sim:tokens=3 Hello").output else "empty")
check("overflow", lambda: agent.run_sync(too_long))
