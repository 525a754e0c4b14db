package encoder

import (
	"crypto/sha256"
	"encoding"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/racflow/racflow/plugins/internal/safetensors"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// TestMemo checks that a memo replaces the weights only while their file is unchanged. At first the clock shows the
// year 2000, before the file was written.
func TestMemo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, memos := t.TempDir(), t.TempDir()
		must.Do(t, os.CopyFS(dir, os.DirFS("testdata/tiny")))
		open := func(o Options) string {
			t.Helper()
			return must.Get(Open(dir, o))(t).Fingerprint()
		}
		kept := func() []string { return must.Get(filepath.Glob(filepath.Join(memos, "memos", "*")))(t) }

		want := open(Options{})
		must.Equal(t, "fingerprint", want, open(Options{Memos: memos}))
		must.Equal(t, "memos of a file that has just changed", 0, len(kept()))
		time.Sleep(200 * 365 * 24 * time.Hour)
		must.Equal(t, "fingerprint, summed", want, open(Options{Memos: memos}))
		must.Equal(t, "memos", 1, len(kept()))
		must.Equal(t, "fingerprint, recalled", want, open(Options{Memos: memos}))
		must.Equal(t, "fingerprint in int8", open(Options{Precision: Int8}), open(Options{Memos: memos, Precision: Int8}))

		open(Options{Memos: memos})
		file := kept()[0]
		memo := must.Get(os.ReadFile(file))(t)
		other := must.Get(sha256.New().(encoding.BinaryMarshaler).MarshalBinary())(t)
		must.Do(t, os.WriteFile(file, append(memo[:sha256.Size:sha256.Size], other...), 0o600))
		if open(Options{Memos: memos}) == want {
			t.Error("the weights were summed again")
		}
		must.Do(t, os.WriteFile(file, memo[:len(memo)-1], 0o600))
		must.Equal(t, "fingerprint after a memo that is cut off", want, open(Options{Memos: memos}))

		weights := filepath.Join(dir, safetensors.FileName)
		before := must.Get(os.Stat(weights))(t)
		content := must.Get(os.ReadFile(weights))(t)
		content[len(content)-4] ^= 1
		must.Do(t, os.WriteFile(weights+".new", content, 0o600))
		must.Do(t, os.Chtimes(weights+".new", time.Time{}, before.ModTime()))
		must.Do(t, os.Rename(weights+".new", weights))
		got := open(Options{Memos: memos})
		must.Equal(t, "fingerprint of other weights", open(Options{}), got)
		if got == want {
			t.Error("a change of the weights was not noticed")
		}
	})
}
