package definition_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/cluster/bundle"
	"github.com/racflow/racflow/engine/cluster/definition"
	"github.com/racflow/racflow/engine/cluster/lease"
	"github.com/racflow/racflow/engine/cluster/ship"
	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/journal/manifest"
)

func sample() definition.Definition {
	calls := 7
	d := definition.Definition{
		Format: definition.Format, Run: "k3v9q2", Caller: "here-1", Version: "1.2.3", Started: time.Date(2026, 11, 23, 17, 0, 0, 0, time.UTC),
		Manifest: manifest.Manifest{ID: "run-000001", Pipeline: "p", Parts: map[string]string{"a": "1", "b": "2"}, Cluster: &manifest.Cluster{Run: "k3v9q2", Servers: "nats://a"}},
		Labels:   []string{"fruit", "vehicle"}, Bundle: bundle.Bundle{File: "p.hcl", Vars: map[string]string{"top": "3", "k": "4"}},
		Files:  []ship.Shipped{{Name: "store/k/1", Digest: "d1", Size: 4}},
		Limits: lease.Limits{Endpoint: 8, Budget: lease.Amount{Cost: 2}, Spent: lease.Amount{Cost: .5}}, Keep: journal.KeepAll, Lists: true, Mode: 1,
	}
	d.Spend.Calls = &calls
	return d
}

func TestDecode(t *testing.T) {
	want := sample()
	data, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := definition.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, *got); diff != "" {
		t.Error(diff)
	}
	for text, says := range map[string]string{
		`{"format":2,"racflow":"9.9","run":7}`: "a newer racflow (9.9) began the run",
		`{`:                                    "cannot be read",
		`{"run":"k3v9q2"}`:                     "something else than racflow wrote it",
		`{"format":1}`:                         "something else than racflow wrote it",
	} {
		if _, err := definition.Decode([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}

// The digest is of what answers depend on and what workers need: not of who began it, when and on
// which machine.
func TestDigest(t *testing.T) {
	first, err := sample().Digest()
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		change func(*definition.Definition)
		same   bool
	}{
		"nothing": {func(*definition.Definition) {}, true},
		"who":     {func(d *definition.Definition) { d.Caller, d.Started = "there-2", d.Started.Add(time.Hour) }, true},
		"where": {func(d *definition.Definition) {
			d.Manifest.ID, d.Manifest.Output, d.Manifest.Cluster, d.Manifest.Started = "run-000009", "/o.jsonl", nil, d.Started
			d.Manifest.Command = &manifest.Command{Dir: "/elsewhere"}
		}, true},
		"spent":   {func(d *definition.Definition) { d.Limits.Spent.Cost = 9 }, true},
		"run":     {func(d *definition.Definition) { d.Run = "z" }, false},
		"version": {func(d *definition.Definition) { d.Version = "1.2.4" }, false},
		"parts":   {func(d *definition.Definition) { d.Manifest.Parts = map[string]string{"a": "1", "b": "3"} }, false},
		"var":     {func(d *definition.Definition) { d.Bundle.Vars = map[string]string{"top": "4", "k": "4"} }, false},
		"files":   {func(d *definition.Definition) { d.Files = nil }, false},
		"budget":  {func(d *definition.Definition) { d.Limits.Budget.Cost = 3 }, false},
		"keep":    {func(d *definition.Definition) { d.Keep = "" }, false},
		"mode":    {func(d *definition.Definition) { d.Mode = 0 }, false},
	} {
		d := sample()
		test.change(&d)
		if got, err := d.Digest(); err != nil || (got == first) != test.same {
			t.Errorf("%s: %v, %v", name, got == first, err)
		}
	}
	if d := sample(); d.Manifest.Cluster == nil || d.Limits.Spent.Cost != .5 {
		t.Error("the digest has changed the definition")
	}
}
