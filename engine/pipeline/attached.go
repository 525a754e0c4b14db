package pipeline

import (
	"encoding/json"
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// Attached reports whether the knowledge is a collection that somebody else makes and racflow
// only reads: it has no sources, and its store opens as an sdk.Attacher.
func (k *Knowledge) Attached() bool { return k.Collection() != "" }

// Collection is what the file calls an attached collection, a name or an alias; empty: the
// knowledge is built from its sources.
func (k *Knowledge) Collection() string { return k.Store.Config.text(k.Store.Info.Attaches) }

// text is the value of a string argument; empty: it is not given.
func (c Config) text(name string) (text string) {
	var given map[string]json.RawMessage
	_ = json.Unmarshal(c.Public, &given) // made here
	_ = json.Unmarshal(given[name], &text)
	return text
}

// readOrigin reads where the entries of a knowledge come from: sources, or an attached
// collection, beside which nothing stands that makes entries.
func (l *loader) readOrigin(k *Knowledge, in *hcl.Block, blocks hcl.Blocks, store *hcl.Block) {
	argument := k.Store.Info.Attaches
	w, given := k.Store.Config.written[argument]
	if given = given && (w.unknown || k.Attached()); !given { // what is unknown is reported already
		cut := len(blocks.OfType("chunk")) > 0
		k.Sources = l.readSources(in, blocks.OfType("source"), cut, argument)
		if cut {
			k.Chunk = l.readStage(l.single(in, blocks, "chunk"), place{})
		}
		k.Enrich = l.readEnrich(blocks.OfType("enrich"))
		return
	}
	refuse := func(at hcl.Range, format string, args ...any) {
		beside := fmt.Sprintf("Line %d gives the store a collection that you already have (%s = ...). ", w.at.Start.Line, argument)
		l.errorAt(at, "Not of an attached collection", "%s", beside+fmt.Sprintf(format, args...))
	}
	for _, b := range blocks {
		switch b.Type {
		case "source":
			refuse(b.DefRange, "racflow only reads it and writes nothing into it, so a source has no place. Leave out one of them.")
		case "chunk", "enrich":
			refuse(b.DefRange, "Its entries are read as they are, so there is nothing for %s to do. Leave it out.", b.Type)
		}
	}
	if analyzer, ok := store.Body.(*hclsyntax.Body).Attributes["analyzer"]; ok {
		refuse(analyzer.NameRange, "How it is searched by words was decided when it was made. Leave analyzer out.")
	}
}
