from service import *
from strands import Agent
from strands.agent.conversation_manager import NullConversationManager
from strands.models.openai import OpenAIModel

versions("strands-agents")


def ask(text):
    known = OpenAIModel(client_args={"base_url": base_url, "api_key": api_key}, model_id=model)
    agent = Agent(model=known, conversation_manager=NullConversationManager(), callback_handler=None)
    return "answered" if str(agent(text)) else "empty"


check("chat", lambda: ask("sim:tokens=3 Hello"))
check("overflow", lambda: ask(too_long))
