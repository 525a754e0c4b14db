package attached

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge/generation"
	"github.com/racflow/racflow/engine/internal/process/retry"
	"github.com/racflow/racflow/engine/internal/terminal"
	"github.com/racflow/racflow/sdk"
)

// Report describes for people what Open found.
type Report struct {
	Collection string              `json:"collection"`
	Fields     []sdk.AttachedField `json:"fields"`
	Notes      []string            `json:"notes,omitempty"`
	Lexical    bool                `json:"lexical"` // the collection can be searched by words

	Sample int       `json:"sample"` // number of entries
	Whole  bool      `json:"whole"`  // the sample has all entries
	Read   time.Time `json:"-"`      // when the sample was read
	Kept   bool      `json:"-"`      // the sample is from an earlier opening
	// Compared is how many entries were embedded again.
	Compared int     `json:"compared"`
	Unknown  bool    `json:"-"`                // no entry could be embedded again
	Cosine   float64 `json:"cosine,omitempty"` // mean cosine of their new vectors with the collection's
	Embedder string  `json:"-"`                // as the file calls it
}

// Constants of the comparison. A mean cosine below foreign means another embedder; a mean of at least alike
// means the same embedder.
const (
	Compared = 50 // most entries to embed again
	foreign  = 0.5
	alike    = 0.95
)

// longest is the most bytes of a text that is embedded again, which is also a store's limit.
const longest = 60_000

// comparison is the outcome of embedding entries of a sample again.
type comparison struct {
	Sample   string  `json:"sample"`   // its digest
	Embedder string  `json:"embedder"` // its identity
	State    []byte  `json:"state,omitempty"`
	Compared int     `json:"compared"` // number of entries; 0: none has a text and a vector
	Cosine   float64 `json:"cosine"`   // mean over the entries
	Context  bool    `json:"context"`  // contexts were embedded with the texts, which gave the higher cosine
}

// compare embeds some entries again, and compares the vectors with the collection's. The collection may have
// embedded contexts together with texts. So compare tries both, and keeps the higher cosine.
func (c *Collection) compare(ctx context.Context, to *comparison) error {
	chosen, err := c.sample.choose(Compared)
	if err != nil || len(chosen) == 0 {
		return err
	}
	texts, whole, contexts := make([]string, len(chosen)), make([]string, len(chosen)), false
	for i, e := range chosen {
		texts[i], whole[i] = e.Text, e.Text
		if e.Context != "" {
			whole[i], contexts = e.Context+"\n"+e.Text, true
		}
	}
	if to.Cosine, to.Compared, err = c.cosine(ctx, chosen, texts); err != nil || !contexts {
		return err
	}
	cosine, compared, err := c.cosine(ctx, chosen, whole)
	if err == nil && cosine > to.Cosine {
		to.Cosine, to.Compared, to.Context = cosine, compared, true
	}
	return err
}

// cosine embeds texts of entries as passages. It returns the mean cosine with the entries' vectors, and the
// number of entries. It skips texts that cannot be embedded, unless none can.
func (c *Collection) cosine(ctx context.Context, of []sdk.Entry, texts []string) (mean float64, compared int, err error) {
	vectors := make([][]float32, len(texts))
	work := retry.Work{Retries: c.block.Embed.Retries, Stage: "embed." + c.block.Name, Waits: c.options.Waits, Call: func(ctx context.Context, at []int) error {
		return c.block.Embed.Patience().Bounded(ctx, len(at), func(ctx context.Context) error {
			return retry.PendingWork{Call: func(ctx context.Context, _ string, at []int) error {
				found, err := c.Embedder.Embed(ctx, sdk.RolePassage, generation.Pick(texts, at))
				return generation.Spread(vectors, at, found, err)
			}}.Do(ctx, at)
		})
	}}
	var first error
	for i, err := range work.Do(ctx, len(texts)) {
		norms := math.Sqrt(generation.Dot(vectors[i], vectors[i]) * generation.Dot(of[i].Vector, of[i].Vector))
		if first = cmp.Or(first, err); err == nil && norms > 0 && len(vectors[i]) == len(of[i].Vector) {
			mean += generation.Dot(vectors[i], of[i].Vector) / norms
			compared++
		}
	}
	if compared == 0 {
		return 0, 0, cmp.Or(ctx.Err(), first)
	}
	return mean / float64(compared), compared, ctx.Err()
}

// choose returns at most n entries with a text and a vector, spread over the whole sample. It always returns
// the same entries.
func (s *sample) choose(n int) (chosen []sdk.Entry, err error) {
	seen, every := 0, max(s.Entries/n, 1)
	for page, err := range s.pages(sdk.Scan{Texts: true, Vectors: true}) {
		if err != nil {
			return nil, err
		}
		for _, e := range page {
			if len(e.Context)+len(e.Text) > longest {
				continue
			}
			if seen%every == 0 && len(chosen) < n {
				chosen = append(chosen, e)
			}
			seen++
		}
	}
	return chosen, nil
}

// foreignError says that another embedder made the vectors.
type foreignError struct{ error }

func (e *foreignError) Unwrap() error { return e.error }

