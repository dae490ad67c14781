"""Asks the service with each library, and prints a line of JSON: what came, or whether the library knows why nothing did."""

import json
import os

import instructor
from langchain_core.exceptions import ContextOverflowError
from langchain_openai import ChatOpenAI
from openai import BadRequestError, OpenAI
from pydantic import BaseModel, field_validator
from pydantic_ai import Agent, ModelContextWindowExceededError
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

base_url = os.environ["WEICHE_BASE_URL"]
api_key = os.environ["WEICHE_API_KEY"]
model = os.environ["WEICHE_MODEL"]
too_long = "word " * 40_000


class Person(BaseModel):
    name: str
    age: int


openai = OpenAI(base_url=base_url, api_key=api_key)
langchain = ChatOpenAI(model=model, base_url=base_url, api_key=api_key)
served = OpenAIChatModel(model, provider=OpenAIProvider(base_url=base_url, api_key=api_key))
agent = Agent(served)


def ask_openai(text):
    messages = [{"role": "user", "content": text}]
    return openai.chat.completions.create(model=model, messages=messages).choices[0].message.content


def ask_person(text):
    return isinstance(Agent(served, output_type=Person).run_sync(text).output, Person)


libraries = {
    "openai": (ask_openai, BadRequestError),
    "langchain": (lambda text: langchain.invoke(text).content, ContextOverflowError),
    "pydantic-ai": (lambda text: agent.run_sync(text).output, ModelContextWindowExceededError),
}
for name, (ask, overflow) in libraries.items():
    said = {"name": name, "answered": ask("sim:tokens=3 Hello") != ""}
    try:
        ask(too_long)
    except overflow as error:
        code = getattr(error, "code", None) or (getattr(error, "body", None) or {}).get("code")
        said |= {"overflow": code}
    print(json.dumps(said), flush=True)
print(json.dumps({"name": "pydantic-ai, structured", "answered": ask_person("sim:tokens=9 Marlene is 47.")}), flush=True)


def ask_instructor(mode):
    """Returns how often the model was asked, if the first answer is not valid for the client."""
    names = []

    class Checked(Person):
        @field_validator("name")
        @classmethod
        def second(cls, name):
            names.append(name)
            if len(names) == 1:
                raise ValueError("another name is needed")
            return name

    client = instructor.from_openai(openai, mode=mode)
    messages = [{"role": "user", "content": "sim:tokens=9 Marlene is 47."}]
    client.chat.completions.create(model=model, response_model=Checked, messages=messages, max_retries=2)
    return len(names)


for mode in (instructor.Mode.TOOLS, instructor.Mode.JSON_SCHEMA):
    said = {"name": f"instructor, {mode.value}", "asked": ask_instructor(mode)}
    print(json.dumps(said), flush=True)
try:
    messages = [{"role": "user", "content": too_long}]
    instructor.from_openai(openai).chat.completions.create(model=model, response_model=Person, messages=messages)
except Exception as error:
    cause = error
    while cause and not isinstance(cause, BadRequestError):
        cause = cause.__cause__ or cause.__context__
    print(json.dumps({"name": "instructor", "overflow": cause and cause.code}), flush=True)
