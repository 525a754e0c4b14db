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
  return { ask };
}
