package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// receive writes the body of an answer to the target.
func (c *Client) receive(ctx context.Context, stop context.CancelCauseFunc, a *answer, t Target) (err error) {
	var f *os.File
	if a.offset == 0 {
		f, err = begin(t, a.etag)
	} else {
		f, err = os.OpenFile(t.Path, os.O_WRONLY|os.O_APPEND, 0)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	stalled := time.AfterFunc(c.stallTime(), func() { stop(errStalled) })
	defer stalled.Stop()
	buffer, done := make([]byte, 256<<10), a.offset
	for {
		n, err := a.body.Read(buffer)
		stalled.Reset(c.stallTime())
		if done += int64(n); done > t.Limit || a.total >= 0 && done > a.total {
			return fmt.Errorf("%s sends more than it said, or more than the limit", a.host)
		}
		if _, err := f.Write(buffer[:n]); err != nil {
			return err
		}
		if n > 0 && t.Report != nil {
			t.Report(done, a.total)
		}
		switch {
		case err == io.EOF && (a.total < 0 || done == a.total):
			return nil
		case err == io.EOF:
			return &transferError{fmt.Errorf("%s: the connection was cut after %d of %d bytes", a.host, done, a.total)}
		case err != nil:
			return transferred(ctx, a.host, err)
		}
	}
}
