// What the page asks of its server. The token comes in the fragment of the address, which is taken
// away at once, and stays with this tab.
export function connect() {
  const given = location.hash.slice(1);
  if (given) {
    sessionStorage.setItem("racflow-token", given);
    history.replaceState(null, "", location.pathname);
  }
  const token = sessionStorage.getItem("racflow-token") || "";
  const headers = { Authorization: "Bearer " + token };

  // ask returns the JSON of an answer; what the server refuses is an Error with code, status and now.
  async function ask(path, body) {
    const answer = await fetch(path, body === undefined ? { headers } : {
      method: "POST", headers: { ...headers, "Content-Type": "application/json" }, body: JSON.stringify(body),
    });
    const got = await answer.json();
    if (answer.ok) return got;
    throw Object.assign(new Error(got.error), { code: got.code, status: answer.status, now: got.now });
  }

  // listen calls each with every event of a stream, until that ends.
  async function listen(path, each) {
    const answer = await fetch(path, { headers });
    if (!answer.ok) throw Object.assign(new Error((await answer.json()).error), { status: answer.status });
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ;) {
      const { value, done } = await reader.read();
      if (done) return;
      const parts = (rest + value).split("\n\n");
      rest = parts.pop();
      for (const part of parts) each(JSON.parse(part.replace(/^data: /, "")));
    }
  }
  return { ask, listen };
}
