package packet_test

import (
	"bytes"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/racflow/racflow/engine/internal/remote/packet"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

var update = flag.Bool("update", false, "write the golden packets")

// golden is what a version has for the golden packets: an order and answers.
func golden(t *testing.T) map[string][]byte {
	t.Helper()
	f := &filler{Rand: rand.New(rand.NewPCG(22, 1)), full: true}
	rows, a := f.batch(1)
	a.Results[0].Lists[0].Candidates = a.Results[0].Candidates
	order := must.Get(packet.EncodeOrder(run.Order{Rows: rows, Pass: run.Asking}))(t)
	answers := must.Get(packet.EncodeAnswers(rows, a))(t)
	return map[string][]byte{"order": order, "answers": answers}
}

// read is what a packet says.
func read(what string, data []byte) (string, error) {
	if what == "order" {
		o, err := packet.DecodeOrder(data)
		return told(o) + "\n", err
	}
	rows, a, err := packet.DecodeAnswers(data)
	return told(rows) + "\n" + told(a) + "\n", err
}

func unzipped(t *testing.T, data []byte) []byte {
	t.Helper()
	z := must.Get(zstd.NewReader(nil))(t)
	defer z.Close()
	return must.Get(z.DecodeAll(data[2:], nil))(t)
}

// TestGolden reads packets as they were written when the version's number was given: a change of the
// format raises Version.
func TestGolden(t *testing.T) {
	for what, data := range golden(t) {
		name := filepath.Join("testdata", what)
		if *update {
			text := must.Get(read(what, data))(t)
			must.Do(t, os.WriteFile(name+".packet", data, 0o600))
			must.Do(t, os.WriteFile(name+".txt", []byte(text), 0o600))
		}
		old := must.Get(os.ReadFile(name + ".packet"))(t)
		want := must.Get(os.ReadFile(name + ".txt"))(t)
		text, err := read(what, old)
		if err != nil || text != string(want) {
			a, b := strings.Split(string(want), "\n"), strings.Split(text, "\n")
			for len(a) > 1 && len(b) > 1 && a[0] == b[0] {
				a, b = a[1:], b[1:]
			}
			t.Errorf("%s is not what it was: %v\nwant %s\n got %s", name, err, a[0], b[0])
		}
		if !bytes.Equal(unzipped(t, old), unzipped(t, data)) {
			t.Errorf("%s is written in another way than before: raise Version, and run this test with -update", what)
		}
	}
}
