package milvus

import (
	"context"
	"fmt"

	"github.com/milvus-io/milvus-sdk-go/v2/client"

	"github.com/racflow/racflow/sdk"
)

func (c *collection) put(ctx context.Context, entries []sdk.Entry) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	s := c.known()
	if s == nil {
		return c.notOpen()
	}
	metas, err := checkEntries(s.schema, entries)
	if err != nil {
		return sdk.Invalid(fmt.Errorf("%w; nothing of the batch was put", err))
	}
	if err := c.begin(ctx); err != nil {
		return c.failedBegin(ctx, err)
	}
	tx := c.staged
	defer context.AfterFunc(ctx, func() { tx.cancel(ctx.Err()) })()
	for i, e := range entries {
		e.Vector = unit(e.Vector)
		if err := c.stage(e, metas[i], c.staged.next); err != nil {
			return c.undo(ctx, err)
		}
	}
	return nil
}

// stage adds an entry to the transaction.
func (c *collection) stage(e sdk.Entry, meta []byte, place int64) error {
	tx := c.staged
	p := pendingRow{row: row{key: keyOf(place, tx.next), sequence: tx.next, entry: e, meta: meta}}
	if a := c.known().analyzer; a != nil {
		p.counts = countWords(*a, e.Context, e.Text)
		tx.account(p.counts, 1)
	}
	slot := slotOf(e.ID)
	if before, ok := tx.latest[slot]; ok && before != deleted {
		tx.superseded = append(tx.superseded, before)
	}
	tx.latest[slot] = tx.next
	tx.next++
	tx.rows++
	tx.entries++
	tx.pending = append(tx.pending, p)
	tx.bytes += p.size() + 14*len(p.counts.words)
	if len(tx.pending) < c.server.config.BatchRows && tx.bytes < c.server.config.BatchBytes {
		return nil
	}
	return c.send()
}

// account counts a text in, or out.
func (tx *transaction) account(words counts, sign int64) {
	tx.words += sign * int64(words.length)
	for _, w := range words.words {
		tx.df[w.word] += sign
	}
}

// send begins to write the pending rows, once few enough others are on their
// way. Their words are weighed with the average length so far: at a first build
// the final one is not known yet.
func (c *collection) send() error {
	tx := c.staged
	if err := context.Cause(tx.ctx); err != nil {
		return err // of rows that were sent before
	}
	if len(tx.pending) == 0 {
		return nil
	}
	if err := tx.stillHeld(); err != nil {
		return err
	}
	average := c.averageWith(tx)
	formula := newBM25(c.server.config.K1, c.server.config.B, average)
	pending, lexical := tx.pending, c.known().analyzer != nil
	tx.sending.Go(func() error {
		rows := make([]row, len(pending))
		for i, p := range pending {
			rows[i] = p.row
			d := details{hash: p.entry.Hash, average: average, id: p.entry.ID, label: p.entry.Label}
			if lexical {
				rows[i].words, d.counts = formula.document(p.counts), p.counts.pack()
			}
			rows[i].details = d.encode()
		}
		err := c.insert(tx.ctx, rows)
		if err != nil {
			tx.cancel(err)
		}
		return err
	})
	if tx.lowest == 0 || average < tx.lowest {
		tx.lowest = average
	}
	tx.highest = max(tx.highest, average)
	tx.pending, tx.bytes = nil, 0
	return nil
}

// sent sends the pending rows and waits until all rows are there.
func (c *collection) sent(ctx context.Context) error {
	if err := c.send(); err != nil {
		return err
	}
	tx := c.staged
	stop := context.AfterFunc(ctx, func() { tx.cancel(ctx.Err()) })
	defer stop()
	if err := tx.sending.Wait(); err != nil {
		return err
	}
	return context.Cause(tx.ctx)
}

// averageWith is the average length with what is staged.
func (c *collection) averageWith(tx *transaction) float64 {
	r := c.known().record
	r.Entries += tx.entries
	r.Words += tx.words
	return r.average()
}

func (c *collection) delete(ctx context.Context, ids []string) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.begin(ctx); err != nil {
		return c.failedBegin(ctx, err)
	}
	tx := c.staged
	for _, id := range ids {
		slot := slotOf(id)
		if before, ok := tx.latest[slot]; ok && before != deleted {
			tx.superseded = append(tx.superseded, before)
		}
		tx.latest[slot] = deleted
	}
	return nil
}

// failedBegin undoes what is staged where the lease is gone.
func (c *collection) failedBegin(ctx context.Context, err error) error {
	if c.staged != nil {
		return c.undo(ctx, err)
	}
	return err
}

// specialKeys lists the rows that are no entries.
func (c *collection) specialKeys(ctx context.Context) ([]string, error) {
	var keys []string
	err := c.callLoaded(ctx, "list the record's rows", func(ctx context.Context, m *client.GrpcClient, _ int) error {
		keys = nil
		result, err := m.Query(ctx, c.table, nil, fmt.Sprintf("%s == %d", fieldSequence, noEntry), []string{fieldKey}, newest(), client.WithLimit(maxLimit))
		if err != nil {
			if isEmpty(err) {
				return nil
			}
			return err
		}
		keys = strs(result, fieldKey)
		return nil
	})
	return keys, err
}
