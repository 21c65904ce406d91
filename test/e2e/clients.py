"""The Python clients of the field against a router; prints one line of JSON per check.

clients.py engine ROUTER ENGINE...   text from one real model, whose engines are asked how much they compute
clients.py tools ROUTER MODEL...     tools, at models that call them

A line is {"client", "check", "problem"}; the problem is null where the check holds.
"""

import json
import sys
import time
import urllib.request
from typing import Any, Callable, Iterator, NamedTuple

import anthropic
import ollama
import openai

MODEL = "smollm2"
STOP_WITHIN_S = 1.0
WEATHER = {
    "name": "weather",
    "description": "Weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


class Answer(NamedTuple):
    text: str
    tokens_in: int
    tokens_out: int


class Call(NamedTuple):
    """A tool call, and the answer to what the tool said."""

    name: str
    arguments: Any
    text: str


class OpenAiChat:
    name = "openai, chat"

    def __init__(self, url: str) -> None:
        self.client = openai.OpenAI(base_url=f"{url}/v1", api_key="unused", max_retries=0)
        self.tools: Any = [{"type": "function", "function": WEATHER}]

    def whole(self, model: str, prompt: str, **more: Any) -> Answer:
        messages = [{"role": "user", "content": prompt}]
        reply = self.client.chat.completions.create(model=model, messages=messages, max_tokens=8, **more)
        return Answer(reply.choices[0].message.content, reply.usage.prompt_tokens, reply.usage.completion_tokens)

    def pieces(self, model: str, prompt: str, limit: int = 8) -> Iterator[str]:
        messages = [{"role": "user", "content": prompt}]
        with self.client.chat.completions.create(
            model=model, messages=messages, max_tokens=limit, stream=True
        ) as stream:
            for chunk in stream:
                if chunk.choices and chunk.choices[0].delta.content:
                    yield chunk.choices[0].delta.content

    def call(self, model: str, prompt: str) -> Call:
        messages: Any = [{"role": "user", "content": prompt}]
        asked = self.client.chat.completions.create(model=model, messages=messages, tools=self.tools)
        message = asked.choices[0].message
        (call,) = message.tool_calls
        messages += [message, {"role": "tool", "tool_call_id": call.id, "content": "Rain."}]
        reply = self.client.chat.completions.create(model=model, messages=messages, tools=self.tools)
        return Call(call.function.name, json.loads(call.function.arguments), reply.choices[0].message.content)


class OpenAiResponses:
    name = "openai, responses"

    def __init__(self, url: str) -> None:
        self.client = openai.OpenAI(base_url=f"{url}/v1", api_key="unused", max_retries=0)
        self.tools: Any = [{"type": "function", "strict": False, **WEATHER}]

    def whole(self, model: str, prompt: str, **more: Any) -> Answer:
        reply = self.client.responses.create(model=model, input=prompt, max_output_tokens=8, **more)
        return Answer(reply.output_text, reply.usage.input_tokens, reply.usage.output_tokens)

    def pieces(self, model: str, prompt: str, limit: int = 8) -> Iterator[str]:
        with self.client.responses.create(model=model, input=prompt, max_output_tokens=limit, stream=True) as stream:
            for event in stream:
                if event.type == "response.output_text.delta":
                    yield event.delta

    def call(self, model: str, prompt: str) -> Call:
        said: Any = [{"role": "user", "content": prompt}]
        asked = self.client.responses.create(model=model, input=said, tools=self.tools)
        (call,) = [item for item in asked.output if item.type == "function_call"]
        said += [*asked.output, {"type": "function_call_output", "call_id": call.call_id, "output": "Rain."}]
        reply = self.client.responses.create(model=model, input=said, tools=self.tools)
        return Call(call.name, json.loads(call.arguments), reply.output_text)


class AnthropicMessages:
    name = "anthropic"

    def __init__(self, url: str) -> None:
        self.client = anthropic.Anthropic(base_url=url, api_key="unused", max_retries=0)
        self.tools: Any = [
            {"name": WEATHER["name"], "description": WEATHER["description"], "input_schema": WEATHER["parameters"]}
        ]

    def whole(self, model: str, prompt: str, **more: Any) -> Answer:
        messages = [{"role": "user", "content": prompt}]
        reply = self.client.messages.create(model=model, messages=messages, max_tokens=8, **more)
        cached = reply.usage.cache_read_input_tokens or 0
        return Answer(reply.content[0].text, reply.usage.input_tokens + cached, reply.usage.output_tokens)

    def pieces(self, model: str, prompt: str, limit: int = 8) -> Iterator[str]:
        messages = [{"role": "user", "content": prompt}]
        with self.client.messages.stream(model=model, messages=messages, max_tokens=limit) as stream:
            yield from stream.text_stream

    def call(self, model: str, prompt: str) -> Call:
        messages: Any = [{"role": "user", "content": prompt}]
        more: Any = {"model": model, "max_tokens": 64, "tools": self.tools}
        asked = self.client.messages.create(messages=messages, **more)
        (call,) = [block for block in asked.content if block.type == "tool_use"]
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "Rain."}
        messages += [{"role": "assistant", "content": asked.content}, {"role": "user", "content": [result]}]
        reply = self.client.messages.create(messages=messages, **more)
        return Call(call.name, call.input, reply.content[0].text)


