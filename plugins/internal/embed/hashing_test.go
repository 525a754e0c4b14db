package embed

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/plugins/internal/apitest"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest"
)

func open1(t testing.TB, config string, state []byte) *hashingEmbedder {
	t.Helper()
	stage, err := Hashing().Open(t.Context(), sdk.Setup{StateDir: holding(t, state)}, []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	return stage.(*hashingEmbedder)
}

// holding is a folder with the state of an embedder; nil: without one.
func holding(t testing.TB, state []byte) string {
	t.Helper()
	dir := t.TempDir()
	if state != nil {
		if err := os.WriteFile(filepath.Join(dir, learnt), state, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func embed(t testing.TB, e *hashingEmbedder, texts ...string) [][]float32 {
	t.Helper()
	vectors, err := e.Embed(t.Context(), sdk.RoleQuery, texts)
	if err != nil {
		t.Fatal(err)
	}
	return vectors
}

// fitted is an embedder that has seen the texts, with its state.
func fitted(t testing.TB, texts ...string) (*hashingEmbedder, []byte) {
	t.Helper()
	e := open1(t, "", nil)
	err := e.Fit(t.Context(), func(yield func([]sdk.TrainingRow, error) bool) {
		for _, text := range texts {
			if !yield([]sdk.TrainingRow{{Text: text}}, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	state, err := os.ReadFile(filepath.Join(e.dir, learnt))
	if err != nil {
		t.Fatal(err)
	}
	return e, state
}

func cosine(a, b []float32) float64 {
	sum := 0.0
	for i, v := range a {
		if v != 0 { // most of a text's vector is 0
			sum += float64(v) * float64(b[i])
		}
	}
	return sum
}

func TestHashingEmbed(t *testing.T) {
	v := embed(t, open1(t, "", nil),
		"what is my balance", "What is my BALANCE?!", "show my balances", "turn off the lights", "balance my is what", "", " ?! ", "北京")
	for i, vector := range v {
		want := 1.0
		if i == 5 || i == 6 {
			want = 0
		}
		if norm := cosine(vector, vector); len(vector) != 4096 || math.Abs(norm-want) > 1e-6 {
			t.Errorf("vector %d has length %d and norm² %v, want 4096 and %v", i, len(vector), norm, want)
		}
	}
	if !slices.Equal(v[0], v[1]) {
		t.Error("case and punctuation must not count")
	}
	if related, other := cosine(v[0], v[2]), cosine(v[0], v[3]); related < .3 || other > .15 {
		t.Errorf("cosine %v to a related text, %v to another", related, other)
	}
	if turned := cosine(v[0], v[4]); turned > .99 || turned < .8 {
		t.Errorf("cosine %v to the same words in another order; bigrams should tell, a little", turned)
	}
}

func TestFitWeighsRareWordsMore(t *testing.T) {
	texts := []string{"please cancel it", "please repeat it", "please stop it", "please freeze it", "please translate it"}
	flat := embed(t, open1(t, "", nil), "please cancel it", "please repeat it")
	e, _ := fitted(t, texts...)
	learned := embed(t, e, "please cancel it", "please repeat it")
	if before, after := cosine(flat[0], flat[1]), cosine(learned[0], learned[1]); after > before-.1 {
		t.Errorf("cosine of two texts that share common words: %v before, %v after", before, after)
	}
}

func TestStateIsCarriedOver(t *testing.T) {
	texts := []string{"book a flight to Oslo", "book a table", "cancel the table"}
	first, state := fitted(t, texts...)
	if len(state) > 64<<10 {
		t.Errorf("state of %d bytes", len(state))
	}
	second := open1(t, "", state)
	if !slices.Equal(embed(t, first, texts[0])[0], embed(t, second, texts[0])[0]) {
		t.Error("a process that is given the state must embed as the one that learnt it")
	}
	if first.Fingerprint() != second.Fingerprint() {
		t.Error("same state, another fingerprint")
	}
	_, other := fitted(t, texts[:2]...)
	for name, e := range map[string]*hashingEmbedder{
		"no state":      open1(t, "", nil),
		"another state": open1(t, "", other),
		"dimension":     open1(t, `{"dimension": 1024}`, state),
	} {
		if e.Fingerprint() == first.Fingerprint() {
			t.Errorf("%s: the fingerprint is the same", name)
		}
	}
}

func TestStateOfNothing(t *testing.T) {
	e, _ := fitted(t)
	if !slices.Equal(embed(t, e, "hello there")[0], embed(t, open1(t, "", nil), "hello there")[0]) {
		t.Error("without a text to learn from, features must weigh alike")
	}
}

func TestSameBitsEverywhere(t *testing.T) {
	texts := []string{"Book a flight from Zürich to 東京, please!", "what's my account's balance", "naïve café हिन्दी"}
	e, _ := fitted(t, texts...)
	h := sha256.New()
	for _, vector := range embed(t, e, append(texts, strings.Repeat("many words again ", 50))...) {
		if err := binary.Write(h, binary.LittleEndian, vector); err != nil {
			t.Fatal(err)
		}
	}
	// A change of this sum is a change of the vectors: see TestGolden.
	const want = "b60f1234b1de7be9"
	if got := hex.EncodeToString(h.Sum(nil))[:16]; got != want {
		t.Errorf("the vectors' hash is %s, want %s", got, want)
	}
}

func TestHashingConformance(t *testing.T) { sdktest.Stage(t, Hashing(), `{}`) }

func TestHashingErrors(t *testing.T) {
	for _, config := range []string{`{"dimension": 63}`, `{"dimension": 65537}`} {
		_, err := Hashing().Open(t.Context(), sdk.Setup{}, []byte(config))
		if wrong := new(sdk.ArgumentError); !errors.As(err, &wrong) || wrong.Argument != "dimension" {
			t.Errorf("%s: error %v, want one about dimension", config, err)
		}
	}
	_, state := fitted(t, "a text")
	for _, bad := range [][]byte{state[:100], append([]byte{9}, state[1:]...)} {
		if _, err := Hashing().Open(t.Context(), sdk.Setup{StateDir: holding(t, bad)}, nil); err == nil {
			t.Errorf("a state of %d bytes was taken", len(bad))
		}
	}
}

func TestHashingGolden(t *testing.T) { apitest.CheckReply(t, Hashing(), `{}`, "1 d519274d95aa63d5") }
