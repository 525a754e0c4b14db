package modelserver

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// Kind is a kind of fault.
type Kind uint8

// The kinds of faults.
const (
	Status   Kind = iota + 1 // the status of Fault.Status, with Fault.Wait
	HalfBody                 // the connection ends in the middle of the reply
	Broken                   // the reply is cut, but whole for HTTP: invalid JSON
	Page                     // a web page with status 200
	Drop                     // the connection ends without a reply
	Hang                     // nothing until the client leaves
	Fewer                    // one choice or embedding less than asked for
	More                     // one choice or embedding more than asked for
	Refusal                  // the model refuses
	Length                   // every text is cut in the middle
	Filter                   // a content filter takes every text
	BrokeOff                 // every text is cut in the middle, and finish_reason is error
	NaN                      // an embedding holds a null
)

// Form is the form in which a server says how long to wait.
type Form uint8

// The forms.
const (
	Unsaid       Form = iota
	Milliseconds      // retry-after-ms
	Seconds           // retry-after: 2
	Date              // retry-after: Wed, 01 May 2024 12:00:30 GMT
)

// Fault is injected into some requests.
type Fault struct {
	Kind  Kind
	Share float64 // of all requests; drawn by Options.Seed and the request's number
	Calls []int   // numbers of requests, from 0

	Status int           // of Kind Status
	Wait   time.Duration // that it asks for
	Form   Form          // of Wait
}

// fault returns the fault of a request; the zero Fault: none.
func (s *Server) fault(number int) Fault {
	for i, f := range s.options.Faults {
		draw := rand.New(rand.NewPCG(s.options.Seed+uint64(i), uint64(number))).Float64()
		if slices.Contains(f.Calls, number) || draw < f.Share {
			return f
		}
	}
	return Fault{}
}

// refuse answers with the fault's status.
func (f Fault) refuse(w http.ResponseWriter) {
	switch f.Form {
	case Milliseconds:
		w.Header().Set("retry-after-ms", strconv.FormatInt(f.Wait.Milliseconds(), 10))
	case Seconds:
		w.Header().Set("retry-after", strconv.FormatFloat(f.Wait.Seconds(), 'f', -1, 64))
	case Date:
		w.Header().Set("retry-after", time.Now().Add(f.Wait).UTC().Format(http.TimeFormat))
	}
	refuse(w, f.Status, fmt.Sprintf("status %d, as the test says", f.Status))
}

// send writes a reply, or as much of it as the fault leaves.
func (f Fault) send(w http.ResponseWriter, reply []byte) {
	switch f.Kind {
	case HalfBody:
		w.Header().Set("Content-Length", strconv.Itoa(len(reply)))
		_, _ = w.Write(reply[:len(reply)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case Broken:
		reply = reply[:len(reply)/2]
	}
	_, _ = w.Write(reply)
}
