package modelserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
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
	Reset                    // the connection is reset, as by a host on which nobody listens any more
	Hang                     // nothing until the client leaves
	Fewer                    // one choice or embedding less than asked for
	More                     // one choice or embedding more than asked for
	Refusal                  // the model refuses
	Length                   // every text is cut in the middle
	Filter                   // a content filter takes every text
	BrokeOff                 // every text is cut in the middle, and finish_reason is error
	NaN                      // an embedding holds a null
	Error200                 // an error with status 200, as gateways send it
	Redirect                 // a redirect to another host
)

// WaitForm is the form in which a server says how long to wait.
type WaitForm uint8

// The forms.
const (
	Unsaid       WaitForm = iota
	Milliseconds          // retry-after-ms
	Seconds               // retry-after: 2
	Date                  // retry-after: Wed, 01 May 2024 12:00:30 GMT
)

// Fault is injected into some requests: those that one of Share, Calls, First and If
// names.
type Fault struct {
	Kind  Kind
	Share float64        // of all requests; drawn by Options.Seed and the request's number
	Calls []int          // numbers of requests, from 0
	First int            // that many requests, from the beginning
	If    func(Ask) bool // requests for which it is true

	Status  int           // of Kind Status
	Message string        // of its error; empty: one that names the status
	Code    string        // of its error
	Wait    time.Duration // that it asks for
	Form    WaitForm      // of Wait
}

// fault returns the fault of a request; the zero Fault: none.
func (s *Server) fault(a Ask) Fault {
	for i, f := range s.options.Faults {
		draw := rand.New(rand.NewPCG(s.options.Seed+uint64(i), uint64(a.Number))).Float64()
		if slices.Contains(f.Calls, a.Number) || a.Number < f.First || draw < f.Share || f.If != nil && f.If(a) {
			return f
		}
	}
	return Fault{}
}

// ends reports whether the fault takes the place of a reply, and sends it.
func (f Fault) ends(w http.ResponseWriter) bool {
	switch f.Kind {
	case Drop:
		panic(http.ErrAbortHandler)
	case Reset:
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			if tcp, ok := c.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0) // it ends by a reset
			}
			_ = c.Close()
		}
	case Status:
		f.refuse(w)
	case Page:
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<html><body>Sign in to the network</body></html>")
	case Error200:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"error": {"message": "the provider behind this gateway failed", "code": 502}}`)
	case Redirect:
		w.Header().Set("Location", "https://elsewhere.example/v1")
		w.WriteHeader(http.StatusTemporaryRedirect)
	default:
		return false
	}
	return true
}

// waits says how long the fault wants to be left alone.
func (f Fault) waits(w http.ResponseWriter) {
	switch f.Form {
	case Milliseconds:
		w.Header().Set("retry-after-ms", strconv.FormatInt(f.Wait.Milliseconds(), 10))
	case Seconds:
		w.Header().Set("retry-after", strconv.FormatFloat(f.Wait.Seconds(), 'f', -1, 64))
	case Date:
		w.Header().Set("retry-after", time.Now().Add(f.Wait).UTC().Format(http.TimeFormat))
	}
}

// refuse answers with the fault's status.
func (f Fault) refuse(w http.ResponseWriter) {
	f.waits(w)
	err := &refusal{message: f.Message, code: f.Code}
	if f.Message == "" {
		err.message = fmt.Sprintf("status %d, as the test says", f.Status)
	}
	refuse(w, f.Status, err)
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

func refuse(w http.ResponseWriter, status int, err error) {
	made := object{"message": err.Error(), "type": "invalid_request_error"}
	if r := new(refusal); errors.As(err, &r) {
		if r.param != "" {
			made["param"] = r.param
		}
		if r.code != "" {
			made["code"] = r.code
		}
	}
	text, _ := json.Marshal(object{"error": made}) // made here
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}
