package attached

import (
	"fmt"
	"time"

	"github.com/racflow/racflow/engine/terminal"
	"github.com/racflow/racflow/sdk"
)

// Report says what Open found, for people.
type Report struct {
	Collection string
	Fields     []sdk.AttachedField
	Notes      []string
	Lexical    bool // it can be searched by words

	Sample int       // entries
	Whole  bool      // these are all
	Read   time.Time // when the sample was read
	Kept   bool      // it was kept from an earlier opening
	// Compared is how many entries were embedded again; 0: none was.
	Compared int
	Unknown  bool    // there was none to be embedded again
	Cosine   float64 // mean, of their vectors with those of the collection
	Embedder string  // as the file calls it
}

// Report says what was found.
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

// Doubt warns where the vectors are hardly those of the embedder, or nothing says whether they are; empty:
// nothing is wrong, or a plan has not looked.
func (r *Report) Doubt() string {
	if r.Unknown {
		return fmt.Sprintf("whether its vectors are those of %s is not known: no entry of the sample has a text that can be embedded and a vector; name the field of the texts in the store's config", r.Embedder)
	}
	if r.Compared == 0 || r.Cosine >= Alike {
		return ""
	}
	return fmt.Sprintf("its vectors differ from those of %s: mean cosine %.2f over %s; another version of the model, another precision, or texts that were embedded with something more may have made them, and searches find less well",
		r.Embedder, r.Cosine, terminal.Plural(r.Compared, "entry"))
}

// Sampled says in a few words what the sample is, and how near its vectors are.
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
