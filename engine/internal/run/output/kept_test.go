package output_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// kept is a result with all fields of version 0.1.0. Programs read them: names and forms stay while Version does.
const kept = `{"id":"1","text":"t","expected":"a","answer":"a","agreement":0.5,"confidence":0.9,"unknown":0.1,"labels":[{"label":"a","confidence":0.9}],` +
	`"runner_up":"b","flagged":true,"reason":"r","decided":{"by":"Ada","at":"2026-11-27T00:00:00Z"},"missing":["llm"],` +
	`"citations":[{"number":1,"id":"p","path":"a.md","title":"T","headings":"H","first_line":1,"last_line":2,"first_page":3,"last_page":4}],` +
	`"votes":[{"voter":"llm","answer":"a","weight":1,"accepted":false,"reason":"r","reading":"plain","explanation":"e","model":"m"}],` +
	`"candidates":[{"id":"p","text":"x","label":"a","score":1,"dense":0.5,"lexical":2,"meta":{"k":"v"}}],` +
	`"error":{"file":"f","line":2,"stage":"sample.llm","message":"m"},"fields":{"column":"v"}}`

func TestKept(t *testing.T) {
	var r result.Result
	d := json.NewDecoder(bytes.NewReader([]byte(kept)))
	d.DisallowUnknownFields()
	must.Do(t, d.Decode(&r))
	if diff := cmp.Diff(kept, string(must.Get(json.Marshal(r))(t))); diff != "" {
		t.Errorf("another form than before (-want +got):\n%s", diff)
	}
}
