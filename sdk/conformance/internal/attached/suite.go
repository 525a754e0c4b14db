package attached

import (
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/conformance/internal/harness"
)

// Foreign makes collections as somebody else would, without the stage under test.
type Foreign struct {
	// Make makes a new collection that holds the rows, and returns the config by which the stage attaches
	// it. Each row has an id, a text, a context, a label, metadata and a vector, and all of that
	// is to be found again.
	Make func(t harness.T, rows []sdk.Entry) (config string)
	// Look says all of a collection that a write could change, as another client sees it: how many
	// rows it has, its fields, its indexes. The suite compares it with itself.
	Look func(t harness.T, config string) string
}

// Case is one check, on a new collection of somebody else's in a process of its own.
type Case struct {
	Name, Why, Fix string
	run            func(*view)
}

// Cases are all checks of attached collections.
var Cases = []Case{
	{"opens", "A run says what it reads, and notices when something else stands behind the name.",
		"Say in Attached what was found; ID is that of the collection itself, and the same until there is another one.", (*view).opens},
	{"rows", "Labels, centroids and examples come from the rows of a scan.",
		"Map each field to its part of an entry, letter by letter; end pages at a place that is found again.", (*view).pages},
	{"get", "What a search found is shown by its id.",
		"Return an entry for each id, in the order of the ids; an unknown one gives an empty entry.", (*view).get},
	{"dense", "Rules compare dense scores with thresholds, which mean the same with every store.",
		"Return the cosine of the vectors, whatever the server measures by.", (*view).dense},
	{"vectors of any length", "Whoever made the collection may not have normalised its vectors.",
		"Where the metric depends on the lengths, compute the cosine from the vectors of what was found; sdk.Search.Norm is of more than the first rows.", (*view).anyLength},
	{"filters", "Filters choose entries before the best are chosen; one too many or too few is a wrong answer that nobody sees.",
		"Let the server select what sdk.Filter selects; where it cannot, have it select more, and check what it found.", (*view).filters},
	{"words", "A hybrid search uses what the collection has, and says what it goes without.",
		"Set Attached.Lexical only where the server searches a text by words; else leave Hits.Lexical nil in a hybrid search, and refuse a lexical one.", (*view).lexical},
	{"refuses to write", "The collection is somebody else's: nothing may be written there.",
		"Refuse Put, Delete, Commit and Drop of its name with sdk.Invalid.", (*view).refuses},
	{"unknown collection", "A wrong name in a file is told to the person who wrote it.",
		"Return sdk.Invalid with the name; make no collection of that name.", (*view).unknown},
	{"only after Attach", "A process that was started again reads what the one before it did, or nothing.",
		"Refuse Search, Get and Scan until Attach was called.", (*view).before},
	{"attach while searching", "A long run looks from time to time whether the collection was replaced.",
		"Let searches run on while Attach looks.", (*view).together},
}

// Run runs a case on a stage whose collections somebody else makes.
func (c Case) Run(t harness.T, subject *harness.Subject, foreign Foreign) {
	v := &view{T: t, Subject: subject, foreign: foreign}
	v.make(rows(count))
	c.run(v)
}

// view is an attached collection, and what it holds. Its methods end the check at an error.
type view struct {
	harness.T
	*harness.Subject
	foreign Foreign
	setup   harness.Setup
	process *harness.Process
	found   sdk.Attached
	rows    []sdk.Entry
	byID    map[string]sdk.Entry
	norm    float64 // of sdk.Search
}

// make makes a collection, and attaches it in a process of its own.
func (v *view) make(rows []sdk.Entry) {
	v.Helper()
	v.rows, v.byID = rows, map[string]sdk.Entry{}
	for _, e := range rows {
		v.byID[e.ID] = e
	}
	v.setup = v.Setup(v)
	v.setup.Config = v.foreign.Make(v, rows)
	v.process, v.found = v.attach()
}

// attach attaches the collection in another process.
func (v *view) attach() (*harness.Process, sdk.Attached) {
	v.Helper()
	p, err := v.Open(v, v.setup)
	if err != nil {
		v.Fatalf("open the stage: %v", err)
	}
	found, err := p.Stage.Attach(v.Context())
	if err != nil {
		v.Fatalf("attach: %v", err)
	}
	return p, found
}
