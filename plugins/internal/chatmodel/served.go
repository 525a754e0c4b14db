package chatmodel

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/profile"
)

// This file finds out which model a server on this machine serves. Behind the address and the name of
// a llama.cpp server stands whatever file it was started with, so the name in a config does not tell
// whose the cached answers are. Of a service elsewhere the name does: to ask it would be a call more
// for each process, and its answers were paid for.

// namingTime is how long a server may take to list its models. One that reads a prompt answers at once.
const namingTime = 5 * time.Second

// recognise asks the server once which model it serves. Without an answer it is the one that it served
// last: cached answers can be had while nothing is served.
func (m *Model) recognise(ctx context.Context) {
	m.recognised.Do(func() {
		if !onThisMachine(m.Address()) {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, namingTime)
		defer cancel()
		var list json.RawMessage
		if _, err := (api.Transfer{Client: m.Client, Method: http.MethodGet, Path: "/models", Reply: &list}).Do(ctx); err == nil {
			m.keeper.Serves(ctx, servedIn(list, m.Name()))
		}
	})
}

// servedIn reads a list of models in OpenAI's form: the entry with the name, or the only one. Servers
// that hold one model answer to any name.
func servedIn(list []byte, name string) profile.Served {
	all := gjson.GetBytes(list, "data").Array()
	at := -1
	for i, entry := range all {
		if entry.Get("id").Str == name || len(all) == 1 {
			at = i
		}
	}
	if at < 0 {
		return profile.Served{}
	}
	entry := all[at]
	id := []string{entry.Get("id").Str}
	for _, part := range []string{"root", "meta.n_params", "meta.size"} { // vLLM's folder; llama.cpp's file, which may change under one name
		if value := entry.Get(part).String(); value != "" && value != id[0] {
			id = append(id, value)
		}
	}
	if entry.Get("owned_by").Str == "library" { // Ollama's: when the model was pulled. Others say when they were asked.
		id = append(id, entry.Get("created").String())
	}
	context := max(entry.Get("meta.n_ctx").Int(), entry.Get("max_model_len").Int())
	return profile.Served{Model: strings.Join(id, " "), Context: int(context)}
}

// onThisMachine reports whether an address is that of a server on this machine.
func onThisMachine(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
}
