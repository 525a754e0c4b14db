package caller_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/racflow/racflow/engine/internal/remote/bus"
	"github.com/racflow/racflow/engine/internal/remote/caller"

	"github.com/racflow/racflow/engine/internal/remote/shipment"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// Files go that no run needs, and runs that are over, once they are old enough.
func TestSweep(t *testing.T) {
	w := newWorld(t, 10)
	conn := w.connect("looker")
	put := func(content string) (digest string) {
		t.Helper()
		sum := sha256.Sum256([]byte(content))
		digest = hex.EncodeToString(sum[:])
		must.Do(t, conn.PutFile(t.Context(), digest, strings.NewReader(content)))
		return digest
	}
	create := func(files ...string) *bus.Run {
		t.Helper()
		d := caller.Definition{Format: caller.DefinitionFormat, Run: caller.NewRunID()}
		for _, f := range files {
			d.Files = append(d.Files, shipment.Shipped{Digest: f})
		}
		text := must.Get(d.Encode())(t)
		return must.Get(conn.Create(t.Context(), bus.Config{ID: d.Run, Definition: text}))(t)
	}
	needed, over, idle := put("needed"), put("of a run that is over"), put("idle")
	alive, ended := create(needed), create(over)
	must.Get(ended.Put(t.Context(), caller.EndKey, nil))(t)
	c, _ := w.caller(caller.Options{})
	has := func(want ...bool) {
		t.Helper()
		for i, digest := range []string{needed, over, idle} {
			if got, err := conn.HasFile(t.Context(), digest); err != nil || got != want[i] {
				t.Errorf("file %d is there: %v, %v", i, got, err)
			}
		}
	}
	now := time.Now()
	for _, test := range []struct {
		after time.Duration
		runs  int
		files []bool
	}{{time.Hour, 2, []bool{true, true, true}}, {25 * time.Hour, 1, []bool{true, true, true}}, {8 * 24 * time.Hour, 1, []bool{true, false, false}}} {
		must.Do(t, c.SweepAt(t.Context(), now.Add(test.after)))
		if ids, err := conn.Runs(t.Context()); err != nil || len(ids) != test.runs || ids[0] != alive.ID() {
			t.Errorf("after %v: %v, %v", test.after, ids, err)
		}
		has(test.files...)
	}
}

// Streams go whose run was never whole, once they are old enough.
func TestSweepUnfinished(t *testing.T) {
	w := newWorld(t, 10)
	js := w.servers.JetStream(t)
	index := must.Get(js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "racflow_runs"}))(t)
	id := caller.NewRunID()
	must.Get(index.PutString(t.Context(), id, "unfinished"))(t)
	for _, bucket := range []string{"racflow_" + id, "racflow_settings"} { // the second is somebody else's
		must.Get(js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: bucket}))(t)
	}
	c, _ := w.caller(caller.Options{})
	for _, test := range []struct {
		after time.Duration
		left  int
	}{{23 * time.Hour, 3}, {25 * time.Hour, 2}} {
		must.Do(t, c.SweepAt(t.Context(), time.Now().Add(test.after)))
		left := 0
		for range js.StreamNames(t.Context()).Name() {
			left++
		}
		if left != test.left {
			t.Errorf("after %v: %d streams, want %d", test.after, left, test.left)
		}
	}
}

// The items of standard input are answered elsewhere, too. Nobody can resume such a run, so none stays.
func TestStandardInput(t *testing.T) {
	w := newWorld(t, 100)
	w.worker(nil)
	for name, interrupt := range map[string]bool{"whole": false, "interrupted": true} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var rows strings.Builder
			for range 100 {
				rows.WriteString("{\"text\": \"item 7\"}\n")
			}
			c, _ := w.caller(caller.Options{})
			o := w.options("stdin", c)
			o.Input, o.Stdin = "-", strings.NewReader(rows.String())
			got, out, err := w.work(ctx, o, func(int) {
				if interrupt {
					cancel()
				}
			})
			if (err == nil) == interrupt || !interrupt && (out.Items != 100 || strings.Count(got, "\n") != 100) {
				t.Fatalf("%+v, %v", out, err)
			}
			if !w.gone() {
				t.Error("the run is at the servers")
			}
		})
	}
}
