package cache

import (
	"log/slog"
	"testing"
	"time"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

func TestCopied(t *testing.T) {
	dir := t.TempDir()
	c, err := Open(dir, slog.New(slog.DiscardHandler))
	must.Do(t, err)
	check := func(source string, want uint64) {
		t.Helper()
		if n, err := c.Copied(source); n != want || err != nil {
			t.Errorf("%s was copied up to %d, %v, want %d", source, n, err, want)
		}
	}
	check("k3v9q2", 0)
	for _, n := range []uint64{7, 1 << 60} {
		must.Do(t, c.KeepCopied("k3v9q2", n))
		check("k3v9q2", n)
	}
	check("other", 0)
	must.Do(t, c.Put(sdk.KeyOf("a"), "test", []byte("1")))
	must.Do(t, c.Close())
	if s, err := ReadStats(dir); err != nil || s.Entries != 1 || s.Files != 1 || s.Damages != 0 {
		t.Errorf("the folder holds %+v, %v", s, err)
	}
	if _, err := Clear(dir, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	check("k3v9q2", 1<<60) // its answers are there
	if _, err := Clear(dir, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	check("k3v9q2", 0)
}
