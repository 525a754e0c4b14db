package shipment_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/remote/shipment"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// No secret leaves the caller's machine, wherever it stands; what a worker then needs, it is told.
func TestSecrets(t *testing.T) {
	const key = "sk-8db2f01c"
	configure := func(argument string) func(*world) {
		return func(w *world) {
			w.write("project/p.hcl", strings.Replace(file, `secret("TELLER_KEY", "none-at-all")`, argument, 1))
		}
	}
	for name, c := range map[string]struct {
		change  func(*world)
		lacks   string // of a worker
		refused string
	}{
		"in the environment":  {func(w *world) { w.env["TELLER_KEY"] = key }, "the environment has no TELLER_KEY", ""},
		"env() in its place":  {func(w *world) { configure(`env("TELLER_KEY")`)(w); w.env["TELLER_KEY"] = key }, "the environment has no TELLER_KEY", ""},
		"no secret, of env()": {func(w *world) { w.env["TELLER_REGION"] = key }, "the environment has no TELLER_REGION", ""},
		"of a stage that is off": {func(w *world) {
			off := "sample \"off\" {\n use = \"teller\"\n enabled = false\n config { api_key = secret(\"OFF_KEY\") }\n}\n"
			w.write("project/p.hcl", strings.Replace(file, "elect \"e\"", off+"elect \"e\"", 1))
			w.env["OFF_KEY"] = key
		}, "", ""},
		"in the file":        {configure(`"` + key + `"`), "", "a secret is written in"},
		"short, in the file": {configure(`"` + key[:4] + `"`), "", "a secret is written in"},
		"a variable":         {func(w *world) { configure("var.topic")(w); w.o.Vars["topic"] = key }, "the environment has no RACFLOW_VAR_topic", ""},
		"a file's variable": {func(w *world) {
			configure("var.topic")(w)
			delete(w.o.Vars, "topic")
			w.write("desk/vars.hcl", "depth = 2\ntopic = \""+key+"\"\n")
		}, "the environment has no RACFLOW_VAR_topic", ""},
		"a variable, secretly": {func(w *world) {
			delete(w.o.Vars, "topic")
			w.env["TOPIC"] = key
			w.write("desk/vars.hcl", "depth = 2\ntopic = secret(\"TOPIC\")\n")
		}, "the environment has no TOPIC", ""},
		"a file": {func(w *world) { configure(`chomp(file("key.txt"))`)(w); w.write("project/key.txt", key+"\n") }, "key.txt is not here and does not travel, because it holds a secret", ""},
		"a private key": {func(w *world) {
			w.write("project/p.hcl", strings.Replace(file, "region ", "cert = \"key.pem\"\n region ", 1))
			w.write("project/key.pem", "-----BEGIN EC PRIVATE KEY-----\n"+key)
		}, "key.pem is not here and does not travel, because it is a private key", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.change(w)
			b, err := shipment.NewBundle(w.open())
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) || strings.Contains(err.Error(), key) {
					t.Errorf("%v; want %q", err, c.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			servers := objects{}
			must.Do(t, b.Put(t.Context(), servers))
			text := must.Get(json.Marshal(b))(t)
			all := [][]byte{text}
			for _, f := range b.Files {
				all = append(all, f.Content)
			}
			for _, o := range servers {
				all = append(all, o)
			}
			for _, sent := range all {
				if bytes.Contains(sent, []byte(key)) {
					t.Errorf("the secret travels: %s", sent)
				}
			}
			w.gone()
			at, env := worker(t)
			if c.lacks == "" {
				unpacked(t, b, servers, at)
				return
			}
			var lacks *shipment.LacksError
			if _, _, err = b.Unpack(t.Context(), servers, at); !errors.As(err, &lacks) || len(lacks.Lacks) != 1 || !strings.Contains(lacks.Lacks[0], c.lacks) {
				t.Fatalf("%v; want %q alone", err, c.lacks)
			}
			if variable, ok := strings.CutPrefix(c.lacks, "the environment has no "); ok {
				env[variable] = "their own"
				if got := fmt.Sprint(configOf(t, unpacked(t, b, servers, at))); !strings.Contains(got, "their own") {
					t.Errorf("the worker's own is not used: %s", got)
				}
			}
		})
	}
}