class OllamaChat:
    name = "ollama"

    def __init__(self, url: str) -> None:
        self.client = ollama.Client(host=url)
        self.tools: Any = [{"type": "function", "function": WEATHER}]

    def whole(self, model: str, prompt: str, **more: Any) -> Answer:
        messages = [{"role": "user", "content": prompt}]
        reply = self.client.chat(model=model, messages=messages, options={"num_predict": 8}, **more)
        return Answer(reply.message.content, reply.prompt_eval_count, reply.eval_count)

    def pieces(self, model: str, prompt: str, limit: int = 8) -> Iterator[str]:
        messages = [{"role": "user", "content": prompt}]
        stream = self.client.chat(model=model, messages=messages, options={"num_predict": limit}, stream=True)
        try:
            for part in stream:
                if part.message.content:
                    yield part.message.content
        finally:
            stream.close()

    def call(self, model: str, prompt: str) -> Call:
        messages: Any = [{"role": "user", "content": prompt}]
        asked = self.client.chat(model=model, messages=messages, tools=self.tools)
        (call,) = asked.message.tool_calls
        messages += [asked.message, {"role": "tool", "tool_name": call.function.name, "content": "Rain."}]
        reply = self.client.chat(model=model, messages=messages, tools=self.tools)
        return Call(call.function.name, dict(call.function.arguments), reply.message.content)


CLIENTS = (OpenAiChat, OpenAiResponses, AnthropicMessages, OllamaChat)


def holds(condition: bool, what: object) -> None:
    if not condition:
        raise AssertionError(what)


def refusal(ask: Callable[[], Answer], status: int, *words: str) -> None:
    """The client's own error with this status and one of these words."""
    try:
        answer = ask()
    except (openai.APIStatusError, anthropic.APIStatusError, ollama.ResponseError) as error:
        holds(error.status_code == status and any(word in str(error) for word in words), error)
    else:
        raise AssertionError(f"answered: {answer}")


def answers_whole(client: Any, _: list[str]) -> None:
    answer = client.whole(MODEL, "Say hello.")
    holds(bool(answer.text) and answer.tokens_in > 10 and answer.tokens_out > 0, answer)


def streams(client: Any, _: list[str]) -> None:
    pieces = list(client.pieces(MODEL, "Say hello."))
    holds(len(pieces) > 1, pieces)


def computing(engines: list[str]) -> int:
    slots = [slot for url in engines for slot in json.load(urllib.request.urlopen(f"{url}/slots", timeout=5))]
    return sum(slot["is_processing"] for slot in slots)


def stops_when_left(client: Any, engines: list[str]) -> None:
    pieces = client.pieces(MODEL, "Count in words, one number after the other.", 1500)
    next(pieces)
    holds(computing(engines) == 1, "nothing runs that could be stopped")
    pieces.close()
    deadline = time.monotonic() + STOP_WITHIN_S
    while computing(engines) > 0:
        holds(time.monotonic() < deadline, f"still computing after {STOP_WITHIN_S} s")
        time.sleep(0.02)


def refuses_an_unknown_model(client: Any, _: list[str]) -> None:
    refusal(lambda: client.whole("nobody-has-this", "Hi."), 404, "The model 'nobody-has-this' does not exist")


def refuses_a_long_prompt(client: Any, _: list[str]) -> None:
    refusal(lambda: client.whole(MODEL, "word " * 4000), 400, "(4031 tokens) exceeds")


def refuses_tools(client: Any, _: list[str]) -> None:
    refusal(lambda: client.whole(MODEL, "Weather in Oslo?", tools=client.tools), 400, "does not support tools")


def calls_tools(client: Any, models: list[str]) -> None:
    for model in models:
        call = client.call(model, "Please call weather for Oslo.")
        holds(call.name == "weather" and call.arguments == {"city": "sample"}, (model, call))
        holds(call.text.startswith("tok1."), (model, call))


CHECKS = {
    "engine": (
        answers_whole,
        streams,
        stops_when_left,
        refuses_an_unknown_model,
        refuses_a_long_prompt,
        refuses_tools,
    ),
    "tools": (calls_tools,),
}


def problem_of(check: Callable[[Any, list[str]], None], client: Any, others: list[str]) -> str | None:
    try:
        check(client, others)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def main(kind: str, url: str, *others: str) -> None:
    for client in (make(url) for make in CLIENTS):
        for check in CHECKS[kind]:
            problem = problem_of(check, client, list(others))
            print(json.dumps({"client": client.name, "check": check.__name__, "problem": problem}), flush=True)


main(*sys.argv[1:])
