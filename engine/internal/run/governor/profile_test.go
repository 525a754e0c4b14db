package governor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

const endpoint = "http://127.0.0.1:8080/v1"

func get(t *testing.T, s *Profiles, want string) {
	t.Helper()
	got, err := s.Get(endpoint, "org/a-model")
	if err != nil || strings.Join(strings.Fields(string(got)), "") != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

// Profiles are readable, known to the next process, and separate for each model.
func TestStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "profiles")
	s := NewProfiles(dir)
	get(t, s, "")
	must.Do(t, s.Put(endpoint, "org/a-model", []byte(`{"thinking": true}`)))
	get(t, s, `{"thinking":true}`)
	get(t, NewProfiles(dir), `{"thinking":true}`)
	if other, err := NewProfiles(dir).Get(endpoint, "org_a-model"); err != nil || other != nil {
		t.Errorf("another model has %s, %v", other, err)
	}
	all, err := s.List()
	if err != nil || len(all) != 1 || all[0].Model != "org/a-model" || !strings.HasPrefix(filepath.Base(all[0].File), "127.0.0.1_8080-org_a-model-") {
		t.Errorf("listed %+v, %v", all, err)
	}
	// A person edits the profile, and then makes it invalid.
	edit := func(text string) {
		must.Do(t, os.WriteFile(all[0].File, []byte(text), 0o600))
	}
	edit(`{"endpoint": "x", "model": "y", "profile": {"thinking": false}}`)
	get(t, NewProfiles(dir), `{"thinking":false}`)
	for _, damaged := range []string{"{", `{"profile": 5}`, `{"profile": null}`, `{}`} {
		edit(damaged)
		if _, err := NewProfiles(dir).Get(endpoint, "org/a-model"); err == nil || !strings.Contains(err.Error(), all[0].File) {
			t.Errorf("%s: error %v", damaged, err)
		}
	}
}

// A run keeps the profiles that it uses, and uses them again when it is resumed.
func TestRun(t *testing.T) {
	dir, run := filepath.Join(t.TempDir(), "profiles"), t.TempDir()
	first := NewProfiles(dir)
	must.Do(t, first.Put(endpoint, "org/a-model", []byte(`{"n": 1}`)))
	must.Do(t, first.KeepIn(run))
	must.Do(t, NewProfiles(dir).Put(endpoint, "org/a-model", []byte(`{"n": 2}`)))
	get(t, NewProfiles(dir), `{"n":2}`)

	resumed := NewProfiles(dir)
	must.Do(t, resumed.KeepIn(run))
	get(t, resumed, `{"n":1}`)

	late := NewProfiles(dir) // read before the run's folder was set
	get(t, late, `{"n":2}`)
	must.Do(t, late.KeepIn(run))
	get(t, late, `{"n":1}`)

	must.Do(t, resumed.Put(endpoint, "org/a-model", []byte(`{"n": 3}`)))
	again := NewProfiles(dir)
	must.Do(t, again.KeepIn(run))
	get(t, again, `{"n":3}`)
}
