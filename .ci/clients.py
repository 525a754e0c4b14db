"""Asks a pipeline that racflow serves by OpenAI's client and by the MCP client. The program is the argument."""

import asyncio
import os
import re
import subprocess
import sys
import tempfile

import mcp
import openai

TOKEN = "a-token-for-this-run"


def serve(racflow, state):
    """Starts a server; returns the process and its address, once it is ready."""
    process = subprocess.Popen(
        [racflow, "serve", "--listen", "127.0.0.1:0", "--state", state, "-var", "embedder=hashing", "-var", "election=soft", "pipelines/intent.hcl"],
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
    assert models == ["intent"], models
    assert client.models.retrieve("intent").owned_by == "racflow"

    question = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "how do i get out of this monthly plan"}]
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
        try:
            wrong()
        except error as refused:
            print("refused, as it should be:", refused)
        else:
            raise AssertionError(f"no {error.__name__}")
    return answer


async def call(client, answer):
    """What an agent does."""
    tools = (await client.list_tools()).tools
    assert [t.name for t in tools] == ["intent"] and "labels" in tools[0].description, tools
    result = await client.call_tool("intent", {"text": "how do i get out of this monthly plan"})
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
            asyncio.run(tools(racflow, state, address, answer))
        finally:
            process.terminate()
            process.stderr.close()
        code = process.wait(60)
        assert code == 0, f"racflow serve ended with {code}"
    print(f"openai {openai.__version__} and mcp: the answer is {answer!r} in every form")


main()
