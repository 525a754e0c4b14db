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

// Edition names the edition of a generation for a content of the source. An edition is a pinned snapshot
// for processes that search it for a long time: it never changes. A run changes its generation in place,
// and on a server others would see that. If passages of an edition lack an addition, Edition names the
// next edition, whose build asks for the additions again. there reports whether the store has at least a
// part of the edition.
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

// parts counts which of a generation's two collections, entries and centroids, a store has. A collection
// that was opened after its removal is empty and has no note; it does not count.
func parts(all []sdk.Collection, name string) (n int) {
	for _, c := range all {
		if (c.Name == name || c.Name == Centroids(name)) && len(c.Note) > 0 {
			n++
		}
	}
	return n
}

// whole is how many parts a generation has. While it is being removed, one is missing.
const whole = 2

// Settled returns the embedder state with settled arguments for the generation base or an edition of it.
// It returns nil if there is none, or if the store cannot list it; then the embedder learns again.
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

// held reports whether any holder other than but holds the generation.
func (n Note) held(but string) bool {
	for holder, at := range n.Holders {
		if holder != but && Now().Sub(at) < settled {
			return true
		}
	}
	return false
}

// HoldEvery is how often to renew a Hold: several times before it expires.
const HoldEvery = settled / 4

// ErrRemoved says that an edition was removed while it was in use.
var ErrRemoved = errors.New("it was removed meanwhile")

// Removed wraps err, the error of a use of an edition, with ErrRemoved if the edition no longer exists.
func Removed(ctx context.Context, store Store, collection string, err error) error {
	if all, listErr := store.List(ctx); listErr != nil || parts(all, collection) == whole {
		return err
	}
	return fmt.Errorf("generation %s: %w: %w", collection, ErrRemoved, err)
}

// Hold notes in an edition that a process serves it, so that nobody removes the edition, on any machine.
// The note expires after some minutes: see HoldEvery.
func Hold(ctx context.Context, store Store, collection string, schema sdk.Schema, content, holder string) error {
	_, err := change(ctx, store, collection, schema, content, func(n *Note) { n.Holders[holder] = Now() })
	return err
}

// Leave removes the note of Hold, and reports whether others hold the edition.
func Leave(ctx context.Context, store Store, collection string, schema sdk.Schema, content, holder string) (held bool, err error) {
	n, err := change(ctx, store, collection, schema, content, func(n *Note) { delete(n.Holders, holder) })
	return n.held(""), err
}

// changes is how often change tries while other processes change the note, too.
const changes = 10

// change changes the note of an edition with do.
func change(ctx context.Context, store Store, collection string, schema sdk.Schema, content string, do func(*Note)) (n Note, err error) {
	for try := 1; ; try++ {
		// Opening a removed collection would create it again, empty, for processes that search it.
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
			if Now().Sub(at) >= settled { // its process was killed
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
