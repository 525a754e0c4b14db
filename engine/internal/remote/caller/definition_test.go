package caller_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/internal/remote/caller"
	"github.com/racflow/racflow/engine/internal/remote/lease"
	"github.com/racflow/racflow/engine/internal/remote/shipment"
	"github.com/racflow/racflow/engine/internal/run/journal"
)

func sample() caller.Definition {
	calls := 7
	d := caller.Definition{
		Format: caller.DefinitionFormat, Run: "k3v9q2", Caller: "here-1", Version: "1.2.3", Started: time.Date(2026, 11, 23, 17, 0, 0, 0, time.UTC),
		Manifest: journal.Manifest{ID: "run-000001", Pipeline: "p", Parts: map[string]string{"a": "1", "b": "2"}, Cluster: &journal.ManifestCluster{Run: "k3v9q2", Servers: "nats://a"}},
		Labels:   []string{"fruit", "vehicle"}, Bundle: shipment.Bundle{File: "p.hcl", Vars: map[string]string{"top": "3", "k": "4"}},
		Files:  []shipment.Shipped{{Name: "store/k/1", Digest: "d1", Size: 4}},
		Limits: lease.Limits{Budget: lease.Amount{Cost: 2}, Spent: lease.Amount{Cost: .5}}, Keep: journal.KeepAll, Lists: true, Mode: 1,
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
	got, err := caller.DecodeDefinition(data)
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
		if _, err := caller.DecodeDefinition([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}

func TestNewID(t *testing.T) {
	seen := map[string]bool{}
	for range 2000 {
		id := caller.NewRunID()
		if !caller.IsRunID(id) || seen[id] {
			t.Fatalf("%q", id)
		}
		seen[id] = true
	}
	for text, want := range map[string]bool{"k3v9q2": true, "newest": false, "run-000001": false, "": false, "k3": false, "3kv9q2": false, "k3v9q2.": false, "K3V9Q2": false} {
		if caller.IsRunID(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}