// judge checks that the embedder is the one that made the collection. A learning embedder must have learned
// from this sample; if not, judge lets it learn first.
func (c *Collection) judge(ctx context.Context, starter generation.Starter) error {
	if c.Embedder == nil {
		return nil
	}
	resolved, err := generation.ResolvedConfig(c.Embedder)
	if err != nil {
		return err
	}
	now := comparison{Sample: c.sample.Digest, Embedder: pipeline.StageDigest(c.block.Embed, c.Embedder) + string(resolved)}
	kept := comparison{}
	known := c.place.path != "" && readJSON(c.place.compared(), &kept) == nil && kept.Sample == now.Sample && kept.Embedder == now.Embedder
	if known {
		now = kept
	}
	if c.Embedder.Fits() {
		if !known {
			if now.State, err = c.fit(ctx); err != nil {
				return fmt.Errorf("fit %s to a sample of collection %s: %w", c.block.Embed.Use, c.Name, err)
			}
		}
		if c.Embedder, err = starter.Embedder(ctx, now.State, resolved); err != nil {
			return err
		}
	}
	if !known {
		if err := c.compare(ctx, &now); err != nil {
			return fmt.Errorf("embed entries of collection %s again, to compare their vectors: %w", c.Name, err)
		}
	}
	if c.found = now; !known && c.place.path != "" { // stored even if the vectors are foreign, so that a service is asked once
		if err := writeJSON(c.place.compared(), now); err != nil {
			return fmt.Errorf("keep how the vectors of collection %s compare: %w", c.Name, err)
		}
	}
	if now.Compared > 0 && now.Cosine < foreign {
		return &foreignError{&UnusableError{c.block.Embed.UseRange, fmt.Errorf(
			"the vectors of collection %s are not those of %s: mean cosine %.2f over %s that %s embedded again; embed with the model that made the collection, or name the field of the vectors, or that of the texts they were made from, in the store's config",
			c.Name, c.block.Embed.Use, now.Cosine, terminal.Plural(now.Compared, "entry"), map[bool]string{true: "was", false: "were"}[now.Compared == 1])}}
	}
	return nil
}

// fit lets the embedder learn from the texts of the sample, and returns its state.
func (c *Collection) fit(ctx context.Context) ([]byte, error) {
	err := c.Embedder.Fit(ctx, func(yield func([]sdk.TrainingRow, error) bool) {
		for page, err := range c.sample.pages(sdk.Scan{Texts: true}) {
			rows := make([]sdk.TrainingRow, len(page))
			for i, e := range page {
				rows[i] = sdk.TrainingRow{ID: e.ID, Label: e.Label, Text: e.Text}
			}
			if !yield(rows, err) {
				return
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return c.Embedder.State()
}

// Report describes the collection, the sample and the comparison.
func (c *Collection) Report() *Report {
	r := &Report{
		Collection: c.Name, Fields: c.Fields, Notes: c.Notes, Lexical: c.Lexical,
		Sample: c.sample.Entries, Whole: c.sample.Whole, Read: c.sample.Read, Kept: c.kept,
		Compared: c.found.Compared, Cosine: c.found.Cosine, Embedder: c.block.Embed.Use,
	}
	note := func(format string, args ...any) { r.Notes = append(r.Notes, fmt.Sprintf(format, args...)) }
	if n := c.sample.Textless; n > 0 {
		note("%s of the sample without a text: no example and no passage is made of them.", terminal.Plural(n, "entry"))
	}
	if n := c.sample.Pointless; n > 0 {
		note("%s of the sample without a vector, or with one that is all zero: no centroid and no voter learns from them.", terminal.Plural(n, "entry"))
	}
	if n := c.sample.Norms; n.differ() != 0 {
		note("The norms of the sample's vectors reach from %.3g to %.3g.", n.Least, n.Most)
	}
	if !r.Whole && len(c.sample.centroids) > 0 {
		note("The labels are those of the sample.")
	}
	switch {
	case c.Embedder == nil:
		note("Whether its vectors are those of %s was not looked at: that calls a service, which a plan does not.", r.Embedder)
	case r.Compared == 0:
		r.Unknown = true
	case c.found.Context:
		note("Its vectors are nearer to those of contexts and texts together than to those of texts.")
	}
	return r
}

// Doubt warns if another embedder probably made the vectors, or if that is unknown. It returns "" if nothing
// is wrong, or if a plan has not compared any.
func (r *Report) Doubt() string {
	if r.Unknown {
		return fmt.Sprintf("whether its vectors are those of %s is not known: no entry of the sample has a text that can be embedded and a vector; name the field of the texts in the store's config", r.Embedder)
	}
	if r.Compared == 0 || r.Cosine >= alike {
		return ""
	}
	return fmt.Sprintf("its vectors differ from those of %s: mean cosine %.2f over %s; another version of the model, another precision, or texts that were embedded with something more may have made them, and searches find less well",
		r.Embedder, r.Cosine, terminal.Plural(r.Compared, "entry"))
}

// Sampled describes the sample in a few words, and how similar its vectors are.
func (r *Report) Sampled() string {
	text := fmt.Sprintf("a sample of %s", terminal.Plural(r.Sample, "entry"))
	if r.Whole {
		text = "all of it read as the sample"
	}
	if r.Kept {
		text += ", kept since " + r.Read.Local().Format("2006-01-02 15:04")
	}
	if r.Compared > 0 {
		text += fmt.Sprintf(", mean cosine %.3f with the vectors of %s over %s", r.Cosine, r.Embedder, terminal.Plural(r.Compared, "entry"))
	}
	return text
}
