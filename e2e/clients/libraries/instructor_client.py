import instructor
from openai import OpenAI
from pydantic import BaseModel
from service import *

versions("instructor", "openai")


class Person(BaseModel):
    name: str
    age: int


def ask(mode):
    client = instructor.from_openai(OpenAI(base_url=base_url, api_key=api_key), mode=mode)
    messages = [{"role": "user", "content": "sim:tokens=9 Marlene is 47."}]
    person = client.chat.completions.create(model=model, response_model=Person, messages=messages, max_retries=0)
    return type(person).__name__


check("structured output, tools", lambda: ask(instructor.Mode.TOOLS))
check("structured output, JSON schema", lambda: ask(instructor.Mode.JSON_SCHEMA))
