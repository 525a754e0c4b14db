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

// This file finds out which model a server on this machine serves. A llama.cpp server serves the file that it was
// started with, so the name in the config does not identify the model of cached answers. For a service elsewhere the
// name does identify it; asking would add a call for each process.

// namingTime is how long a server may take to list its models. Even a server that is reading a prompt answers at
// once.
const namingTime = 5 * time.Second

// recognise asks the server once which model it serves. If it does not answer, the last known model counts, so that
// cached answers are found while no server runs.
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

// servedIn reads a list of models in OpenAI's form. It returns the entry with the name, or the only entry: servers
// with one model answer to any name.
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
	if entry.Get("owned_by").Str == "library" { // Ollama: when the model was pulled; others: when they were asked
		id = append(id, entry.Get("created").String())
	}
	context := max(entry.Get("meta.n_ctx").Int(), entry.Get("max_model_len").Int())
	return profile.Served{Model: strings.Join(id, " "), Context: int(context)}
}

// onThisMachine reports whether an address belongs to this machine.
func onThisMachine(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
}
