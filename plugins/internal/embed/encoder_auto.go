package embed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"sync"

	"github.com/racflow/racflow/plugins/internal/encoder"
	"github.com/racflow/racflow/plugins/internal/simd"
	"github.com/racflow/racflow/sdk"
)

const (
	sampled = 200 // number of texts in a comparison of precisions
	fewest  = 50  // with fewer texts, a comparison is not reliable
)

// Conditions for int8. MiniLM, whose loss was measured (TestQuality), has a mean cosine of .9993 and a lowest of
// .995.
const (
	leastMean   = .998
	leastCosine = .99
)

// undecided is an embedder that must first compare precisions. Until then it embeds in float32.
type undecided struct {
	encoderEmbedder
	source source
	setup  sdk.Setup
	fast   bool // int8 is faster on this machine

	mu      sync.RWMutex
	decided *resolved
}

func (u *undecided) current() sdk.Embedder {
	u.mu.RLock()
	defer u.mu.RUnlock()
	if u.decided != nil {
		return *u.decided
	}
	return u.encoderEmbedder
}

// Embed implements sdk.Embedder.
func (u *undecided) Embed(ctx context.Context, role sdk.Role, texts []string) ([][]float32, error) {
	return u.current().Embed(ctx, role, texts)
}

// Fingerprint names no precision before the decision, so that all kinds of machines find the same generation.
func (u *undecided) Fingerprint() string {
	u.mu.RLock()
	defer u.mu.RUnlock()
	if u.decided != nil {
		return u.decided.Fingerprint()
	}
	return u.encoderEmbedder.Fingerprint() + " " + auto
}

// Fit implements sdk.Fitter. It decides on the precision.
func (u *undecided) Fit(ctx context.Context, rows iter.Seq2[[]sdk.TrainingRow, error]) error {
	d := decision{Precision: encoder.Float32, Reason: "this processor is not faster in int8"}
	chosen := u.encoderEmbedder
	if u.fast {
		texts, err := sample(rows)
		if err != nil {
			return err
		}
		small, err := u.source.open(encoder.Int8)
		if err != nil {
			return err
		}
		if d, err = compare(ctx, u.encoderEmbedder, small, texts); err != nil {
			return err
		}
		if d.Precision == encoder.Int8 {
			chosen = small
		}
	}
	if err := d.write(u.setup.StateDir); err != nil {
		return err
	}
	if u.setup.Log != nil {
		u.setup.Log.Info("precision chosen", "precision", string(d.Precision), "reason", d.Reason)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.decided = &resolved{chosen}
	return nil
}

// sample returns the first different texts.
func sample(rows iter.Seq2[[]sdk.TrainingRow, error]) ([]string, error) {
	var texts []string
	seen := map[string]bool{"": true}
	for batch, err := range rows {
		if err != nil {
			return nil, err
		}
		for _, r := range batch {
			if seen[r.Text] {
				continue
			}
			seen[r.Text] = true
			if texts = append(texts, r.Text); len(texts) == sampled {
				return texts, nil
			}
		}
	}
	return texts, nil
}

// compare chooses float32 or int8 by the similarity of their vectors for the same texts.
func compare(ctx context.Context, exact, small sdk.Embedder, texts []string) (decision, error) {
	d := decision{Precision: encoder.Float32}
	if len(texts) < fewest {
		d.Reason = fmt.Sprintf("%d texts are too few to compare int8 with float32", len(texts))
		return d, nil
	}
	a, err := exact.Embed(ctx, sdk.RolePassage, texts)
	if err != nil {
		return d, err
	}
	b, err := small.Embed(ctx, sdk.RolePassage, texts)
	if err != nil {
		return d, err
	}
	mean, lowest := 0.0, 1.0
	for i := range a {
		cosine := float64(simd.Best().Dot(a[i], b[i]))
		mean += cosine / float64(len(texts))
		lowest = min(lowest, cosine)
	}
	d.Reason = fmt.Sprintf("int8 has a mean cosine of %.4f with float32 (%.3f wanted) and a lowest of %.4f (%.2f), on %d texts of the knowledge",
		mean, leastMean, lowest, leastCosine, len(texts))
	if mean >= leastMean && lowest >= leastCosine {
		d.Precision = encoder.Int8
	}
	return d, nil
}

// decision is the chosen precision, and the reason.
type decision struct {
	Precision encoder.Precision `json:"precision"`
	Reason    string            `json:"reason"`
}

// decisionFile is the decision's file in the stage's state folder.
const decisionFile = "precision.json"

func readDecision(dir string) (d decision, ok bool, err error) {
	if dir == "" {
		return d, false, nil
	}
	file := filepath.Join(dir, decisionFile)
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return d, false, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &d)
	}
	if err == nil {
		err = d.Precision.Check()
	}
	if err != nil {
		return d, false, fmt.Errorf("%s: %w: rebuild the knowledge", file, err)
	}
	return d, true, nil
}

func (d decision) write(dir string) error {
	if dir == "" {
		return errors.New("there is no folder for what is learnt")
	}
	content, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	file := filepath.Join(dir, decisionFile)
	if err := os.WriteFile(file+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}
