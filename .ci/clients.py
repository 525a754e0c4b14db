"""Asks a pipeline that racflow serves by OpenAI's clients, TypeSafe's, LangChain's and the MCP client. The program is the argument."""

import asyncio
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import langchain_typesafe
import mcp
import openai
import typesafe_sdk

TEXT, OTHER = "how do i get out of this monthly plan", "complaint_staff"
TOKEN = "a-token-for-this-run"


def serve(racflow, state):
    """Starts a server; returns the process and its address, once it is ready."""
    process = subprocess.Popen(
        [racflow, "serve", "--listen", "127.0.0.1:0", "--alias", "jev-latest=intent", "--state", state, "-var", "embedder=hashing", "-var", "election=soft", "pipelines/intent.hcl"],
        env=os.environ | {"RACFLOW_SERVE_TOKENS": TOKEN}, stderr=subprocess.PIPE, text=True,
    )
    address = None
    for line in process.stderr:
        print(line, end="", file=sys.stderr)
        if found := re.search(r"on (http://\S+)", line):
            address = found[1]
        if line.strip() == "ready":
            return process, address
    raise SystemExit(f"racflow serve ended: {process.wait()}")


def chat(address):
    """What users of OpenAI's client do."""
    client = openai.OpenAI(base_url=address + "/v1", api_key=TOKEN, max_retries=0)
    models = [m.id for m in client.models.list()]
    assert models == ["intent", "jev-latest"], models
    assert client.models.retrieve("intent").owned_by == "racflow"

    question = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": TEXT}]
    whole = client.chat.completions.create(model="intent", messages=question)
    answer = whole.choices[0].message.content
    assert answer and whole.choices[0].finish_reason == "stop", whole
    assert whole.model_extra["racflow"]["answer"] == answer, whole.model_extra
    assert whole.usage.total_tokens == 0, whole.usage  # no model was asked

    chunks = list(client.chat.completions.create(model="intent", messages=question, stream=True, stream_options={"include_usage": True}))
    streamed = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert streamed == answer, (streamed, answer)
    assert chunks[-1].usage is not None

    for wrong, error in (
        (lambda: client.chat.completions.create(model="intend", messages=question), openai.NotFoundError),
        (lambda: client.chat.completions.create(model="intent", messages=question, n=2), openai.BadRequestError),
        (lambda: client.chat.completions.create(model="intent", messages=[{"role": "user", "content": " "}]), openai.UnprocessableEntityError),
        (lambda: client.with_options(api_key="another").models.list(), openai.AuthenticationError),
    ):
        refuses(wrong, error)
    return answer


