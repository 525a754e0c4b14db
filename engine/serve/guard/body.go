package guard

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// ErrSlow says that a body did not arrive in time.
var ErrSlow = errors.New("the body did not arrive in time")

// bound puts bounds to a request's body; a problem: it cannot be taken at all.
func (g *Guard) bound(w http.ResponseWriter, r *http.Request) *Problem {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return NewProblem(http.StatusUnsupportedMediaType, "send bodies as they are, without a Content-Encoding")
	}
	b := &body{in: r.Body, control: http.NewResponseController(w)}
	if g.options.Streams(r) {
		b.each = g.options.Stall
	} else {
		if r.ContentLength > g.options.Body {
			return g.large()
		}
		b.in = http.MaxBytesReader(w, r.Body, g.options.Body)
		b.until = time.Now().Add(g.options.Arrive)
	}
	r.Body = b
	return nil
}

func (g *Guard) large() *Problem { return tooLarge(g.options.Body) }

func tooLarge(limit int64) *Problem {
	return NewProblem(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is longer than the %d bytes that this server takes", limit))
}

// Unreadable is the problem of a body that could not be read to its end.
func Unreadable(err error) *Problem {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return tooLarge(large.Limit)
	case errors.Is(err, ErrSlow):
		return NewProblem(http.StatusRequestTimeout, ErrSlow.Error())
	}
	return NewProblem(http.StatusBadRequest, "the body ends before it is whole")
}

// expect gives a body the time that it has to arrive as a whole, also where nobody reads it: the
// server takes what is left of it before it answers.
func (g *Guard) expect(w *writer, r *http.Request) {
	if r.Body != nil && r.Body != http.NoBody {
		_ = w.control.SetReadDeadline(time.Now().Add(g.options.Arrive)) // recorders of tests have none
	}
}

// body is one that has to arrive in time: as a whole, or each piece of it. The deadline is
// lifted at its end: the server reads on to notice that the client is gone, and would take
// a deadline for that.
type body struct {
	in      io.ReadCloser
	control *http.ResponseController
	until   time.Time
	each    time.Duration
	ended   error // no more is read
}

func (b *body) Read(p []byte) (int, error) {
	if b.ended != nil {
		return 0, b.ended
	}
	until := b.until
	if b.each > 0 {
		until = time.Now().Add(b.each)
	}
	_ = b.control.SetReadDeadline(until) // recorders of tests have none
	n, err := b.in.Read(p)
	if err != nil {
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			err = ErrSlow
		case errors.Is(err, io.EOF):
			_ = b.control.SetReadDeadline(time.Time{})
		}
		b.ended = err
	}
	return n, err
}

func (b *body) Close() error { return b.in.Close() }
