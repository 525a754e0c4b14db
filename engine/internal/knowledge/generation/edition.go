package generation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/racflow/racflow/sdk"
)

// Edition names the edition of a generation that has the content of a source: a generation that
// nobody changes, for processes that search it for long. A run changes the rows of its generation in
// place, which others that search it would see on a server. Where passages of an edition lack an
// addition, the next one is made, which has them tried again. there reports whether the store has any
// of it.
func Edition(ctx context.Context, store Store, base, knowledge, content string) (name string, there bool, err error) {
	all, err := store.List(ctx)
	if err != nil {
		return "", false, fmt.Errorf("list the collections of the store: %w", err)
	}
	for try := 0; ; try++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%d", base, content, try))
		name = knowledge + "-" + hex.EncodeToString(sum[:])[:hashLength]
		lacks := slices.ContainsFunc(all, func(c sdk.Collection) bool {
			n, ours := ReadNote(c.Note)
			return c.Name == name && ours && n.Complete && n.Unenriched > 0
		})
		if !lacks {
			return name, parts(all, name) > 0, nil
		}
	}
}

// parts counts those of a generation's collections, its entries and their centroids, that a store has. What
// somebody opened after its removal is empty and has no note.
func parts(all []sdk.Collection, name string) (n int) {
	for _, c := range all {
		if (c.Name == name || c.Name == Centroids(name)) && len(c.Note) > 0 {
			n++
		}
	}
	return n
}

// whole is how many parts a generation has. One of them is missing while it is being removed.
const whole = 2

// Settled returns what the embedder had learnt for the generation of a name, or for an edition of
// that, and settled arguments by; nil: nothing. Where the store does not say, it learns anew.
func Settled(ctx context.Context, store Store, knowledge, base string) []byte {
	all, err := store.List(ctx)
	if err != nil {
		return nil
	}
	var newest Note
	for _, c := range all {
		n, ours := ReadNote(c.Note)
		if ours && isName(c.Name, knowledge) && (c.Name == base || n.Base == base) && n.State != nil && n.Resolved != nil && !n.Changed.Before(newest.Changed) {
			newest = n
		}
	}
	return newest.State
}

// held reports whether anybody but one holds the generation.
func (n Note) held(but string) bool {
	for holder, at := range n.Holders {
		if holder != but && Now().Sub(at) < settled {
			return true
		}
	}
	return false
}

// HoldEvery is how often an edition has to be held anew: some times before it is settled without.
const HoldEvery = settled / 4

// ErrRemoved says that an edition is not what it was: it was removed.
var ErrRemoved = errors.New("it was removed meanwhile")

// Removed returns the error of who used an edition that was there: it wraps ErrRemoved where the
// edition is not there any more.
func Removed(ctx context.Context, store Store, collection string, err error) error {
	if all, listErr := store.List(ctx); listErr != nil || parts(all, collection) == whole {
		return err
	}
	return fmt.Errorf("generation %s: %w: %w", collection, ErrRemoved, err)
}

// Hold notes with an edition that it is served, so that nobody removes it, also on other machines. It
// does so for some minutes: see HoldEvery.
func Hold(ctx context.Context, store Store, collection string, schema sdk.Schema, content, holder string) error {
	_, err := change(ctx, store, collection, schema, content, func(n *Note) { n.Holders[holder] = Now() })
	return err
}

// Leave takes back what Hold noted, and reports whether others hold the edition.
func Leave(ctx context.Context, store Store, collection string, schema sdk.Schema, content, holder string) (held bool, err error) {
	n, err := change(ctx, store, collection, schema, content, func(n *Note) { delete(n.Holders, holder) })
	return n.held(""), err
}

// changes is how often a note is tried to be changed while others do so.
const changes = 10

// change changes the note of an edition.
func change(ctx context.Context, store Store, collection string, schema sdk.Schema, content string, do func(*Note)) (n Note, err error) {
	for try := 1; ; try++ {
		// What was removed would be there again, and empty, for who searches it, if it were opened.
		all, err := store.List(ctx)
		if err != nil {
			return n, err
		}
		if parts(all, collection) < whole {
			return n, fmt.Errorf("generation %s: %w", collection, ErrRemoved)
		}
		c, err := store.Open(ctx, collection, schema)
		if err != nil {
			return n, Removed(ctx, store, collection, err)
		}
		var ours bool
		if n, ours = ReadNote(c.Note); !ours || n.Content() != content {
			return n, fmt.Errorf("generation %s: %w", collection, ErrRemoved)
		}
		if n.Holders == nil {
			n.Holders = map[string]time.Time{}
		}
		for holder, at := range n.Holders {
			if Now().Sub(at) >= settled { // it was killed
				delete(n.Holders, holder)
			}
		}
		do(&n)
		text, err := json.Marshal(n)
		if err != nil {
			return n, err
		}
		err = store.Commit(ctx, collection, text)
		coded := new(sdk.Error)
		if err == nil {
			return n, nil
		}
		if try == changes || !errors.As(err, &coded) || coded.Code != sdk.CodeTransient {
			return n, Removed(ctx, store, collection, err)
		}
		select {
		case <-time.After(max(coded.RetryAfter, 20*time.Millisecond)):
		case <-ctx.Done():
			return n, ctx.Err()
		}
	}
}