def decide(address, label):
    """What users of TypeSafe's clients, of LangChain's and of OpenAI's decisions do."""
    os.environ |= {"TYPESAFE_BASE_URL": address, "TYPESAFE_API_KEY": TOKEN, "OPENAI_BASE_URL": address + "/v1", "OPENAI_API_KEY": TOKEN,
                   "TEXT": TEXT, "LABEL": label, "OTHER": OTHER}
    from typesafe_sdk import Choice, Noul

    options = {OTHER: "A complaint about the staff. " * 60, label: None, "none": None}  # long enough to be packed with zstd
    questions = {"which": Choice(instructions="Which intent?", criteria=options), "is": Noul(instructions=label), "other": Noul(instructions=OTHER)}
    with typesafe_sdk.TypeSafeClient() as jev:
        assert [m.name for m in jev.models.list().models] == ["intent", "jev-latest"]
        said = jev.system_one(state={"text": TEXT, "plan": "pro"}, questions=questions)
        which, probability = said.choices["which"], said.nouls["is"].noul
        assert said.model == "intent" and which.choice == label and which.probabilities[label] == probability > said.nouls["other"].noul, said
        for wrong, error in (
            (lambda: jev.system_one(state=TEXT, questions={"q": Choice(instructions="?", criteria={label: None, "mistyped": None})}), typesafe_sdk.TypeSafeUnprocessableEntityError),
            (lambda: jev.system_one(state=" ", questions=questions), typesafe_sdk.TypeSafeUnprocessableEntityError),
            (lambda: jev.system_one(state=TEXT, questions=questions, model="other"), typesafe_sdk.TypeSafeNotFoundError),
            (lambda: typesafe_sdk.TypeSafeClient(api_key="another").system_one(state=TEXT, questions=questions), typesafe_sdk.TypeSafeAuthenticationError),
        ):
            refuses(wrong, error)
        with ThreadPoolExecutor(64) as many:
            for again in many.map(lambda _: jev.system_one(state=TEXT, questions=questions), range(64)):
                assert again.nouls["is"].noul == probability, again

    client = openai.OpenAI(max_retries=0)
    asked = [{"type": "choice", "instructions": "Which intent?", "choices": [{"value": v} for v in options]}, {"type": "predicate", "name": "is", "instructions": label}]
    decision = client.decisions.create(model="intent", input=TEXT, questions=asked)
    assert decision.answers[0].choice == label and decision.answers[1].probability == probability and decision.answers[1].name == "is", decision
    refuses(lambda: client.decisions.create(model="intent", input=TEXT, questions=[]), openai.BadRequestError)
    refuses(lambda: client.decisions.create(model="intent", input="", questions=asked), openai.UnprocessableEntityError)
    with ThreadPoolExecutor(64) as many:
        for again in many.map(lambda _: client.decisions.create(model="intent", input=TEXT, questions=asked), range(64)):
            assert again.answers[1].probability == probability, again

    from langchain_core.messages import HumanMessage

    classifier = langchain_typesafe.TypeSafeClassifier(base_url=address)
    answers = classifier.invoke({"state": [HumanMessage(TEXT)], "questions": {
        "which": langchain_typesafe.Choice(instructions="Which intent?", criteria={OTHER: None, label: None, "none": None}), "is": langchain_typesafe.Noul(instructions=label)}})
    assert answers.choices["which"].choice == label and answers.nouls["is"].noul == probability, answers

    at = pathlib.Path(os.environ["RACFLOW_CLIENTS"])
    if (at / "node_modules").exists():
        subprocess.run(["node", shutil.copy(".ci/decisions/ask.mjs", at)], check=True)
    subprocess.run(["go", "run", "."], cwd=".ci/decisions", check=True)
    subprocess.run([at / "venv/bin/jevcompat", "test", address, "--key", TOKEN], check=True)


def refuses(wrong, error):
    try:
        wrong()
    except error as refused:
        print("refused, as it should be:", refused)
    else:
        raise AssertionError(f"no {error.__name__}")


async def call(client, answer):
    """What an agent does."""
    tools = (await client.list_tools()).tools
    assert [t.name for t in tools] == ["intent"] and "labels" in tools[0].description, tools
    result = await client.call_tool("intent", {"text": TEXT})
    assert not result.is_error and result.structured_content["answer"] == answer, result
    assert result.content[0].text.startswith(answer), result
    failed = await client.call_tool("intent", {"text": ""})
    assert failed.is_error, failed


async def tools(racflow, state, address, answer):
    """The protocol over HTTP, and on standard input and output."""
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    async with httpx2.AsyncClient(headers={"Authorization": "Bearer " + TOKEN}) as http:
        async with mcp.Client(streamable_http_client(address + "/mcp", http_client=http)) as client:
            await call(client, answer)
    arguments = ["serve", "--mcp", "--state", state, "-var", "embedder=hashing", "-var", "election=soft", "pipelines/intent.hcl"]
    async with mcp.Client(mcp.StdioServerParameters(command=racflow, args=arguments)) as client:
        await call(client, answer)


def main():
    racflow = sys.argv[1]
    with tempfile.TemporaryDirectory() as state:
        process, address = serve(racflow, state)
        try:
            answer = chat(address)
            decide(address, answer)
            asyncio.run(tools(racflow, state, address, answer))
        finally:
            process.terminate()
            process.stderr.close()
        code = process.wait(60)
        assert code == 0, f"racflow serve ended with {code}"
    print(f"openai {openai.__version__}, typesafe-sdk, langchain-typesafe and mcp: the answer is {answer!r} in every form")


main()
